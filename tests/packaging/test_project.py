"""What the project says of itself in several places agrees: commands, versions, workflows."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import monocontext
import rlm

CHECKOUT = Path(__file__).parents[2]
ROOTS = ["monocontext", "rlm", "benchmarks", "tests", "docs", "examples"]
PAGES = [
    *(".github/CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "rlm/README.md", ".github/SECURITY.md"),
    *(str(page.relative_to(CHECKOUT)) for page in sorted(CHECKOUT.glob("docs/**/*.md"))),
]


def test_make_help_has_a_line_for_each_target() -> None:
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    shown = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    (targets,) = re.findall(r"^\.PHONY: (.+)$", (CHECKOUT / "Makefile").read_text("utf-8"), re.M)
    assert set(shown) == set(targets.split())
    assert all(shown.values())


def test_both_packages_and_the_changelog_name_the_same_release() -> None:
    log = (CHECKOUT / "CHANGELOG.md").read_text("utf-8")
    releases = re.findall(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", log, re.M)
    assert monocontext.__version__ == rlm.__version__ == releases[0]
    assert "0.1.0" in releases[1:]
    assert set(re.findall(r"^## (.+?)(?: \(.*)?$", log, re.M)) == set(releases)


def test_no_line_of_the_changelog_stands_twice() -> None:
    lines = Counter((CHECKOUT / "CHANGELOG.md").read_text("utf-8").splitlines())
    assert [line for line, count in lines.items() if line.startswith("- ") and count > 1] == []


def test_rlm_takes_the_monocontext_of_its_own_release() -> None:
    """It uses parts that are not public."""
    needed = tomllib.loads((CHECKOUT / "rlm/pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert f"monocontext~={rlm.__version__.rpartition('.')[0]}.0" in needed


def test_actions_are_pinned() -> None:
    """A tag of an action may move; a commit may not."""
    workflows = (CHECKOUT / ".github/workflows").iterdir()
    used = [row for item in workflows for row in re.findall(r"uses: (.*)", item.read_text())]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", row) for row in used), used


def test_ci_runs_every_python_that_we_support() -> None:
    classifiers = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(classifiers))
    workflow = (CHECKOUT / ".github/workflows/ci.yml").read_text("utf-8")
    (matrix,) = re.findall(r"python: \[(.+)\]", workflow)
    assert re.findall(r"[\d.]+", matrix) == supported
    assert "run: .ci/run" in workflow


@cache
def sources() -> set[str]:
    return {str(file.relative_to(CHECKOUT)) for top in ROOTS for file in (CHECKOUT / top).rglob("*.py")}


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_are_there(page: str) -> None:
    text = (CHECKOUT / page).read_text("utf-8")
    folder = (CHECKOUT / page).parent
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    named = re.findall(r"`((?:monocontext|rlm|tests|benchmarks|docs|examples)/[\w./-]*)`", text)
    modules = re.findall(r"`([\w/]+\.py)`", text)
    commands = re.findall(r"python -m (benchmarks[.\w]*)", text)
    assert [link for link in links if link and not (folder / link).exists()] == []
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
    assert [name for name in modules if not any(f"/{file}".endswith(f"/{name}") for file in sources())] == []
    assert [name for name in commands if find_spec(name) is None] == []
