"""The text type `Monocontext`, its views, lines and lazy lists, and regular expressions and search over it.

`monocontext.py` has the class, `str_methods.py` the methods of `str`, `source.py` the sources of characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext, served_text

__all__ = ["Monocontext", "served_text"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from monocontext.text import monocontext

    return getattr(monocontext, name)
