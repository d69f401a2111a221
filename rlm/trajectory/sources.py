"""Find the sources of an answer: the places that the model cites, and the text that its cells received.

A citation counts only if the context confirms it: a range must be within the text, and a quote must occur where the run
has read. A note names each citation that does not count.

The text that cells received comes from one of these, the first that the trajectory has:

- the pieces that the context recorded for each cell: slices, lines of hits, matches and passages
- the places of lines that a cell printed or kept, found in the text by their words (`shown`), where code went through
  all of the text or the context records no pieces
- the ranges that cells read, without cells that went through all of the text

Only the cells that made the values of the answer count (`evidence`), or every earlier cell if none of these has a word
of the answer. Pieces with rare words of the answer come first, then pieces that a cell printed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from rlm.context import protocol
from rlm.context.excerpt import join_ends
from rlm.runners.claims import Claim
from rlm.trajectory import fields
from rlm.trajectory.evidence import assigned_names, calls_sub_model, counts, find_evidence, scans
from rlm.trajectory.ranges import Range, union
from rlm.trajectory.shown import MOST_SEARCHED, MOST_SHOWN, find_shown
from rlm.trajectory.source import Source, link_to
from rlm.trajectory.words import Words

MOST_CHARACTERS = 1_000_000
"""Longest useful source, in characters."""
_EXCERPT_CHARACTERS = 1_000
"""The most text of a source that a completion carries."""
_MOST_READ = 20
"""The most sources that were read and not cited."""
_MOST_PIECES = 1_000
"""The most pieces to compare with the answer; together they have at most `MOST_CHARACTERS`."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell, as the trajectory records it."""

    code: str
    printed: bool
    output: str
    kept: str
    """The values of the names that it assigned; the recording cuts long values."""
    ranges: list[Range] | None
    """The characters that it read, for itself or by a search; None if the context reports none."""
    handed: list[Range] | None
    """The characters that its code received; None if the context reports none."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of the text that a cell received."""

    place: Range
    score: int
    """The weight of the answer's words in it."""
    was_shown: bool
    """Whether a cell printed it."""


def find_sources(
    context: object, claims: Sequence[Claim], lines: Sequence[Mapping[str, Any]]
) -> tuple[list[Source], list[str]]:
    """Cited sources, then text that was read, best first; and notes on citations that do not count.

    `lines` are the lines of the question in its trajectory; the last one gave the answer. Costs one GET for each source
    that is not in the cache, and searches for quotes and for text that cells printed.
    """
    text = protocol.whole_text(context)
    if text is None:
        return [], ["sources of a context that is not a text are not checked, so none is shown"] if claims else []
    found: list[Source] = []
    notes: list[str] = []
    cells = [cell for line in lines for cell in _recorded_cells(line)]
    evidence = _find_places(text, cells, fields.text(lines[-1].get("final_answer")) if lines else "")
    for number, claim in enumerate(claims, 1):
        if text is context or isinstance(claim, str):
            place, why = _locate_claim(text, claim, evidence, cells)
        else:
            place, why = None, "a citation of documents must be a quote, not a pair of characters"
        if place is None:
            notes.append(f"source {number} of the answer does not count: {why}")
        else:
            found.append(_read_source(text, place, "cited"))
    cited = [(source.start, source.stop) for source in found]
    read = [place for place in evidence if place not in cited]
    found += [_read_source(text, place, "read") for place in read[:_MOST_READ]]
    if len(read) > _MOST_READ:
        notes.append(f"{len(read) - _MOST_READ} more places were read for the answer")
    return found, notes


def _recorded_cells(line: Mapping[str, Any]) -> Iterator[_Cell]:
    """The cells of one turn."""
    blocks = [fields.mapping(block) for block in fields.items(line.get("code_blocks"))]
    for (code, printed), block in zip(fields.codes(line), blocks or [{}], strict=True):
        result = fields.mapping(block.get("result"))
        values, names = fields.mapping(result.get("locals")), assigned_names(code)
        kept = [fields.text(value) for name, value in values.items() if name in names and name != "context"]
        output = fields.text(result.get("stdout"))
        yield _Cell(code, printed, output, "\n".join(kept), fields.ranges(block), fields.ranges(block, "handed"))


# -- citations ---------------------------------------------------------------------------------------------------------


def _locate_claim(
    text: Any, claim: Claim, evidence: Sequence[Range], cells: Sequence[_Cell]
) -> tuple[Range | None, str]:
    """The cited place, or None and the reason."""
    if claim is None:
        return None, "it is neither a pair of characters nor a quote"
    if isinstance(claim, str):
        return _find_quote(text, claim, evidence, cells)
    start, stop = claim
    if stop > len(text):
        return None, f"{start}:{stop} reaches past the end of the text, {len(text)}"
    if stop - start > MOST_CHARACTERS:
        return None, f"{start}:{stop} are more than {MOST_CHARACTERS:,} characters"
    return claim, ""


def _find_quote(text: Any, quote: str, evidence: Sequence[Range], cells: Sequence[_Cell]) -> tuple[Range | None, str]:
    """The place of a quote in the text that the run has read, the evidence first; in all of it if reads are unknown."""
    are_known = any(cell.ranges is not None for cell in cells)
    places = [*evidence, *(place for cell in reversed(cells) for place in cell.ranges or ())]
    wanted = quote.strip()
    budget = MOST_SEARCHED
    for start, stop in places if are_known else [(0, len(text))]:
        if budget <= 0:
            break
        budget -= stop - start
        at = text.find(wanted, start, min(stop, len(text)))
        if at >= 0:
            return (at, at + len(wanted)), ""
    return None, f"{quote[:80]!r} is not in {'the text that the run has read' if are_known else 'the text'}"


# -- text that cells received ------------------------------------------------------------------------------------------


def _find_places(text: Any, cells: Sequence[_Cell], answer: str) -> list[Range]:
    """The places from which the answer comes, best first."""
    words = Words(answer)
    chosen = find_evidence([(cell.code, cell.printed) for cell in cells])
    makers = [cells[i] for i in chosen]
    others = [
        cell for i, cell in enumerate(cells)
        if i not in chosen and words.are_telling and words.score(cell.output + "\n" + cell.kept)
    ]  # fmt: skip
    read = _ranges_read(text, cells)
    pieces: list[_Piece] = []
    for group in (makers, others):
        for find_pieces in (_handed_pieces, partial(_printed_pieces, ranges=read)):
            pieces += [piece for piece in find_pieces(text, group, words) if piece.score or group is makers]
            if pieces and 2 * max(piece.score for piece in pieces) >= words.total:
                return _choose(pieces)
    return _choose(pieces) or _ranges_of_makers(makers, len(text))


def _choose(pieces: Sequence[_Piece]) -> list[Range]:
    """The places of the pieces with at least half the score of the best, best first; where no piece has a word of the
    answer, of those that were printed, else of all."""
    best = max((piece.score for piece in pieces), default=0)
    if best:
        kept = [piece for piece in pieces if 2 * piece.score >= best]
    else:
        kept = [piece for piece in pieces if piece.was_shown] or list(pieces)
    kept.sort(key=lambda piece: (-piece.score, not piece.was_shown, piece.place))
    return list(dict.fromkeys(piece.place for piece in kept))


def _handed_pieces(text: Any, cells: Sequence[_Cell], words: Words) -> list[_Piece]:
    """The pieces that the code of cells received, those of the last cell first, up to a limit."""
    found: list[_Piece] = []
    budget = MOST_CHARACTERS
    for cell in reversed(cells):
        for start, stop in cell.handed or ():
            if stop - start > MOST_SHOWN or stop > len(text):
                continue
            budget -= stop - start
            if budget < 0 or len(found) == _MOST_PIECES:
                return found
            piece = str(text[start:stop])
            found.append(_Piece((start, stop), words.score(piece), _is_in(piece, cell.output)))
    return found


def _is_in(piece: str, output: str) -> bool:
    """Whether the output has the piece or a line of it, as text or in a literal."""
    lines = [line for part in piece.splitlines() if len(line := part.strip()) >= 8] or [piece.strip()]
    return any(line in output or repr(line)[1:-1] in output for line in lines)


def _printed_pieces(text: Any, cells: Sequence[_Cell], words: Words, ranges: Sequence[Range]) -> list[_Piece]:
    """The places of the text that the last cell with words of the answer printed or kept; if there is no such cell, all
    that were printed."""
    found: list[_Piece] = []
    for cell in reversed(cells):
        for shown in (cell.output, cell.kept):
            places = find_shown(text, shown, ranges, words, has_numbers=not counts(cell.code))
            pieces = [_Piece(place, words.score(str(text[slice(*place)])), was_shown=True) for place in places]
            if any(piece.score for piece in pieces):
                return pieces
            if shown is cell.output:  # names keep much, such as the last line of a loop
                found += pieces
    return found


def _ranges_read(text: Any, cells: Sequence[_Cell]) -> list[Range]:
    """The ranges that all cells read, since one may print text that an earlier one read; all of a `str`."""
    if isinstance(text, str) and all(cell.ranges is None for cell in cells):
        return [(0, len(text))]
    size = len(text)
    read = union(place for cell in cells for place in cell.ranges or ())
    return [(start, min(stop, size)) for start, stop in read if start < size]


def _ranges_of_makers(makers: Sequence[_Cell], characters: int) -> list[Range]:
    """The ranges of cells that did not go through all of the text, if no pieces are recorded or a sub-model read."""
    read = union(
        place
        for cell in makers
        if not scans(cell.code) and (cell.handed is None or calls_sub_model(cell.code))
        for place in cell.ranges or ()
    )
    return [(start, stop) for start, stop in read if stop - start <= MOST_CHARACTERS and stop <= characters]


def _read_source(text: Any, place: Range, how: Literal["cited", "read"]) -> Source:
    start, stop = place
    whole = str(text[start:stop])
    half = _EXCERPT_CHARACTERS // 2
    left_out = len(whole) - _EXCERPT_CHARACTERS
    excerpt = join_ends(whole[:half], whole[-half:], left_out) if left_out > 0 else whole
    first, last = protocol.line_of(text, start), protocol.line_of(text, stop - 1)
    document = protocol.document_at(text, start)
    lines_before = (protocol.line_of(text, document[1]) or 1) - 1 if document else 0
    lines = None if first is None or last is None else (first - lines_before, last - lines_before)
    url = protocol.document_url(text, start)
    return Source(
        start=start,
        stop=stop,
        lines=lines,
        document=document[0] if document else None,
        text=excerpt,
        how=how,
        generation=protocol.generation(text),
        sha256=hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest(),
        url=link_to(url, lines) if url else None,
    )
