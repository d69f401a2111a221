"""Compute `isalpha()`, `islower()` and similar methods of a text that comes in pieces, up to the piece that decides.

Pieces are not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


def all_of(test: Callable[[str], bool], texts: Iterable[str]) -> bool:
    """Whether all pieces pass `str.isalpha`, `str.isdigit` or a similar test, and there is at least one."""
    found = False
    for text in texts:
        if not test(text):
            return False
        found = True
    return found


def is_identifier(texts: Iterable[str]) -> bool:
    """`str.isidentifier`. A letter goes before each later piece, whose first character is not the first of the text."""
    is_first = True
    for text in texts:
        if not (text if is_first else "a" + text).isidentifier():
            return False
        is_first = False
    return not is_first


def is_one_case(test: Callable[[str], bool], letter: str, texts: Iterable[str]) -> bool:
    """`str.islower` or `str.isupper`: no cased character fails the test, and one passes.

    `letter` is a letter that passes: with it before a piece, the test tells only whether a cased character of the piece
    fails.
    """
    found = False
    for text in texts:
        if not test(letter + text):
            return False
        found = found or test(text)
    return found


def is_title(texts: Iterable[str]) -> bool:
    """`str.istitle`: upper case only at the beginning of runs of cased letters. A run may span pieces."""
    cased = in_run = False
    for text in texts:
        if not (("A" if in_run else "A ") + text).istitle():  # "A" continues a run; "A " ends one
            return False
        cased = cased or _has_cased(text)
        in_run = text[-1].isupper() or text[-1].islower() or text[-1].istitle()
    return cased


def _has_cased(text: str) -> bool:
    # Without a cased character, both letters decide alone.
    return not (("A" + text).isupper() and ("a" + text).islower())
