"""What a search by line would read, without reading any text: `Monocontext.explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monocontext.candidates import Answer
from monocontext.derived import Derived
from monocontext.needs import All, Literal, Need
from monocontext.plan import MAX_PART_BYTES, coalesce
from monocontext.plan import Need as Wanted
from monocontext.reader import Reader
from monocontext.regex.linewise import Linewise
from monocontext.source import Span, Stored

_SHOWN = 60
"""Characters of a literal that are printed."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a search would read, and why. Prints as a few lines."""

    needs: str
    """The texts that every match has, as far as they are known; empty: none are."""
    scans: str
    """Why all frames are read; empty: search filters leave some out."""
    frames: int
    """Of the text searched; 0 where it is not one that lies in a store."""
    candidates: int
    """Of these, frames that are read: a match may begin in them."""
    stored_bytes: int
    """Of all frames."""
    candidate_bytes: int
    """Stored bytes of the candidates."""
    gets: int
    """GETs for those candidates that are not in memory; about, where all frames are."""
    filter_gets: int
    """GETs that finding this out took: blocks of filters. The search does not take them again."""
    filter_bytes: int

    @property
    def pruned(self) -> int:
        """Frames that are left out."""
        return self.frames - self.candidates

    @property
    def share(self) -> float:
        """Stored bytes of the candidates as a share of all, 0 to 1."""
        return self.candidate_bytes / self.stored_bytes if self.stored_bytes else 1.0

    def __str__(self) -> str:
        needs = f"needs {self.needs}" if self.needs else "needs no text in particular"
        if not self.frames:
            return f"{needs}\nscans: {self.scans}"
        if self.scans:
            found = f"scans all {self.frames:,} frames: {self.scans}"
        else:
            found = f"{self.candidates:,} of {self.frames:,} frames may have a match, {self.pruned:,} are left out"
        read = f"{self.candidate_bytes:,} of {self.stored_bytes:,} stored bytes, {100 * self.share:.3g} %"
        asked = f"{self.filter_bytes:,} bytes of filters (GETs: {self.filter_gets:,})"
        return f"{needs}\n{found}\nwould read {read} (GETs: {self.gets:,}); to say so took {asked}"


def explain(span: Span, sought: Linewise) -> Explanation:
    """GETs: blocks of filters, and the index pages of candidates; of a part of a text those of all its frames."""
    needs = shown(sought.need)
    part = _in_store(span)
    if part is None and isinstance(span.source, Stored):
        return Explanation(needs, "the text is served by another process, which asks its filters by itself", *[0] * 7)
    if part is None:
        return Explanation(needs, "the text is made of others, which no search filter tells of", *[0] * 7)
    reader, start, stop = part
    if stop <= start:
        return Explanation(needs, "the text is empty", *[0] * 7)
    search = reader.stats.search
    before = search.filter_gets, search.filter_bytes
    answer = reader.ask(sought.need, start, stop, within_line=True)
    took = search.filter_gets - before[0], search.filter_bytes - before[1]
    frames = reader.numbers(start, stop)
    stored = _stored_bytes(reader, frames)
    chosen, read, gets = _reading(reader, answer, frames, stored)
    return Explanation(needs, answer.reason, len(frames), chosen, stored, read, gets, *took)


def shown(need: Need | None) -> str:
    """A need as a reader would say it: `'disk' AND ('error' OR 'failure')`."""
    if need is None:
        return ""
    if isinstance(need, Literal):
        text = need.text if len(need.text) <= _SHOWN else need.text[:_SHOWN] + "..."
        return repr(text) + (" in any case" if need.flags else "")
    word = " AND " if isinstance(need, All) else " OR "
    return word.join(shown(one) if isinstance(one, Literal) else f"({shown(one)})" for one in need.needs)


def _in_store(span: Span) -> tuple[Reader, int, int] | None:
    """Where a text lies in a store, character for character, in another case at most."""
    source: Any = span.source
    if isinstance(source, Derived):
        base = source.asked_of
        return None if base is None else _in_store(base.between(span.start, span.stop))
    if isinstance(source, Stored) and isinstance(source.reader, Reader):
        return source.reader, span.start, span.start + len(span)
    return None


def _stored_bytes(reader: Reader, frames: range) -> int:
    if len(frames) == reader.manifest.frames:
        return reader.manifest.stored_bytes
    return sum(reader.frame(number).stored_bytes for number in frames)


def _reading(reader: Reader, answer: Answer, frames: range, stored_bytes: int) -> tuple[int, int, int]:
    """Frames that are read, their stored bytes, and the GETs that it takes."""
    if answer.runs is None:
        missing = sum(not reader.holds(number) for number in frames)
        return len(frames), stored_bytes, -(-stored_bytes * missing // len(frames) // MAX_PART_BYTES)
    chosen = [reader.frame(number) for first, stop in answer.runs for number in range(first, stop)]
    wanted = [
        Wanted(frame.number, frame.object, frame.offset, frame.stored_bytes, frame.bytes, bytes)
        for frame in chosen
        if not reader.holds(frame.number)
    ]
    return len(chosen), sum(frame.stored_bytes for frame in chosen), len(coalesce(wanted))
