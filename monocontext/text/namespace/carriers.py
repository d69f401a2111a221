"""Find the names of a namespace whose functions take lazy texts, from the code of its cells."""

from __future__ import annotations

import ast
import builtins

from monocontext.text.namespace.homes import CALLING_BUILTINS, REAL_BUILTINS

_LAZY = frozenset(dir(builtins)) - {each.__name__ for each in (*REAL_BUILTINS, *CALLING_BUILTINS)}


class LazyNames:
    """Names of builtins, and of functions and classes of cells, that no cell has bound to anything else."""

    def __init__(self) -> None:
        self._defined: set[str] = set()
        self._bound: set[str] = set()

    def __call__(self, name: str) -> bool:
        return name not in self._bound and (name in self._defined or (name in _LAZY and "*" not in self._bound))

    def see(self, tree: ast.Module) -> None:
        """Record the names that a cell binds, before it runs."""
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not node.decorator_list:
                    self._defined.add(name)
                case ast.ClassDef(name=name, bases=[], keywords=[], decorator_list=[]):
                    self._defined.add(name)
                case (
                    ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name)
                    | ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name)
                    | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name))
                    | ast.MatchMapping(rest=str(name))
                ):  # fmt: skip
                    self._bound.add(name)
                case ast.alias(name=name, asname=other):
                    self._bound.add(other or name.partition(".")[0])
