"""`Kit`: the names and the pass that a namespace needs, as `Monocontext.repl_namespace()` hands them out."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Protocol

from monocontext.namespace import rewrite
from monocontext.namespace.answers import Answers
from monocontext.namespace.files import open_file
from monocontext.namespace.imports import importer
from monocontext.namespace.printing import PRINT_CHARACTERS, printer


class Follower(Protocol):
    """Wants to know what code will run, and what came of it."""

    def block(self, tree: ast.Module, known: Mapping[str, object]) -> None:
        """This cell, as it was written, runs next, and its names hold `known`."""
        ...

    def ran(self, known: Mapping[str, object]) -> None:
        """A cell has run, and its names hold `known`."""
        ...


class Kit:
    """Belongs to one namespace: what its code sets on a shim module (`json.loads = mine`) stays in it."""

    def __init__(self, *, print_characters: int = PRINT_CHARACTERS, follower: Follower | None = None):
        self._follower = follower
        self._known: Mapping[str, object] = {}
        self.names: dict[str, Any] = {
            "__import__": importer(),
            "print": printer(print_characters),
            "open": open_file,
            rewrite.HELPER: Answers(),
        }
        """Those that are builtins replace the builtin of the namespace; the other is a builtin or a global of it."""

    def transform(self, tree: ast.Module) -> ast.Module:
        """Rewrite a cell in place and return it. Line and column numbers stay, so tracebacks and their marks do."""
        if self._follower:
            self._follower.block(tree, self._known)
        return rewrite.rewrite(tree)

    def ran(self, namespace: Mapping[str, object]) -> None:
        """What the names of the namespace hold after a cell: where the next one looks may follow from it."""
        if self._follower:
            self._known = namespace
            self._follower.ran(namespace)
