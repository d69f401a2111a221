"""`NamespacePatch`: the names and the rewriting for a namespace. `Monocontext.repl_namespace()` makes one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from monocontext.text.namespace import rewrite
from monocontext.text.namespace.carriers import LazyNames
from monocontext.text.namespace.files import open_file
from monocontext.text.namespace.imports import importer
from monocontext.text.namespace.printing import PRINT_CHARACTERS, printer
from monocontext.text.namespace.type_checks import TypeChecks


class CodeListener(Protocol):
    """Receives the code of each cell before it runs, and the variables after it."""

    def block(self, tree: ast.Module, known: Mapping[str, object]) -> None:
        """Take the code of a cell that runs next; `known` are the variables of its namespace."""
        ...

    def ran(self, known: Mapping[str, object]) -> None:
        """Take the variables of the namespace after a cell."""
        ...


class NamespacePatch:
    """The patch of one namespace. If its code changes a shim module (`json.loads = mine`), the change stays in it."""

    def __init__(self, *, print_characters: int = PRINT_CHARACTERS, follower: CodeListener | None = None):
        self._follower = follower
        self._variables: Mapping[str, object] = {}
        self._lazy_names = LazyNames()
        self._checks = TypeChecks()
        self.names: dict[str, Any] = {
            "__import__": importer(),
            "print": printer(print_characters),
            "open": open_file,
            rewrite.HELPER: self._checks,
        }
        """The names to add to the builtins of the namespace. All but the last replace a builtin."""

    def transform(self, tree: ast.Module) -> ast.Module:
        """Rewrite a cell in place and return it. Line and column numbers stay, so tracebacks stay the same."""
        if self._follower:
            self._follower.block(tree, self._variables)
        self._lazy_names.see(tree)
        return rewrite.rewrite(tree, self._lazy_names)

    def host(self, values: Iterable[object]) -> None:
        """Let functions of the host (`llm_query`, the caller's tools) get lazy texts, not real ones."""
        self._checks.host |= {id(value): value for value in values if callable(value)}

    def ran(self, namespace: Mapping[str, object]) -> None:
        """Note the variables of the namespace after a cell, on which the reads of the next one may depend."""
        if self._follower:
            self._variables = namespace
            self._follower.ran(namespace)
