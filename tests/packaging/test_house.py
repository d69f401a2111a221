"""The picture of the house on our pages is what the import contracts say."""

from __future__ import annotations

import ast
import runpy
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
_IMPORTS = (ast.Import, ast.ImportFrom)
HOUSE = runpy.run_path(str(TOP / "docs" / "house.py"))


@cache
def modules() -> list[ast.Module]:
    """The product; an installation may have left a folder `build`."""
    paths = [path for package in ("monocontext", "rlm") for path in (TOP / package).rglob("*.py")]
    return [ast.parse(path.read_text("utf-8")) for path in paths if "build" not in path.parts]


@pytest.mark.parametrize("name", HOUSE["PAGES"])
def test_a_page_shows_the_house_of_today(name: str) -> None:
    page = (TOP / name).read_text("utf-8")
    assert page == HOUSE["page_with"](HOUSE["picture"](), page), "run: python docs/house.py --write"


def test_no_public_name_of_a_module_stands_twice() -> None:
    """A class or constant is found by its name alone: what only its module uses has a `_` before it."""
    names: Counter[str] = Counter()
    for tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names[node.name] += 1
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names[node.targets[0].id] += node.targets[0].id.isupper()
    assert names
    assert [name for name, count in names.items() if count > 1 and not name.startswith("_")] == []


def test_few_functions_import() -> None:
    """A module imports at its top, except what is heavy or optional."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for tree in modules() for node in ast.walk(tree) if isinstance(node, kinds)]
    importing = [item for item in functions if any(isinstance(node, _IMPORTS) for node in ast.walk(item))]
    assert 0 < len(importing) <= 80
