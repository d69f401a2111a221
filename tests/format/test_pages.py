"""Index pages: records in, addresses out; and every way in which a page may disagree with itself or with its root."""

from __future__ import annotations

import dataclasses
import json
from array import array

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monocontext.errors import DamagedData
from monocontext.format.index import ASCII, FrameRecord, FrameRun, Page, encode_page, page_ref
from monocontext.format.refs import MAX_FRAME_BYTES, PageRef

BEFORE = PageRef("0" * 32, 10, 0, 7, 700, 600, 50)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[FrameRun], list[FrameRecord]]:
    """Runs and records that belong together."""
    runs, records = [], []
    for number in range(draw(st.integers(1, 4))):
        frames = draw(st.integers(1, 6))
        offset = draw(st.integers(0, 1 << 45))
        if draw(st.booleans()):
            runs.append(FrameRun(f"segments/{number}.seg", offset, frames, draw(st.sampled_from(["raw", "zstd"]))))
        else:
            runs.append(FrameRun(f"s3://bücket/{number} \u2028 x", offset, frames, "raw", draw(st.text(max_size=4))))
        for _ in range(frames):
            characters = draw(st.integers(1, 5000))
            ascii_only = draw(st.booleans())
            size = characters if ascii_only else characters + draw(st.integers(0, 9999))
            crc, newlines = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, characters))
            stored = size if runs[-1].codec == "raw" else draw(st.integers(1, 1 << 24))
            records.append(FrameRecord(stored, size, characters, newlines, crc, ASCII if ascii_only else 0))
    return runs, records


def load_page(runs: list[FrameRun], records: list[FrameRecord], before: PageRef | None = None) -> Page:
    data = encode_page(runs, records)
    return Page(data, page_ref(data, records, before), before)


@given(tables(), st.booleans())
def test_round_trip(table: tuple[list[FrameRun], list[FrameRecord]], later: bool) -> None:
    runs, records = table
    before = BEFORE if later else None
    page = load_page(runs, records, before)
    assert (list(page.runs), len(page)) == (runs, len(records))
    start, start_byte, start_newline, number = (600, 700, 50, 7) if later else (0, 0, 0, 0)
    expected_runs = [run for run in runs for _ in range(run.frames)]
    position = None
    for i, (record, run) in enumerate(zip(records, expected_runs, strict=True)):
        position = run.offset if i == 0 or run is not expected_runs[i - 1] else position
        frame = page[i]
        place = (frame.number, frame.object, frame.offset, frame.codec, frame.etag)
        assert place == (number + i, run.object, position, run.codec, run.etag)
        assert (frame.start, frame.start_byte, frame.start_newline) == (start, start_byte, start_newline)
        assert FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields)) == record
        position += record.stored_bytes
        start, start_byte = start + record.characters, start_byte + record.bytes
        start_newline += record.newlines


@given(tables(), st.booleans())
def test_look_ups(table: tuple[list[FrameRun], list[FrameRecord]], later: bool) -> None:
    page = load_page(*table, BEFORE if later else None)
    for i in range(len(page)):
        frame = page[i]
        for character in {frame.start, frame.stop - 1, (frame.start + frame.stop) // 2}:
            assert page.number_at(character) == i


RUNS = [FrameRun("segments/a.seg", 0, 2, "raw"), FrameRun("s3://other/b.txt", 5, 1, "raw", "etag")]
RECORDS = [FrameRecord(5, 5, 5, 1, 1, ASCII), FrameRecord(4, 4, 3, 0, 2, 0), FrameRecord(9, 9, 9, 2, 3, ASCII)]


def must_refuse(data: bytes, ref: PageRef, what: str, before: PageRef | None = None) -> None:
    with pytest.raises(DamagedData, match=rf"index/{ref.id}\.idx: {what}") as raised:
        Page(data, ref, before)
    assert "\n" not in str(raised.value)


def test_any_byte_changed_is_a_checksum_that_differs() -> None:
    data = encode_page(RUNS, RECORDS)
    ref = page_ref(data, RECORDS, None)
    for index in range(len(data)):
        other = bytearray(data)
        other[index] ^= 0x10
        must_refuse(bytes(other), ref, r"crc32c differs: expected \w{8}, found \w{8}")


def seal(data: bytes, ref: PageRef | None = None) -> tuple[bytes, PageRef]:
    """A page with its right length and checksum, whatever is in it."""
    sums = ref or page_ref(data, RECORDS, None)
    return data, dataclasses.replace(sums, size_bytes=len(data), crc32c=google_crc32c.value(data))


def raw_page(table: bytes, records: list[FrameRecord] = RECORDS, count: int | None = None) -> bytes:
    """A page with any run table."""
    head = b"MCPAGE\x00\x01" + (len(records) if count is None else count).to_bytes(4, "little")
    columns = zip(*records, strict=True)
    body = b"".join(array(kind, column).tobytes() for kind, column in zip("IIIIIH", columns, strict=True))
    return head + len(table).to_bytes(4, "little") + table + body


ROW = {"object": "segments/a.seg", "offset": 0, "frames": 3, "codec": "raw"}


NO_PAGES: dict[str, list[bytes]] = {
    "expected to begin with": [b"", b"MCPAGE\x00\x02" + encode_page(RUNS, RECORDS)[8:]],
    "": [b"MCPAGE\x00\x01"],
    "4 frames need a page of 106 bytes": [raw_page(b"[]", count=4)],
    "4294967295 frames need a page": [raw_page(b"[]", count=2**32 - 1)],
    ".*frames need a page": [encode_page(RUNS, RECORDS)[:12] + b"\xff\xff\xff\xff" + encode_page(RUNS, RECORDS)[16:]],
    "frames: 3 in the page, 0 in runs": [raw_page(b"{}"), raw_page(b"[]")],
    ".": [
        *map(raw_page, (b"", b"not json", b"\xff\xff", b"[1]", b"null", b'["abcdef"]', b"[" * 100_000)),
        raw_page(b"[" * 900 + b"]" * 900),
    ],
}


@pytest.mark.parametrize("what", NO_PAGES)
def test_no_page(what: str) -> None:
    for data, ref in map(seal, NO_PAGES[what]):
        must_refuse(data, ref, f"not a page of this context: {what}")


NO_OBJECTS = ("../escape", "/etc/passwd", "manifest.json", "SEGMENTS/a", "", None, "s3://bucket/without-an-etag")
IMPOSSIBLE_RUNS: dict[str, list[dict[str, object]]] = {
    "frames: 3 in the page, 2 in runs, 3 in the root": [{"frames": 2}],
    "frames: 3 in the page, 4 in runs, 3 in the root": [{"frames": 4}],
    "expected a count, found": [{"offset": value} for value in (-1, 1.5, True, 10**20, float("nan"), float("inf"))],
    "expected a count, found .": [{"offset": "x"}, {"offset": None}, {"frames": 3.0}, {"frames": -1}],
    "a run has an impossible number": [{"codec": "lzma"}, {"codec": None}],
    "expected a segment, or a URL with an ETag": [
        *({"object": name} for name in NO_OBJECTS),
        {"etag": "x"},  # ours, and an ETag
        *({"object": "s3://bucket/key", "etag": etag} for etag in (3, ["x"])),
    ],
}


@pytest.mark.parametrize("what", IMPOSSIBLE_RUNS)
def test_impossible_runs(what: str) -> None:
    for change in IMPOSSIBLE_RUNS[what]:
        data, ref = seal(raw_page(json.dumps([ROW | change]).encode()))
        must_refuse(data, ref, f"not a page of this context: {what}")
    empty = seal(raw_page(json.dumps([ROW | {"frames": 0}, ROW]).encode()))
    must_refuse(*empty, "not a page of this context: a run has an impossible number")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"characters": 0}, "frame 0 is empty: FrameRecord"),
        ({"bytes": MAX_FRAME_BYTES + 1}, "frame 0 is too large"),
        ({"stored_bytes": 2 * MAX_FRAME_BYTES + 1}, "frame 0 is too large"),
        ({"bytes": 6}, "frame 0 is ASCII, but has more bytes than characters"),
        ({"characters": 4}, "frame 0 is ASCII, but has more bytes than characters"),
        ({"bytes": 4, "flags": 0}, "frame 0 has fewer bytes than characters"),
        ({"newlines": 6}, "frame 0 has more newlines than characters"),
        ({"stored_bytes": 6}, "a raw frame must take as many stored bytes as text bytes"),
    ],
)
def test_impossible_records(change: dict[str, int], what: str) -> None:
    records = [RECORDS[0]._replace(**change), *RECORDS[1:]]
    data = encode_page(RUNS, records)
    must_refuse(data, page_ref(data, records, None), f"not a page of this context: {what}")


@pytest.mark.parametrize("field", ["frames", "bytes", "characters", "newlines"])
@pytest.mark.parametrize("before", [None, BEFORE], ids=["first", "later"])
def test_a_page_and_its_root_that_disagree(field: str, before: PageRef | None) -> None:
    data = encode_page(RUNS, RECORDS)
    ref = page_ref(data, RECORDS, before)
    for difference in (1, -1):
        lying = dataclasses.replace(ref, **{field: getattr(ref, field) + difference})
        must_refuse(data, lying, "not a page of this context: (sums differ|frames: 3 in the page, 3 in runs)", before)


def test_writers_refuse_tables_that_do_not_add_up() -> None:
    for runs, records in [([], []), (RUNS, RECORDS[:2]), (RUNS[:1], RECORDS)]:
        with pytest.raises(ValueError, match="records, but runs of"):
            encode_page(runs, records)
