"""Keep the path that pickles of lazy lists, made by 0.1, name. See `monocontext.text.lazy_lists`."""

from monocontext.text.lazy_lists import _make_again

__all__ = ["_make_again"]
