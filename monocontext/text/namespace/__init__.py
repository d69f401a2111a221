"""Make code in a REPL take a `Monocontext` for a real `str`.

    patch = context.repl_namespace()
    namespace = {"__builtins__": vars(builtins) | patch.names, "context": context}
    exec(compile(patch.transform(ast.parse(code)), "<cell>", "exec"), namespace)

Three means do this, all within one namespace; nothing else in the process changes.

- **Names.** `__import__` gives `re`, `json`, `io` and `csv` that take lazy texts, `print` shows the beginning of a
  large one, `open` gives files that take them. `sys.modules` is not touched, so libraries keep the real modules.
- **Rewritten code.** `isinstance(x, T)`, `type(x)`, `str(x)`, `map(str, ...)`, `", ".join([...])` and the
  patterns of `match` answer as for a `str` (lazy lists as a `list`). Only these plain forms, and only where the name
  is the builtin when the call is made; for any other value the call runs as it was written.
- **A real `str` for libraries.** Rewritten calls give functions that know no lazy text a real `str`, up to the limit.

Out of reach, and documented: `x.__class__`, `builtins.isinstance(x, str)`, `importlib.import_module("re")`, and code in
strings given to `exec` and `eval`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.text.namespace.kit import NamespacePatch

__all__ = ["NamespacePatch"]


def __getattr__(name: str) -> object:
    if name != "NamespacePatch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from monocontext.text.namespace.kit import NamespacePatch

    return NamespacePatch
