"""Map grams to rows: the rows that a text sets in a filter, and the rows that a search for a literal reads.

A gram is a few bytes of folded UTF-8. These grams begin at each byte, as far as they apply. Their bytes alone decide
that, so a text and a literal in it have the same grams:

- 4 bytes of ASCII; 5 bytes if one of the 4 is not ASCII, or if all are hexadecimal digits, since any 4 of those occur
  in every frame of a log
- 3 bytes of a word in ASCII, for short literals: one says little, but a literal of 6 bytes has four
- a *span*: 8 bytes whose fifth is a single byte between a word of 3 bytes or more that does not end in a digit, and
  another word (`ther one`). Unlike shorter grams it says which words are neighbours

The row of 5 bytes is the upper bits of their product with a constant modulo 2 ** 40 (Fibonacci hashing, Knuth, The Art
of Computer Programming, 6.4), so halving the height of a filter halves the row number. 4 bytes are hashed as if a NUL
followed. One hash is enough: a search reads the rows of several grams, so each may be weak.

The rows of words (`words.py`) follow the rows of grams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from monocontext.format.filters.byte_facts import EDGE, ByteFacts
from monocontext.format.filters.case_folding import MAX_BYTES, fold
from monocontext.format.filters.words import GRAM_ROWS_PER_WORD_ROW
from monocontext.format.refs import LONGEST_GRAM

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BITS = 18
"""At most 2 ** 18 rows: 32 KiB a frame, an eighth of a frame of 256 KiB."""
MIN_BITS = 8
MAX_ROWS = 16
"""The most rows that a search for one literal reads: more would rule out few other frames, and each is a request."""
MAX_SPANS = 8
"""The most spans among these: a span says more than another gram, but nothing about the middle of words."""
FEW_ROWS = 8
"""A literal with fewer longer grams also reads rows of grams of 3 bytes, up to this many rows in total."""

_MULTIPLIER = 0x9E3779B97F
"""2 ** 40 over the golden ratio."""
_GRAM_BITS = 40
_SHORT_MULTIPLIER = 0x9E3779
"""2 ** 24 over the golden ratio."""
_SHORT_BITS = 24
_SPAN_MULTIPLIER = 0xC2B2AE3D27D4EB4F
_AT_ONCE = 1 << 15
"""The most grams that are hashed at once. 512 KiB fit the processor's cache; with less, threads would wait for each
other."""
_GRAMS = re.compile(rb"(?=((?![0-9a-f]{4})[\0-\x7f]{4}|.{5}))", re.S)
_SHORT_GRAMS = re.compile(rb"(?=([a-z0-9_]{3}))")
_SPANS = re.compile(rb"(?=(.[a-z0-9_\x80-\xff]{2}[a-z_\x80-\xff][^a-z0-9_\x80-\xff][a-z0-9_\x80-\xff]..))", re.S)
_PATTERNS = (_SPANS, _GRAMS, _SHORT_GRAMS)


def set_rows(column: NDArray[np.uint8], facts: ByteFacts) -> None:
    """Set the rows of all grams of a text in a column of zeros of height 2 ** MAX_BITS (1 ms for 256 KiB)."""
    import numpy as np

    eights = facts.eights[EDGE : EDGE + max(facts.size - 4, 0)]
    fifths = _fifths(facts)
    buffer = np.empty(min(_AT_ONCE, len(eights)), np.uint64)  # reused: fresh memory costs more than the arithmetic
    fifth_bytes = buffer.view(np.uint8)[4::8]
    for start in range(0, len(eights), _AT_ONCE):
        some = eights[start : start + _AT_ONCE]
        grams = buffer[: len(some)]
        np.copyto(grams, some)
        fifth_bytes[: len(some)] = fifths[start : start + len(some)]
        # The multiplication shifts out the bytes after the gram.
        grams *= np.uint64(_MULTIPLIER << (64 - _GRAM_BITS))
        grams >>= np.uint64(64 - MAX_BITS)
        column[grams.view(np.int64)] = 1
    _set_short(column, facts)
    _set_spans(column, facts)
    for gram in grams_of(facts.raw[EDGE:-EDGE][-4:].tobytes(), 4):
        column[row_of(gram, MAX_BITS)] = 1


def _set_short(column: NDArray[np.uint8], facts: ByteFacts) -> None:
    """Set the rows of all grams of 3 bytes."""
    import numpy as np

    are_grams = facts.threes
    if facts.others.any():
        ascii_only = ~facts.others
        are_grams = are_grams & ascii_only[:-2] & ascii_only[1:-1] & ascii_only[2:]
    for start in range(EDGE, EDGE + facts.size, _AT_ONCE):
        grams = facts.eights[start : start + _AT_ONCE].take(np.flatnonzero(are_grams[start : start + _AT_ONCE]))
        grams <<= np.uint64(64 - _SHORT_BITS)  # it shifts out the bytes after the gram
        grams *= np.uint64(_SHORT_MULTIPLIER)
        grams >>= np.uint64(64 - MAX_BITS)
        column[grams.view(np.int64)] = 1


def _set_spans(column: NDArray[np.uint8], facts: ByteFacts) -> None:
    """Set the rows of all spans."""
    import numpy as np

    first, stop = EDGE + 4, EDGE + max(facts.size - 3, 4)  # the bytes with 4 bytes before and 3 after them
    inside = facts.inside
    are_spans = facts.threes[first - 3 : stop - 3] > facts.digits[first - 1 : stop - 1]
    are_spans &= inside[first + 1 : stop + 1] > inside[first:stop]
    spans = facts.eights.take(np.flatnonzero(are_spans) + first - 4)
    spans *= np.uint64(_SPAN_MULTIPLIER)
    spans >>= np.uint64(64 - MAX_BITS)
    column[spans.view(np.int64)] = 1


def _fifths(facts: ByteFacts) -> NDArray[np.uint8]:
    """The fifth byte of the gram that begins at each byte of the text; 0 where the gram has 4."""
    import numpy as np

    digits = facts.raw - np.uint8(ord("a")) < 6
    digits |= facts.digits
    two = digits[EDGE:-1] & digits[EDGE + 1 :]
    are_five = two[:-3] & two[2:-1]
    if facts.others.any():
        two = facts.others[EDGE:-1] | facts.others[EDGE + 1 :]
        are_five |= two[:-3]
        are_five |= two[2:-1]
    fifths: NDArray[np.uint8] = facts.raw[EDGE + 4 :] * are_five
    return fifths


def height(bits: int) -> int:
    """The total number of rows of a filter with 2 ** bits rows of grams."""
    return (1 << bits) + (1 << bits) // GRAM_ROWS_PER_WORD_ROW


HIGHEST = height(MAX_BITS)


def shrink_rows(rows: NDArray[np.uint8], height: int, axis: int) -> NDArray[np.uint8]:
    """Reduce the rows along an axis to `height` of them: neighbours are joined by OR."""
    while rows.shape[axis] > height:
        even = [slice(None)] * rows.ndim
        odd = list(even)
        even[axis], odd[axis] = slice(0, None, 2), slice(1, None, 2)
        rows = rows[tuple(even)] | rows[tuple(odd)]
    return rows


def row_of(gram: bytes, bits: int) -> int:
    """The row of a gram in a filter with 2 ** bits rows of grams."""
    if len(gram) == 3:
        return int.from_bytes(gram, "little") * _SHORT_MULTIPLIER % (1 << _SHORT_BITS) >> (_SHORT_BITS - bits)
    if len(gram) == 8:
        return int.from_bytes(gram, "little") * _SPAN_MULTIPLIER % (1 << 64) >> (64 - bits)
    product = int.from_bytes(gram, "little") * _MULTIPLIER
    return product % (1 << _GRAM_BITS) >> (_GRAM_BITS - bits)


@lru_cache(256)
def rows_to_read(literal: str, bits: int, within_bytes: int, ascii_only: bool = False) -> tuple[int, ...]:
    """The rows that are all set in the column of a frame in which the literal begins; empty if the filter cannot tell.

    Only grams that begin in the first `within_bytes` of the folded literal count: the column may lack later ones.
    `ascii_only` says that the filter has other folding tables, so only ASCII is certain.
    """
    if ascii_only:
        # Other characters may have been folded to any number of bytes up to `MAX_BYTES`.
        parts = [(match.start() * MAX_BYTES, match[0]) for match in re.finditer(r"[\0-\x7f]+", literal)]
    else:
        parts = [(0, literal)]
    grams: list[bytes] = []
    for bytes_before, part in parts:
        grams += grams_of(fold(part).encode("utf-8", "surrogatepass"), within_bytes - bytes_before)
    picked = _pick_evenly([gram for gram in grams if len(gram) == 8], MAX_SPANS)
    picked += _pick_evenly([gram for gram in grams if len(gram) in (4, 5)], MAX_ROWS - len(picked))
    picked += _pick_evenly([gram for gram in grams if len(gram) == 3], max(FEW_ROWS - len(picked), 0))
    return tuple(dict.fromkeys(row_of(gram, bits) for gram in picked))


def grams_of(folded: bytes, within_bytes: int) -> Iterator[bytes]:
    """Yield the grams that begin in the first bytes of a folded text, and that do not depend on the text around it."""
    for pattern in _PATTERNS:
        for match in pattern.finditer(folded, 0, max(within_bytes, 0) + LONGEST_GRAM - 1):
            if match.start() < within_bytes:
                yield match[1]


def _pick_evenly(grams: list[bytes], most: int) -> list[bytes]:
    """At most `most` of the grams, evenly spaced: neighbours say nearly the same."""
    if len(grams) <= most:
        return grams
    last = len(grams) - 1
    return [grams[i * last // max(most - 1, 1)] for i in range(most)]
