"""Make code in a REPL take a `Monocontext` for a real `str`.

    patch = context.repl_namespace()
    namespace = {"__builtins__": vars(builtins) | patch.names, "context": context}
    exec(code, namespace)

It does so by names alone, within one namespace; code is not changed, and nothing else in the process is. `isinstance`,
`type` and `str` answer as for a `str` (a lazy list or dict as for a real one), `print` shows the beginning of a large
text, and `open` gives files that take one. `import` gives `re`, `json`, `io`, `csv` and `ast` that take lazy texts.
`sys.modules` is not touched, so libraries keep the real modules.

Not covered: a library that wants a real `str` raises its own `TypeError` (give it `str(context)`, or a slice), and
`x.__class__`, `builtins.isinstance` and `match x: case str()` tell the real type.
"""

from __future__ import annotations

from typing import Any

from monocontext.text.namespace.builtin_names import STR, TYPE, passes_isinstance, passes_issubclass
from monocontext.text.namespace.modules import make_importer
from monocontext.text.namespace.output import open_file, print_values

__all__ = ["NamespacePatch"]


class NamespacePatch:
    """A patch for one namespace. Code there that changes a module (`json.loads = mine`) changes it for no other one."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {
            "__import__": make_importer(),
            "isinstance": passes_isinstance,
            "issubclass": passes_issubclass,
            "open": open_file,
            "print": print_values,
            "str": STR,
            "type": TYPE,
        }
        """The names to add to the builtins of the namespace, each in place of a builtin."""
