"""`NamespacePatch`: the names for a namespace. `Monocontext.repl_namespace()` makes one."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Protocol

from monocontext.text.namespace.builtin_names import STR, TYPE, passes_isinstance, passes_issubclass
from monocontext.text.namespace.files import open_file
from monocontext.text.namespace.modules import make_importer
from monocontext.text.namespace.printing import PRINT_CHARACTERS, make_print


class CodeListener(Protocol):
    """Receives the code of each cell before it runs, and the variables after it."""

    def block(self, tree: ast.Module, known: Mapping[str, object]) -> None:
        """Take the code of a cell that runs next; `known` are the variables of its namespace."""
        ...

    def ran(self, known: Mapping[str, object]) -> None:
        """Take the variables of the namespace after a cell."""
        ...


class NamespacePatch:
    """The patch of one namespace. If its code changes a module of ours (`json.loads = mine`), the change stays in
    it."""

    def __init__(self, *, print_characters: int = PRINT_CHARACTERS, follower: CodeListener | None = None):
        """`print_characters`: the most characters of a lazy value that `print` shows. `follower`: reads ahead of the
        code."""
        self._follower = follower
        self._variables: Mapping[str, object] = {}
        self.names: dict[str, Any] = {
            "__import__": make_importer(),
            "isinstance": passes_isinstance,
            "issubclass": passes_issubclass,
            "open": open_file,
            "print": make_print(print_characters),
            "str": STR,
            "type": TYPE,
        }
        """The names to add to the builtins of the namespace, each in place of a builtin."""

    def transform(self, tree: ast.Module) -> ast.Module:
        """Take the code of a cell before it runs, to read ahead of it. Returns the tree unchanged."""
        if self._follower:
            self._follower.block(tree, self._variables)
        return tree

    def ran(self, namespace: Mapping[str, object]) -> None:
        """Note the variables of the namespace after a cell, on which the reads of the next one may depend."""
        if self._follower:
            self._variables = namespace
            self._follower.ran(namespace)
