"""The two kinds of lazy values, by which code that must not import them knows them."""

from __future__ import annotations


class LazyText:
    """A text that stands for a `str`: `Monocontext`, and nothing else in this package."""

    __slots__ = ()


class LazyItems:
    """A lazy list of strings that stands for a `list`: what `split` and `splitlines` give for large texts."""

    __slots__ = ()
