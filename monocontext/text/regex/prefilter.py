"""Run `finditer` only near a literal that every match has: `str.find` is ten times as fast as `re`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.engine.scan import find
from monocontext.format.filters.query import INFINITE, Literal

_AS_FAST = 2
"""`re` finds a pattern that begins with a literal of at most this many characters as fast as `find` does. In text that
is not ASCII, where `find` cannot use the C library, it does so for any literal."""
_CROWDED = 200
"""If literals are fewer characters apart than this on average, a search for each takes longer than `finditer`."""
_TRIES = 64
"""The number of matches or literals by which that is measured."""


def find_matches(
    pattern: re.Pattern[str],
    window: str,
    at: int,
    literal: Literal | None,
    is_never_empty: bool,
    within_line: bool = False,
    begins_with_literal: bool = False,
) -> Iterator[re.Match[str]]:
    """The matches of `pattern.finditer(window, at)`.

    `literal` is in every match, and with `begins_with_literal` at its start. `is_never_empty`: no match is empty.
    `within_line`: neither a match nor its look-around goes over a newline.
    """
    if begins_with_literal and literal and (len(literal.text) <= _AS_FAST or not window.isascii()):
        return pattern.finditer(window, at)
    folded = _fold_for_find(literal, window) if literal else None
    if literal is None or folded is None:
        return pattern.finditer(window, at)
    hay, needle = folded
    if find(hay, needle, at + literal.earliest) < 0:
        return iter(())
    if not is_never_empty or (literal.latest >= INFINITE and not within_line):
        return pattern.finditer(window, at)
    if literal.earliest == literal.latest:
        return _at_literals(pattern, window, at, hay, needle, literal.latest)
    return _near_literals(pattern, window, at, hay, needle, literal)


def _fold_for_find(literal: Literal, window: str) -> tuple[str, str] | None:
    """The window and the literal, in lower case if `re` ignores case. None if `find` cannot compare as `re` does."""
    if not literal.flags:
        return window, literal.text
    if window.isascii() and literal.text.isascii():
        return window.lower(), literal.text.lower()
    return None


def _at_literals(
    pattern: re.Pattern[str], window: str, at: int, hay: str, needle: str, offset: int
) -> Iterator[re.Match[str]]:
    """The literal is at a fixed offset in every match: try only there."""
    begin = at
    tries = 0
    found = find(hay, needle, at + offset)
    while found >= 0:
        match = pattern.match(window, found - offset)
        if match:
            yield match
            at = match.end()
            found = find(hay, needle, at + offset)
        else:
            at = found - offset + 1
            found = find(hay, needle, found + 1)
        tries += 1
        if tries == _TRIES and at - begin < tries * _CROWDED:
            yield from pattern.finditer(window, at)
            return


def _near_literals(
    pattern: re.Pattern[str], window: str, at: int, hay: str, needle: str, literal: Literal
) -> Iterator[re.Match[str]]:
    """The literal is in a known range of each match, or in its line: search from the first place that can reach it."""
    begin = at
    tries = 0
    while (found := find(hay, needle, at + literal.earliest)) >= 0:
        first = found - literal.latest if literal.latest < INFINITE else window.rfind("\n", at, found) + 1
        match = pattern.search(window, max(at, first))
        if match is None:
            return
        yield match
        at = match.end()
        tries += 1
        if tries == _TRIES and at - begin < tries * _CROWDED:
            yield from pattern.finditer(window, at)
            return
