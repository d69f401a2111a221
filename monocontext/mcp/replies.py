"""Write replies that fit into `MAX_REPLY_BYTES`. A longer one is cut and ends in the range to go on with."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monocontext.memory.entry import Ranked
    from monocontext.text.monocontext import Monocontext
    from monocontext.text.search.grep import Hit
    from monocontext.text.search.ranked import Passages

MAX_REPLY_BYTES = 20_000
"""Of one reply, in UTF-8. Hosts replace or cut what is longer: Claude Code warns above 10,000 tokens."""
_NOTE_BYTES = 200
"""Reserved for the line that says where the reply goes on."""
_LINE_CHARACTERS = 300
"""Shown of a matching line."""
_ERROR_CHARACTERS = 800
"""Of a message about a call that is refused."""
SEARCH_SECONDS = 20.0
"""After which a search says how far it came. Clients give up on a call after 60 s."""
_WINDOW = 16 << 20
"""Characters searched before the first look at the clock."""
NOT_A_PATTERN = (re.error, OverflowError, RecursionError)
"""Raised by `re` for an invalid expression."""


def slice_reply(text: Monocontext, start: int, stop: int) -> str:
    """`text[start:stop]`, and where that is too long one line more that states the range it is cut at."""
    size = len(text)
    if start >= stop:
        return f"[nothing there: characters {start} to {stop} of {size}]"
    room = MAX_REPLY_BYTES - _NOTE_BYTES
    piece = str(text[start : min(stop, start + room)])
    part = piece.encode()[:room].decode(errors="ignore")
    end = start + len(part)
    if end >= stop:
        return part
    return f"{part}\n[cut: characters {start} to {end} of {size}; next range: start={end} stop={stop}]"


def fit_error(message: str) -> str:
    """A message on one line. What it quotes may be as long as the caller likes, so the middle of a long one goes."""
    line = " ".join(message.split())
    if len(line) <= _ERROR_CHARACTERS:
        return line
    half = _ERROR_CHARACTERS // 2
    return f"{line[:half]}[... {len(line) - 2 * half:,} characters ...]{line[-half:]}"


def list_reply(rows: Iterable[str], *, nothing: str, most: int = 500) -> str:
    """Rows, one a line. What the last one begins with, up to two spaces, is what `after` takes to go on."""
    lines: list[str] = []
    left = MAX_REPLY_BYTES - _NOTE_BYTES
    for row in rows:
        left -= len(row.encode()) + 1
        if lines and (left < 0 or len(lines) == most):
            return "\n".join(lines) + f"\n[cut after {len(lines)}; next range: after={lines[-1].split('  ', 1)[0]}]"
        lines.append(row.encode()[: MAX_REPLY_BYTES - _NOTE_BYTES].decode(errors="ignore"))
    return "\n".join(lines) or nothing


def search_reply(text: Monocontext, pattern: str, **arguments: Any) -> str:
    """Matching lines, as `character:line number:line`, and how far the search came; see `search_replies`."""
    return deque(search_replies(text, pattern, **arguments), maxlen=1).pop()


def passages_reply(found: Passages) -> str:
    """Passages, each after a line that says where it stands; those that do not fit are left out by name."""
    rows = [
        f"[{f'{one.document}, ' if one.document else ''}line {one.line}, characters {one.start} to {one.stop}]\n"
        f"{one.text.rstrip()}"
        for one in found
    ]
    return _fit_passages(rows, f"[{found.note}]" if found.note else f"[passages: {len(found)}; none scores more]")


def ranked_reply(found: list[Ranked]) -> str:
    """The same of the entries of a memory."""
    rows = [f"[key {one.key!r}, line {one.line_number}]\n{one.text.rstrip()}" for one in found]
    return _fit_passages(rows, f"[keys: {len(found)}; none scores more]")


def _fit_passages(given: list[str], note: str) -> str:
    rows: list[str] = []
    left = MAX_REPLY_BYTES - 2 * _NOTE_BYTES
    for row in given:
        left -= len(row.encode()) + 1
        if rows and left < 0:
            rows.append(f"[cut after {len(rows)} of {len(given)} passages: ask for fewer]")
            break
        rows.append(row)
    return "\n".join([*rows, note])


def search_replies(
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
) -> Iterator[str]:
    """The reply after each part of the text that is searched; the last one is that of the whole search."""
    matcher = re.compile(re.escape(pattern) if fixed else pattern, re.IGNORECASE if ignore_case else 0)
    rows: list[str] = []
    left = MAX_REPLY_BYTES - 2 * _NOTE_BYTES
    size, at, window, end = len(text), start, _WINDOW, clock() + seconds
    while at < stop:
        began = clock()
        upto = min(stop, at + window)
        for hit in text.grep(pattern, ignore_case=ignore_case, fixed=fixed, start=at, stop=upto):
            row = f"{hit.offset}:{hit.line_number}:{_excerpt(hit, matcher)}"
            left -= len(row.encode()) + 1
            if rows and (left < 0 or len(rows) == max_hits):
                yield _cut_reply(rows, at, stop, size)
                return
            rows.append(row)
            at = hit.offset + 1
        at = upto
        now = clock()
        if at < stop:
            yield _cut_reply(rows, at, stop, size)
            if now >= end:
                return
        window = window * 4 if now - began < seconds / 20 else max(_WINDOW, window // 2)
    yield "\n".join([*rows, f"[{_count_lines(rows)}; characters {start} to {stop} of {size} are searched]"])


def _cut_reply(rows: list[str], at: int, stop: int, size: int) -> str:
    return "\n".join(
        [*rows, f"[cut: {_count_lines(rows)} so far, of {size} characters; next range: start={at} stop={stop}]"]
    )


def _count_lines(rows: list[str]) -> str:
    return "1 line matches" if len(rows) == 1 else f"{len(rows) or 'no'} lines match"


def _excerpt(hit: Hit, pattern: re.Pattern[str]) -> str:
    """A line, of a long one the part around its first match."""
    if len(hit.line) <= _LINE_CHARACTERS:
        return hit.line
    found = pattern.search(hit.line)
    first = max(0, (found.start() if found else 0) - _LINE_CHARACTERS // 3)
    part = hit.line[first : first + _LINE_CHARACTERS]
    return ("..." if first else "") + part + ("..." if first + len(part) < len(hit.line) else "")
