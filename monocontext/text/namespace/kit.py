"""`NamespacePatch`: the names for a namespace. `Monocontext.repl_namespace()` makes one."""

from __future__ import annotations

from typing import Any

from monocontext.text.namespace.builtin_names import STR, TYPE, passes_isinstance, passes_issubclass
from monocontext.text.namespace.files import open_file
from monocontext.text.namespace.modules import make_importer
from monocontext.text.namespace.printing import PRINT_CHARACTERS, make_print


class NamespacePatch:
    """The patch of one namespace. If its code changes a module of ours (`json.loads = mine`), the change stays in
    it."""

    def __init__(self, *, print_characters: int = PRINT_CHARACTERS):
        """`print_characters`: the most characters of a lazy value that `print` shows."""
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
