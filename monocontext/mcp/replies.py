"""Replies that fit: what a tool answers, cut where a model's host would cut it, with the place where it goes on. Pure
but for the text that is read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monocontext.grep import Hit
    from monocontext.text import Monocontext

MAX_REPLY_BYTES = 20_000
"""Of one reply, in UTF-8. Hosts replace or cut what is longer: Claude Code warns above 10,000 tokens."""
_NOTE_BYTES = 200
"""Kept free for the line that says where it goes on."""
_LINE_CHARACTERS = 300
"""Shown of a line that matches."""
SEARCH_SECONDS = 20.0
"""After which a search says how far it came. Clients give up on a call after 60 s."""
_WINDOW = 16 << 20
"""Characters that are searched before the clock is looked at for the first time."""


def slice_reply(text: Monocontext, start: int, stop: int) -> str:
    """`text[start:stop]`, and where that is too long one line more that states the range it is cut at."""
    size = len(text)
    if start >= stop:
        return f"[nothing there: characters {start} to {stop} of {size}]"
    room = MAX_REPLY_BYTES - _NOTE_BYTES
    piece = str(text[start : min(stop, start + room)])
    kept = piece.encode()[:room].decode(errors="ignore")
    end = start + len(kept)
    if end >= stop:
        return kept
    return f"{kept}\n[cut: characters {start} to {end} of {size}; next range: start={end} stop={stop}]"


def list_reply(rows: Iterable[str], *, nothing: str, most: int = 500) -> str:
    """Rows, one a line. What the last one begins with, up to two spaces, is what `after` takes to go on."""
    kept: list[str] = []
    left = MAX_REPLY_BYTES - _NOTE_BYTES
    for row in rows:
        left -= len(row.encode()) + 1
        if kept and (left < 0 or len(kept) == most):
            return "\n".join(kept) + f"\n[cut after {len(kept)}; next range: after={kept[-1].split('  ', 1)[0]}]"
        kept.append(row.encode()[: MAX_REPLY_BYTES - _NOTE_BYTES].decode(errors="ignore"))
    return "\n".join(kept) or nothing


def search_reply(
    text: Monocontext,
    pattern: str,
    *,
    ignore_case: bool,
    fixed: bool,
    max_hits: int,
    start: int,
    stop: int,
    seconds: float = SEARCH_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Lines that match, as `character:line number:line`, and how far the search came."""
    shown = re.compile(re.escape(pattern) if fixed else pattern, re.IGNORECASE if ignore_case else 0)
    rows: list[str] = []
    left = MAX_REPLY_BYTES - _NOTE_BYTES
    size, at, window, end = len(text), start, _WINDOW, clock() + seconds
    while at < stop:
        began = clock()
        upto = min(stop, at + window)
        for hit in text.grep(pattern, ignore_case=ignore_case, fixed=fixed, start=at, stop=upto):
            row = f"{hit.offset}:{hit.line_number}:{_around(hit, shown)}"
            left -= len(row.encode()) + 1
            if rows and (left < 0 or len(rows) == max_hits):
                return _cut(rows, at, stop, size)
            rows.append(row)
            at = hit.offset + 1
        at = upto
        now = clock()
        if at < stop and now >= end:
            return _cut(rows, at, stop, size)
        window = window * 4 if now - began < seconds / 20 else max(_WINDOW, window // 2)
    return "\n".join([*rows, f"[{_count(rows)}; characters {start} to {stop} of {size} are searched]"])


def _cut(rows: list[str], at: int, stop: int, size: int) -> str:
    return "\n".join([*rows, f"[cut: {_count(rows)} so far, of {size} characters; next range: start={at} stop={stop}]"])


def _count(rows: list[str]) -> str:
    return "1 line matches" if len(rows) == 1 else f"{len(rows) or 'no'} lines match"


def _around(hit: Hit, pattern: re.Pattern[str]) -> str:
    """A line, of a long one the part around its first match."""
    if len(hit.line) <= _LINE_CHARACTERS:
        return hit.line
    found = pattern.search(hit.line)
    first = max(0, (found.start() if found else 0) - _LINE_CHARACTERS // 3)
    part = hit.line[first : first + _LINE_CHARACTERS]
    return ("..." if first else "") + part + ("..." if first + len(part) < len(hit.line) else "")
