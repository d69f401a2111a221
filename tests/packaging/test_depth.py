"""Whoever follows an import passes few modules: the chains of those that are imported while a module loads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
MOST = 19  # from a command over an edit, which reads what it stores again, down to the format


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for package in ("monocontext", "rlm") for path in (TOP / package).rglob("*.py")}


def imported_names(tree: ast.AST) -> Iterator[str]:
    """What a module imports while it loads: not in functions, nor for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name the whole path"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            yield from imported_names(node)


@cache
def chain(name: str) -> tuple[str, ...]:
    """The longest chain of modules that begins here."""
    names = imported_names(ast.parse(MODULES[name].read_text("utf-8")))
    below = {item if item in MODULES else item.rpartition(".")[0] for item in names} & MODULES.keys() - {name}
    return (name, *max(map(chain, below), key=len, default=()))


def test_chains_of_imports_are_short() -> None:
    longest = max(map(chain, MODULES), key=len)
    assert len(longest) <= MOST, " > ".join(longest)
    assert chain("monocontext.text.monocontext")[-1] in ("monocontext.records", "monocontext.errors")
