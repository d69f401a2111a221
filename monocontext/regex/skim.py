"""`finditer`, past stretches that lack a literal which every match must have: `str.find` is ten times the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.needs import INFINITE, Literal

_CROWDED = 200
"""Characters from one literal to the next, on average, below which jumping costs more than it saves."""


def skim(
    pattern: re.Pattern[str], window: str, at: int, literal: Literal | None, is_never_empty: bool
) -> Iterator[re.Match[str]]:
    """What `pattern.finditer(window, at)` gives."""
    sought = _as_found(literal, window) if literal else None
    if literal is None or sought is None:
        return pattern.finditer(window, at)
    hay, needle = sought
    if hay.find(needle, at + literal.earliest) < 0:
        return iter(())
    if not is_never_empty or literal.latest >= INFINITE:
        return pattern.finditer(window, at)
    if literal.earliest == literal.latest:
        return _at_literals(pattern, window, at, hay, needle, literal.latest)
    return _near_literals(pattern, window, at, hay, needle, literal)


def _as_found(literal: Literal, window: str) -> tuple[str, str] | None:
    """The window and the literal in the form in which `find` compares as `re` does; None: there is none."""
    if not literal.flags:
        return window, literal.text
    if window.isascii() and literal.text.isascii():
        return window.lower(), literal.text.lower()
    return None


def _at_literals(
    pattern: re.Pattern[str], window: str, at: int, hay: str, needle: str, offset: int
) -> Iterator[re.Match[str]]:
    """The literal stands at a fixed offset in every match: try there only."""
    begin = at
    tries = 0
    found = hay.find(needle, at + offset)
    while found >= 0:
        match = pattern.match(window, found - offset)
        if match:
            yield match
            at = match.end()
            found = hay.find(needle, at + offset)
        else:
            at = found - offset + 1
            found = hay.find(needle, found + 1)
        tries += 1
        if tries == 64 and at - begin < tries * _CROWDED:
            yield from pattern.finditer(window, at)
            return


def _near_literals(
    pattern: re.Pattern[str], window: str, at: int, hay: str, needle: str, literal: Literal
) -> Iterator[re.Match[str]]:
    """The literal stands in a known range: begin where the next one can be reached from."""
    while True:
        found = hay.find(needle, at + literal.earliest)
        if found < 0:
            return
        match = pattern.search(window, max(at, found - literal.latest))
        if match is None:
            return
        yield match
        at = match.end()
