"""Find the functions of a namespace that take lazy texts, by name, from the code of its cells."""

from __future__ import annotations

import ast
import builtins

from monocontext.text.namespace.homes import CALLING_BUILTINS, REAL_BUILTINS

_LAZY = frozenset(dir(builtins)) - {each.__name__ for each in (*REAL_BUILTINS, *CALLING_BUILTINS)}


class LazyNames:
    """The names of functions that take lazy texts: builtins, and functions and classes that cells define. A name that a
    cell also binds to another value is not one of them."""

    def __init__(self) -> None:
        self._defined: set[str] = set()
        self._bound: set[str] = set()

    def __call__(self, name: str) -> bool:
        """Whether a name is one of these."""
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
