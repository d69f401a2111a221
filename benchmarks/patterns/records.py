"""Make a sorted text for bisection, of any size: records of fixed width, whose last lines name their days.

Records differ in that line only, so a checksum extends the one of the common part by one line. A text of 4 million
records (1 TB) takes seconds to make; bytes are computed when they are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache, partial

import google_crc32c

from benchmarks.patterns.texts import WIDTH, filler
from monocontext.format.codec import describe
from monocontext.format.index import FRAMES_PER_PAGE, FrameRun, encode_page, page_ref
from monocontext.format.manifest import ROOT_KEY, Manifest, generation_key
from monocontext.format.refs import PageRef
from tests.virtual import VirtualStore

RECORDS_PER_SEGMENT = 64
_BODY = filler("logs")[:-WIDTH].encode()
RECORD_BYTES = len(_BODY) + WIDTH


def last_line(number: int) -> bytes:
    """The last line of record `number`. From record to record, days go up by one to three."""
    return f"== end of day {day_of(number):012d} == record {number:012d} ==".ljust(WIDTH - 1).encode() + b"\n"


def day_of(number: int) -> int:
    """The day of a record. Knuth's multiplicative hash tosses a coin for each record, whatever was asked before."""
    return 2 * number + (number * 2654435761 >> 7) % 2


@lru_cache(maxsize=1)
def ordered_context(records: int) -> VirtualStore:
    """A store with a context of `records` records, each a frame."""
    common_crc = int(google_crc32c.value(_BODY))
    first_row = describe(_BODY + last_line(0), _BODY + last_line(0))
    objects: dict[str, tuple[int, Callable[[int, int], bytes]]] = {}  # size in bytes, and a function that reads
    pages: list[PageRef] = []
    for first in range(0, records, FRAMES_PER_PAGE):
        numbers = range(first, min(first + FRAMES_PER_PAGE, records))
        rows = [first_row._replace(crc32c=google_crc32c.extend(common_crc, last_line(number))) for number in numbers]
        runs = []
        for start in range(numbers.start, numbers.stop, RECORDS_PER_SEGMENT):
            count = min(RECORDS_PER_SEGMENT, numbers.stop - start)
            digest = hashlib.sha256(f"records {start} {count}".encode()).hexdigest()
            key = f"segments/{digest[:32]}.seg"
            objects[key] = (count * RECORD_BYTES, partial(_read_records, start))
            runs.append(FrameRun(key, 0, count, "raw"))
        data = encode_page(runs, rows)
        ref = page_ref(data, rows, pages[-1] if pages else None)
        objects[ref.key] = (len(data), lambda low, high, data=data: data[low:high])  # type: ignore[misc]
        pages.append(ref)
    root = Manifest(
        generation=1, write_id="virtual", created="2026-01-01T00:00:00+00:00", pages=tuple(pages), final_newline=True,
        stored_bytes=pages[-1].bytes, codec="raw",
    ).to_bytes()  # fmt: skip
    for key in (ROOT_KEY, generation_key(1)):
        objects[key] = (len(root), lambda low, high: root[low:high])
    return VirtualStore(objects)


def _read_records(first: int, start: int, stop: int) -> bytes:
    """Compute bytes [start, stop) of the segment that begins with record `first`."""
    low, high = start // RECORD_BYTES, -(-stop // RECORD_BYTES)
    whole = b"".join(_BODY + last_line(first + number) for number in range(low, high))
    return whole[start - low * RECORD_BYTES : stop - low * RECORD_BYTES]
