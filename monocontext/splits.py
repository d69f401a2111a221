"""Pickles of lazy lists, made by 0.1, name this module. The code is in `monocontext.text.lazy_lists`."""

from monocontext.text.lazy_lists import _make_again

__all__ = ["_make_again"]
