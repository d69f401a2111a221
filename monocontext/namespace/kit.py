"""`Kit`: the names and the pass that a namespace needs, as `Monocontext.repl_namespace()` hands them out."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from monocontext.namespace import rewrite
from monocontext.namespace.answers import Answers
from monocontext.namespace.files import open_file
from monocontext.namespace.imports import importer
from monocontext.namespace.printing import PRINT_CHARACTERS, printer


class Kit:
    """Belongs to one namespace: what its code sets on a shim module (`json.loads = mine`) stays in it."""

    def __init__(
        self, *, print_characters: int = PRINT_CHARACTERS, on_block: Callable[[ast.Module], None] | None = None
    ):
        self._on_block = on_block
        """Is given each cell as it was written, just before it runs."""
        self.names: dict[str, Any] = {
            "__import__": importer(),
            "print": printer(print_characters),
            "open": open_file,
            rewrite.HELPER: Answers(),
        }
        """Those that are builtins replace the builtin of the namespace; the other is a builtin or a global of it."""

    def transform(self, tree: ast.Module) -> ast.Module:
        """Rewrite a cell in place and return it. Line and column numbers stay, so tracebacks and their marks do."""
        if self._on_block:
            self._on_block(tree)
        return rewrite.rewrite(tree)
