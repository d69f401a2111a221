"""The documentation site has a page for each public package, and each public name says what it is."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

import pytest

from tests.test_public_paths import PUBLIC

CHECKOUT = Path(__file__).parents[2]
SHOWN = {
    name
    for page in (CHECKOUT / "docs" / "reference").glob("*.md")
    for name in re.findall(r"^::: ([\w.]+)$", page.read_text("utf-8"), re.M)
}
ELSEWHERE = {"rlm.interpreter": "rlm"}
"""Modules whose names are shown where users import them from."""
STARTED = {"monocontext.cli", "monocontext.sessions.hook", "monocontext.sessions.background_upload"}
STARTED |= {"monocontext.text", "rlm.runners.launcher"}
"""Modules that are started as commands, or by other processes of ours, and are imported by nobody."""
NEEDS = {"monocontext.memory.langgraph_store", "monocontext.dspy"}
"""Modules, or their names, that import what may not be here."""


def documented() -> list[tuple[str, str]]:
    """Each public name, with the module that users import it from."""
    modules = sorted((set(PUBLIC) | SHOWN) - STARTED - NEEDS)
    return [
        (module, name)
        for module in modules
        for name in sorted({*PUBLIC.get(module, ()), *getattr(import_module(module), "__all__", ())})
    ]


def test_each_public_module_has_a_page() -> None:
    assert [name for name in PUBLIC if name not in SHOWN | STARTED | set(ELSEWHERE)] == []
    assert [name for name, where in ELSEWHERE.items() if where not in SHOWN] == []


def test_each_public_name_says_what_it_is() -> None:
    values = {(module, name): getattr(import_module(module), name) for module, name in documented()}
    callables = {item: value for item, value in values.items() if inspect.isroutine(value) or inspect.isclass(value)}
    assert len(callables) > 100
    assert [item for item, value in callables.items() if not inspect.getdoc(value)] == []


@pytest.mark.parametrize(
    "module", ["monocontext", "monocontext.aio", "monocontext.memory", "monocontext.sessions", "rlm"]
)
def test_each_method_says_what_it_does(module: str) -> None:
    public = import_module(module)
    classes = [value for name in public.__all__ if inspect.isclass(value := getattr(public, name))]
    told = {
        f"{item.__name__}.{name}": inspect.getdoc(getattr(item, name))
        for item in classes
        for name, value in vars(item).items()
        if not name.startswith("_") and isinstance(value, (FunctionType, property, classmethod, staticmethod))
    }
    assert told
    assert [name for name, doc in told.items() if not doc] == []


def test_each_page_is_in_the_menu() -> None:
    menu = (CHECKOUT / "mkdocs.yml").read_text("utf-8")
    pages = {str(page.relative_to(CHECKOUT / "docs")) for page in (CHECKOUT / "docs").rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/0")}
    assert pages - decisions == set(re.findall(r"([\w./-]+\.md)$", menu, re.M))
    listed = re.findall(r"\]\((.+?)\)$", (CHECKOUT / "docs/decisions/index.md").read_text("utf-8"), re.M)
    assert decisions == {f"decisions/{name}" for name in listed}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="no mkdocs here: `make site` brings it")
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = "".join(page.read_text("utf-8") for page in (tmp_path / "reference").rglob("*.html"))
    missing = [
        f"{module}.{name}"
        for module, name in documented()
        if f'id="{ELSEWHERE.get(module, module)}.{name}"' not in shown
        and getattr(re, name, module) is not getattr(import_module(module), name)  # Python documents its flags
    ]
    assert missing == [], missing
    commands = (tmp_path / "reference" / "commands" / "index.html").read_text("utf-8")
    assert "monocontext memory" in commands
    assert "rlm compile" in commands
    told = (tmp_path / "llms-full.txt").read_text("utf-8")
    assert "# Five minutes" in told
    assert all(f"({name})" in (tmp_path / "llms.txt").read_text("utf-8") for name in ("start/", "format/"))
