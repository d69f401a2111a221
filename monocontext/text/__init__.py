"""The text type `Monocontext`, its views, lines and lazy lists, and regular expressions and search over it.

`monocontext.py` has the class, `str_methods.py` the methods of `str`, `source.py` the sources of characters.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext, served_text

__all__ = ["Monocontext", "served_text"]

_HERE = frozenset((*__all__, "_derive_again", "_open_again"))  # pickles and other processes name this package


def __getattr__(name: str) -> object:
    if name not in _HERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("monocontext.text.monocontext"), name)
