"""The picture of the house on our pages is what the import contracts say."""

from __future__ import annotations

import ast
import re
import runpy
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
_IMPORTS = (ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INDENTED_IMPORT = re.compile(r"^ +(?:from \S+ )?import ", re.MULTILINE)
HOUSE = runpy.run_path(str(TOP / "docs" / "house.py"))


@cache
def modules() -> list[str]:
    """The source of the product; an installation may have left a folder `build`."""
    paths = [path for package in ("monocontext", "rlm") for path in (TOP / package).rglob("*.py")]
    return [path.read_text("utf-8") for path in paths if "build" not in path.parts]


@pytest.mark.parametrize("name", HOUSE["PAGES"])
def test_a_page_shows_the_house_of_today(name: str) -> None:
    page = (TOP / name).read_text("utf-8")
    assert page == HOUSE["page_with"](HOUSE["picture"](), page), "run: python docs/house.py --write"


def test_no_public_name_of_a_module_stands_twice() -> None:
    """A class or constant is found by its name alone: what only its module uses has a `_` before it."""
    defined = re.compile(r"^(?:class (\w+)|([A-Z][A-Z0-9_]*)(?:: [^=\n]+)? = )", re.MULTILINE)
    names = Counter(match[1] or match[2] for source in modules() for match in defined.finditer(source))
    assert names
    assert [name for name, count in names.items() if count > 1 and not name.startswith("_")] == []


def test_few_functions_import() -> None:
    """A module imports at its top, except what is heavy or optional."""
    sources = [source for source in modules() if _INDENTED_IMPORT.search(source)]  # to parse all takes seconds
    functions = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, _FUNCTIONS)]
    importing = [item for item in functions if any(isinstance(node, _IMPORTS) for node in ast.walk(item))]
    assert 0 < len(importing) <= 80
