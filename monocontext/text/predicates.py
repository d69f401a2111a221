"""Compute `isalpha()`, `islower()` and similar methods of a text that comes in pieces, up to the piece that decides."""

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
    first = True
    for text in texts:
        if not (text if first else "a" + text).isidentifier():
            return False
        first = False
    return not first


def is_one_case(test: Callable[[str], bool], letter: str, texts: Iterable[str]) -> bool:
    """`str.islower` or `str.isupper`: no cased character fails the test, and one passes. `letter` passes it."""
    found = False
    for text in texts:
        if not test(letter + text):
            return False
        found = found or test(text)
    return found


def is_title(texts: Iterable[str]) -> bool:
    """`str.istitle`: upper case only at the beginning of runs of cased letters. A run may span pieces."""
    cased = inside = False
    for text in texts:
        if not (("A" if inside else "A ") + text).istitle():
            return False
        cased = cased or not (("A" + text).isupper() and ("a" + text).islower())
        inside = text[-1].isupper() or text[-1].islower() or text[-1].istitle()
    return cased
