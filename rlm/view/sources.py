"""Find what an answer rests on: what the model cites, read back from the context, and what its cells read.

A claim is believed as far as the context bears it out: a range must lie in it, a quote must stand where the run has
read. What does not is left out, and a note says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlm.context import protocol
from rlm.context.excerpt import join_ends
from rlm.runners.claims import Claim
from rlm.trajectory.source import Source
from rlm.view import rows
from rlm.view.ranges import Range, union
from rlm.view.rests import find_evidence, scans

MOST_CHARACTERS = 1_000_000
"""Of a source; a longer one says nothing."""
_SHOWN = 1_000
_MOST_READ = 20
_SEARCHED = 256_000_000
"""The most characters in which a quote is looked for."""


def find_sources(
    context: object, claims: Sequence[Claim], lines: Sequence[Mapping[str, Any]]
) -> tuple[list[Source], list[str]]:
    """Cited sources, then those that were read, and notes on claims that were left out.

    `lines` of the question in its trajectory, the last of which gave the answer. Costs one GET for each source that is
    not in the cache, and the search for each quote.
    """
    if not (isinstance(context, str) or protocol.passes_for_str(context)):
        return [], ["sources of a context that is no text are not checked: none is shown"] if claims else []
    text: Any = context
    found: list[Source] = []
    notes: list[str] = []
    for number, claim in enumerate(claims, 1):
        place, why = _place_of(text, claim, lines)
        if place is None:
            notes.append(f"source {number} of the answer is left out: {why}")
        else:
            found.append(_read(text, place, "cited"))
    cited = [(source.start, source.stop) for source in found]
    read = [part for part in _rests_on(lines) if part not in cited and part[1] <= len(text)]
    found += [_read(text, part, "read") for part in read[:_MOST_READ]]
    if len(read) > _MOST_READ:
        notes.append(f"{len(read) - _MOST_READ} more places were read for the answer")
    return found, notes


def _place_of(text: Any, claim: Claim, lines: Sequence[Mapping[str, Any]]) -> tuple[Range | None, str]:
    if claim is None:
        return None, "it is no pair of characters and no quote"
    if isinstance(claim, str):
        return _find_quote(text, claim, lines)
    start, stop = claim
    if stop > len(text):
        return None, f"{start}:{stop} lies behind the end of the text, {len(text)}"
    if stop - start > MOST_CHARACTERS:
        return None, f"{start}:{stop} are more than {MOST_CHARACTERS:,} characters"
    return claim, ""


def _find_quote(text: Any, quote: str, lines: Sequence[Mapping[str, Any]]) -> tuple[Range | None, str]:
    """Where a quote stands: where the run has read, the answer's own cells first; anywhere, where that is not known."""
    parts = [*_rests_on(lines), *(part for line in reversed(lines) for part in _ranges(line))]
    known = any(rows.ranges(block) is not None for line in lines for block in _blocks(line))
    wanted = quote.strip()
    left = _SEARCHED
    for start, stop in parts if known else [(0, len(text))]:
        if left <= 0:
            break
        left -= stop - start
        at = text.find(wanted, start, min(stop, len(text)))
        if at >= 0:
            return (at, at + len(wanted)), ""
    return (
        None,
        f"{quote[:80]!r} does not stand where the run has read" if known else f"{quote[:80]!r} does not stand there",
    )


def _rests_on(lines: Sequence[Mapping[str, Any]]) -> list[Range]:
    """The ranges of the cells that the answer rests on."""
    cells = [(code, printed, block) for line in lines for (code, printed), block in _cells(line)]
    makers = find_evidence([(code, printed) for code, printed, _ in cells])
    kept = [rows.ranges(cells[i][2]) or [] for i in makers if not scans(cells[i][0])]
    return [part for part in union(part for ranges in kept for part in ranges) if part[1] - part[0] <= MOST_CHARACTERS]


def _cells(line: Mapping[str, Any]) -> Iterable[tuple[tuple[str, bool], Mapping[str, Any]]]:
    blocks = _blocks(line)
    return zip(rows.codes(line), blocks or [{}], strict=True)


def _blocks(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [rows.mapping(block) for block in rows.items(line.get("code_blocks"))]


def _ranges(line: Mapping[str, Any]) -> list[Range]:
    return [part for block in _blocks(line) for part in rows.ranges(block) or ()]


def _read(text: Any, place: Range, how: Any) -> Source:
    start, stop = place
    whole = str(text[start:stop])
    half = _SHOWN // 2
    shown = whole if len(whole) <= _SHOWN else join_ends(whole[:half], whole[-half:], len(whole) - _SHOWN)
    first, last = protocol.line_of(text, start), protocol.line_of(text, stop - 1)
    document = protocol.document_at(text, start)
    before = (protocol.line_of(text, document[1]) or 1) - 1 if document else 0
    return Source(
        start, stop, None if first is None or last is None else (first - before, last - before),
        document[0] if document else None, shown, how, protocol.generation(text),
        hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest(),
    )  # fmt: skip
