"""Find the sources of an answer: the model's citations, read back from the context, and the text that its cells
received.

A citation is checked against the context: a range must be inside it, a quote must occur where the run has read. Other
citations are left out, and a note says so.

The other sources are the pieces of text that the cells received and that fit the answer. They come from the first of
these that gives any:

1. slices, lines of hits, matches and passages, which the context has recorded for each cell
2. the places of the text that a cell printed or kept (`shown_places.py`), if code went through all of the text, or the
   context records nothing
3. the reads of cells that did not go through all of the text, in recordings without such pieces

Pieces with distinctive words of the answer come first, then pieces that a cell showed. Only the cells that made the
answer's values count (`answer_cells.py`); if none of them has a word of the answer, all earlier cells count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rlm.context import protocol
from rlm.context.excerpt import join_ends
from rlm.runners.claims import Claim
from rlm.trajectory import fields
from rlm.trajectory.answer_cells import assigned_names, calls_sub_model, counts, find_evidence, scans
from rlm.trajectory.answer_words import Words
from rlm.trajectory.ranges import Range, union
from rlm.trajectory.shown_places import MOST_SEARCHED, MOST_SHOWN, find_shown
from rlm.trajectory.source import Source, link_to

MOST_CHARACTERS = 1_000_000
"""Longest useful source, in characters."""
_SHOWN = 1_000
"""The characters of a source that a completion contains; a longer one keeps its ends."""
_MOST_READ = 20
"""The most sources that were read and not cited."""
_MOST_PIECES = 1_000
"""Pieces that are compared with the answer; together at most `MOST_CHARACTERS`."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A recorded cell, as far as it shows where its values came from."""

    code: str
    printed: bool
    shown: str
    """Its output."""
    kept: str
    """The values of the names that it assigned, as recorded: long ones are cut."""
    ranges: list[Range] | None
    """The characters that it read; None if the context does not record them."""
    handed: list[Range] | None
    """The pieces of the context that its code received; None if the context does not record them."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the context that may be a source."""

    place: Range
    score: int
    """The weight of the answer's words in it; see `Words.score`."""
    was_shown: bool


def find_sources(
    context: object, claims: Sequence[Claim], lines: Sequence[Mapping[str, Any]]
) -> tuple[list[Source], list[str]]:
    """Cited sources, then text that was read, best first, and notes on claims that were left out.

    `lines`: the lines of the question in its trajectory; the last one gave the answer. Costs one GET for each source
    that is not in the cache, and the search for each quote and for the text that cells showed.
    """
    text = protocol.whole_text(context)
    if text is None:
        return [], ["sources of a context that is no text are not checked: none is shown"] if claims else []
    found: list[Source] = []
    notes: list[str] = []
    cells = [cell for line in lines for cell in _cells(line)]
    places = _find_places(text, cells, fields.text(lines[-1].get("final_answer")) if lines else "")
    for number, claim in enumerate(claims, 1):
        if text is context or isinstance(claim, str):
            place, why = _place_of(text, claim, places, cells)
        else:
            place, why = None, "of documents a quote can be looked for, no pair of characters"
        if place is None:
            notes.append(f"source {number} of the answer is left out: {why}")
        else:
            found.append(_read(text, place, "cited"))
    cited = [(source.start, source.stop) for source in found]
    read = [part for part in places if part not in cited]
    found += [_read(text, part, "read") for part in read[:_MOST_READ]]
    if len(read) > _MOST_READ:
        notes.append(f"{len(read) - _MOST_READ} more places were read for the answer")
    return found, notes


def _place_of(text: Any, claim: Claim, places: Sequence[Range], cells: Sequence[_Cell]) -> tuple[Range | None, str]:
    if claim is None:
        return None, "it is no pair of characters and no quote"
    if isinstance(claim, str):
        return _find_quote(text, claim, places, cells)
    start, stop = claim
    if stop > len(text):
        return None, f"{start}:{stop} reaches past the end of the text, {len(text)}"
    if stop - start > MOST_CHARACTERS:
        return None, f"{start}:{stop} are more than {MOST_CHARACTERS:,} characters"
    return claim, ""


def _find_quote(text: Any, quote: str, places: Sequence[Range], cells: Sequence[_Cell]) -> tuple[Range | None, str]:
    """The place of a quote: where the run has read, the answer's places first; anywhere if the reads are not known."""
    parts = [*places, *(part for cell in reversed(cells) for part in cell.ranges or ())]
    known = any(cell.ranges is not None for cell in cells)
    wanted = quote.strip()
    left = MOST_SEARCHED
    for start, stop in parts if known else [(0, len(text))]:
        if left <= 0:
            break
        left -= stop - start
        at = text.find(wanted, start, min(stop, len(text)))
        if at >= 0:
            return (at, at + len(wanted)), ""
    where = "where the run has read" if known else "there"
    return None, f"{quote[:80]!r} is not {where}"


def _cells(line: Mapping[str, Any]) -> Iterator[_Cell]:
    blocks = [fields.mapping(block) for block in fields.items(line.get("code_blocks"))]
    for (code, printed), block in zip(fields.codes(line), blocks or [{}], strict=True):
        result = fields.mapping(block.get("result"))
        kept, names = fields.mapping(result.get("locals")), assigned_names(code)
        values = [fields.text(value) for name, value in kept.items() if name in names and name != "context"]
        shown = fields.text(result.get("stdout"))
        yield _Cell(code, printed, shown, "\n".join(values), fields.ranges(block), fields.ranges(block, "handed"))


def _find_places(text: Any, cells: Sequence[_Cell], answer: str) -> list[Range]:
    """The places that support the answer, best first."""
    words = Words(answer)
    chosen = find_evidence([(cell.code, cell.printed) for cell in cells])
    makers = [cells[i] for i in chosen]
    others = [
        cell for i, cell in enumerate(cells)
        if i not in chosen and words.are_distinctive and words.score(cell.shown + "\n" + cell.kept)
    ]  # fmt: skip
    read = _read_ranges(text, cells)
    seen: list[_Piece] = []
    for among in (makers, others):
        for look in (_handed_pieces, partial(_shown_pieces, ranges=read)):
            found = look(text, among, words)
            seen += [piece for piece in found if piece.score or among is makers]
            if seen and 2 * max(piece.score for piece in seen) >= words.total:
                return _choose(seen)
    return _choose(seen) or _ranges_read(makers, len(text))


def _read_ranges(text: Any, cells: Sequence[_Cell]) -> list[Range]:
    """The ranges that any cell read, since a cell may show text that an earlier one read; all of a `str`."""
    if isinstance(text, str) and all(cell.ranges is None for cell in cells):
        return [(0, len(text))]
    size = len(text)
    return [(start, min(stop, size)) for start, stop in union(p for c in cells for p in c.ranges or ()) if start < size]


def _choose(pieces: Sequence[_Piece]) -> list[Range]:
    """Pieces with at least half as many words of the answer as the best; else the pieces that were shown, else all."""
    best = max((piece.score for piece in pieces), default=0)
    if best:
        kept = [piece for piece in pieces if 2 * piece.score >= best]
    else:
        kept = [piece for piece in pieces if piece.was_shown] or list(pieces)
    kept.sort(key=lambda piece: (-piece.score, not piece.was_shown, piece.place))
    return list(dict.fromkeys(piece.place for piece in kept))


def _handed_pieces(text: Any, cells: Sequence[_Cell], words: Words) -> list[_Piece]:
    """The pieces that cells received, from the last cell to the first, up to the limits of comparison."""
    found: list[_Piece] = []
    left = MOST_CHARACTERS
    for cell in reversed(cells):
        for start, stop in cell.handed or ():
            if stop - start > MOST_SHOWN or stop > len(text):
                continue
            left -= stop - start
            if left < 0 or len(found) == _MOST_PIECES:
                return found
            piece = str(text[start:stop])
            found.append(_Piece((start, stop), words.score(piece), _is_in(piece, cell.shown)))
    return found


def _is_in(piece: str, shown: str) -> bool:
    """Whether a piece or one of its lines was shown, as text or inside a string literal."""
    lines = [line for part in piece.splitlines() if len(line := part.strip()) >= 8] or [piece.strip()]
    return any(line in shown or repr(line)[1:-1] in shown for line in lines)


def _shown_pieces(text: Any, cells: Sequence[_Cell], words: Words, ranges: Sequence[Range]) -> list[_Piece]:
    """The places of the text that cells showed, for the last cell that shows words of the answer."""
    found: list[_Piece] = []
    for cell in reversed(cells):
        for said in (cell.shown, cell.kept):
            places = find_shown(text, said, ranges, words, has_numbers=not counts(cell.code))
            pieces = [_Piece(one, words.score(str(text[slice(*one)])), was_shown=True) for one in places]
            if any(piece.score for piece in pieces):
                return pieces
            found += pieces if said is cell.shown else []  # names keep much else, such as the last line of a loop
    return found


def _ranges_read(cells: Sequence[_Cell], characters: int) -> list[Range]:
    """The ranges of cells that did not go through all of the text, if no pieces are recorded or a sub-model read."""
    kept = [
        cell.ranges or () for cell in cells
        if not scans(cell.code) and (cell.handed is None or calls_sub_model(cell.code))
    ]  # fmt: skip
    found = union(part for ranges in kept for part in ranges)
    return [part for part in found if part[1] - part[0] <= MOST_CHARACTERS and part[1] <= characters]


def _read(text: Any, place: Range, how: Any) -> Source:
    start, stop = place
    whole = str(text[start:stop])
    half = _SHOWN // 2
    shown = whole if len(whole) <= _SHOWN else join_ends(whole[:half], whole[-half:], len(whole) - _SHOWN)
    first, last = protocol.line_of(text, start), protocol.line_of(text, stop - 1)
    document = protocol.document_at(text, start)
    before = (protocol.line_of(text, document[1]) or 1) - 1 if document else 0
    lines = None if first is None or last is None else (first - before, last - before)
    url = protocol.document_url(text, start)
    return Source(
        start, stop, lines, document[0] if document else None, shown, how, protocol.generation(text),
        hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest(),
        link_to(url, lines) if url else None,
    )  # fmt: skip
