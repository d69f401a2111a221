"""Compute the `is...` predicates of `str` over a text in pieces, up to the first piece that decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def all_of(test: Callable[[str], bool], texts: Iterable[str]) -> bool:
    """`isalpha`, `isdigit`, `isspace` and similar ones: every piece passes, and there is at least one."""
    found = False
    for text in texts:
        if not test(text):
            return False
        found = True
    return found


def is_printable(texts: Iterable[str]) -> bool:
    return all(text.isprintable() for text in texts)


def is_identifier(texts: Iterable[str]) -> bool:
    first = True
    for text in texts:
        if not (text if first else "a" + text).isidentifier():
            return False
        first = False
    return not first


def is_lower(texts: Iterable[str]) -> bool:
    """No character of the other case, and at least one of this case."""
    cased = False
    for text in texts:
        if not ("a" + text).islower():
            return False
        cased = cased or text.islower()
    return cased


def is_upper(texts: Iterable[str]) -> bool:
    cased = False
    for text in texts:
        if not ("A" + text).isupper():
            return False
        cased = cased or text.isupper()
    return cased


def is_title(texts: Iterable[str]) -> bool:
    """Upper case occurs only at the beginning of runs of cased letters; a run may span pieces."""
    cased = inside = False
    for text in texts:
        if not (("A" if inside else "A ") + text).istitle():
            return False
        cased = cased or not (("A" + text).isupper() and ("a" + text).islower())
        inside = text[-1].isupper() or text[-1].islower() or text[-1].istitle()
    return cased
