"""Write the replies of tools, each of at most `MAX_REPLY_BYTES`. A cut reply ends with the range that continues it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from monocontext.stores.secrets_in_urls import without_secrets
from monocontext.text_tools.outputs import Listed, MatchedLine, Matches, Range, Slice, ToolReply

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext
    from monocontext.text.search.hits import Hit
    from monocontext.text.search.passages import Passages

MAX_REPLY_BYTES = 20_000
"""The longest reply in bytes of UTF-8. Hosts cut longer ones; Claude Code warns above 10,000 tokens."""
_NOTE_BYTES = 200  # the bytes that are reserved for the last line, which says how to continue
_MOST_ROWS = 500  # the most rows of a list
_LINE_CHARACTERS = 300  # the most characters of a matching line that are shown
_ERROR_CHARACTERS = 800  # the longest message about a refused call
SEARCH_SECONDS = 20.0  # a search stops after this time and says how far it came. Clients give up on a call after 60 s
_FIRST_PART_CHARACTERS = 16 << 20  # the first part of a search; the clock is read after each part
NOT_A_PATTERN = (re.error, OverflowError, RecursionError)  # the errors that `re` raises for an invalid expression


def slice_reply(text: Monocontext, start: int, stop: int) -> ToolReply[Slice]:
    """The reply with `text[start:stop]`. A reply that is cut ends with a line that gives the next range."""
    size = len(text)
    if start >= stop:
        none = f"[nothing there: characters {start} to {stop} of {size}]"
        return ToolReply(none, Slice("", start, start, size, None))
    room = MAX_REPLY_BYTES - _NOTE_BYTES
    piece = str(text[start : min(stop, start + room)])
    part = piece.encode()[:room].decode(errors="ignore")
    end = start + len(part)
    if end >= stop:
        return ToolReply(part, Slice(part, start, end, size, None))
    note = f"[cut: characters {start} to {end} of {size}; next range: start={end} stop={stop}]"
    return ToolReply(f"{part}\n{note}", Slice(part, start, end, size, Range(end, stop)))


def fit_error(message: str) -> str:
    """A message on one line, without the secrets in URLs. A long one, which may quote any text, loses its middle."""
    words = [without_secrets(word) for word in message.split()]
    line = " ".join(words).encode(errors="backslashreplace").decode()
    if len(line) <= _ERROR_CHARACTERS:
        return line
    half = _ERROR_CHARACTERS // 2
    return f"{line[:half]}[... {len(line) - 2 * half:,} characters ...]{line[-half:]}"


def list_reply(
    rows: Iterable[tuple[str, str | None]], *, nothing: str, is_late: Callable[[], bool] = lambda: False
) -> ToolReply[Listed]:
    """The reply with a list. `rows`: the name and the line of each item; an item whose line is None is left out. If the
    list is too long, or `is_late` returns True, the reply ends with the name after which to continue. `nothing`: the
    reply for an empty list."""
    lines: list[str] = []
    room = remaining = MAX_REPLY_BYTES - 2 * _NOTE_BYTES
    last: str | None = None
    for name, row in rows:
        if row is not None:
            line = row.encode()[:room].decode(errors="ignore")
            remaining -= len(line.encode()) + 1
            if lines and (remaining < 0 or len(lines) == _MOST_ROWS):
                break
            lines.append(line)
        last = name
        if is_late():
            break
    else:
        return ToolReply("\n".join(lines) or nothing, Listed(lines, None))
    note = f"[cut after {len(lines)}; next: after={last}]"
    return ToolReply("\n".join([*lines, note]), Listed(lines, last))


def passages_reply(passages: Passages) -> ToolReply[Matches]:
    """The reply with passages, each below a line with its location. Passages that do not fit are only counted."""
    hits = [MatchedLine(item.document, item.document_line or item.line, item.start, item.text) for item in passages]
    note = passages.note or f"passages: {len(passages)}; no other scores higher"
    lines: list[str] = []
    remaining = MAX_REPLY_BYTES - 2 * _NOTE_BYTES
    for number, item in enumerate(passages):
        location = f"{'line ' if item.document is None else ''}{item.place}, characters {item.start} to {item.stop}"
        row = f"[{location}]\n{item.text.rstrip()}"
        remaining -= len(row.encode()) + 1
        if number and remaining < 0:
            cut = f"cut after {number} of {len(hits)} passages: ask for fewer"
            text = "\n".join([*lines, f"[{cut}]", f"[{note}]"])
            return ToolReply(text, Matches(hits[:number], None, f"{cut}; {note}"))
        lines.append(row)
    return ToolReply("\n".join([*lines, f"[{note}]"]), Matches(hits, None, note))


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
) -> Iterator[ToolReply[Matches]]:
    """Yield the reply so far after each part of the text. The last one says how far the search came.

    A hit is `document:line:character:text`, with the line in its document, or `character:line:text` in a text without
    documents. Lines between documents are not searched.
    """
    matcher = re.compile(re.escape(pattern) if fixed else pattern, re.IGNORECASE if ignore_case else 0)
    has_documents = text._own_documents is not None
    results = _Results(max_hits)
    size, offset, part_characters = len(text), start, _FIRST_PART_CHARACTERS
    end = clock() + seconds
    while offset < stop:
        began = clock()
        part_stop = min(stop, offset + part_characters)
        for hit in text.grep(pattern, ignore_case=ignore_case, fixed=fixed, start=offset, stop=part_stop):
            if has_documents and hit.document is None:
                if clock() >= end:
                    yield results.reply_so_far(Range(hit.offset + 1, stop))
                    return
                continue
            line = hit.document_line or hit.line_number
            if not results.add(MatchedLine(hit.document, line, hit.offset, _excerpt(hit, matcher))):
                yield results.reply_so_far(Range(offset, stop))
                return
            offset = hit.offset + 1
        offset = part_stop
        now = clock()
        if offset < stop:
            yield results.reply_so_far(Range(offset, stop))
            if now >= end:
                return
        is_quick = now - began < seconds / 20  # parts become larger, but the clock is read often enough
        part_characters = part_characters * 4 if is_quick else max(_FIRST_PART_CHARACTERS, part_characters // 2)
    yield results.reply(f"{results.count()}; characters {start} to {stop} of {size} are searched")


class _Results:
    """Collects the matching lines of a search, as many as fit into a reply."""

    def __init__(self, max_hits: int) -> None:
        self._max_hits = max_hits
        self._rows: list[str] = []
        self._hits: list[MatchedLine] = []
        self._free_bytes = MAX_REPLY_BYTES - 2 * _NOTE_BYTES

    def add(self, hit: MatchedLine) -> bool:
        """Add a line. Returns whether it fits; the first one always does."""
        location = f"{hit.offset}:{hit.line}" if hit.document is None else f"{hit.document}:{hit.line}:{hit.offset}"
        row = f"{location}:{hit.text}"
        self._free_bytes -= len(row.encode()) + 1
        if self._rows and (self._free_bytes < 0 or len(self._rows) == self._max_hits):
            return False
        self._rows.append(row)
        self._hits.append(hit)
        return True

    def count(self) -> str:
        return "1 line matches" if len(self._rows) == 1 else f"{len(self._rows) or 'no'} lines match"

    def reply(self, note: str, following: Range | None = None) -> ToolReply[Matches]:
        return ToolReply("\n".join([*self._rows, f"[{note}]"]), Matches(self._hits[:], following, note))

    def reply_so_far(self, following: Range) -> ToolReply[Matches]:
        """The reply of a search that has not reached its end, with the range that remains to be searched."""
        next_range = f"next range: start={following.start} stop={following.stop}"
        return self.reply(f"cut: {self.count()} so far; {next_range}", following)


def _excerpt(hit: Hit, pattern: re.Pattern[str]) -> str:
    """The line of a hit; of a long line, the part around its first match."""
    if len(hit.line) <= _LINE_CHARACTERS:
        return hit.line
    match = pattern.search(hit.line)
    first = max(0, (match.start() if match else 0) - _LINE_CHARACTERS // 3)
    part = hit.line[first : first + _LINE_CHARACTERS]
    return ("..." if first else "") + part + ("..." if first + len(part) < len(hit.line) else "")
