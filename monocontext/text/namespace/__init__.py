"""Make code in a REPL take a `Monocontext` for a real `str`.

    patch = context.repl_namespace()
    namespace = {"__builtins__": vars(builtins) | patch.names, "context": context}
    exec(code, namespace)

It does so by names alone, within one namespace; code is not changed, and nothing else in the process is. `isinstance`,
`type` and `str` answer as for a `str` (a lazy list or dict as for a real one), `print` shows the beginning of a large
text, and `open` gives files that take one. `import` gives `re`, `json`, `io`, `csv` and `ast` that take lazy texts.
`sys.modules` is not touched, so libraries keep the real modules.

A library that wants a real `str` raises its own `TypeError`: give it `str(context)`, or a slice. So do `x.__class__`,
`builtins.isinstance`, and `match x: case str()`, in which `str` must be a class.
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
