"""Recognise lazy values, and make them real.

`text.monocontext` is not imported here: it imports this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from monocontext.text.lazy_kinds import LazyItems, LazyMapping, LazyText

if TYPE_CHECKING:
    from monocontext.text.lazy_lists import LazyList
    from monocontext.text.str_methods import StrLike

# Uses neither `x.__class__`, which may run code of `x`, nor the hooks of an ABC, which cost four times as much.
_is_subclass = type.__subclasscheck__


def is_text(value: object) -> TypeGuard[StrLike]:
    """Whether this is a lazy text. Looks only at the type."""
    return _is_subclass(LazyText, type(value))


def is_list(value: object) -> TypeGuard[LazyList]:
    """Whether this is a lazy list. Looks only at the type."""
    return _is_subclass(LazyItems, type(value))


def is_mapping(value: object) -> TypeGuard[LazyMapping]:
    """Whether this is a lazy dict. Looks only at the type."""
    return _is_subclass(LazyMapping, type(value))


def is_small(text: StrLike) -> bool:
    """Whether the text fits into one `str` (no GET); a text of unknown length counts as large."""
    return text._is_small


def read_head(text: StrLike, characters: int) -> str:
    """The first characters as a real `str`, regardless of the limit (GETs of a slice)."""
    if text.span.length_is_known:
        return text.span.read(0, min(characters, len(text)))
    taken: list[str] = []
    for piece in pieces(text):
        taken.append(piece[:characters])
        characters -= len(taken[-1])
        if not characters:
            break
    return "".join(taken)


def pieces(text: StrLike) -> Iterator[str]:
    """The whole text in real `str` windows, fetched ahead (1 GET for about 8 MiB stored)."""
    return text.span.texts()


def read_whole(text: StrLike, what: str, instead: str) -> str:
    """The text as one real `str`, up to its limit. Above it raises `ContextTooLarge`, which says what to write
    `instead`."""
    return text._whole(what, instead)
