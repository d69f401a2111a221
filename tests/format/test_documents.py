"""Pages of documents and tables of names: what is written is read, and what is damaged is refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monocontext.errors import DamagedData
from monocontext.format import document_names as table
from monocontext.format import documents as form
from monocontext.format import name_tables
from monocontext.format.documents import DocumentPage, DocumentRow
from monocontext.format.refs import DocumentPageRef

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def rows(draw: st.DrawFn) -> list[DocumentRow]:
    found = []
    for _ in range(draw(st.integers(1, 30))):
        newlines = draw(st.integers(0, 3))
        characters = newlines + draw(st.integers(0, 1 << 40))
        size = characters + draw(st.integers(0, 1 << 40))
        metadata = draw(st.sampled_from([b"", b'{"a":1}', '{"b":"é"}'.encode()]))
        gap, name = draw(st.integers(0, 9)), draw(names).encode()
        found.append(DocumentRow(gap, draw(st.integers(0, gap)), characters, size, newlines, name, metadata))
    return found


def page_of(found: list[DocumentRow], before: DocumentPageRef | None = None) -> tuple[bytes, DocumentPageRef]:
    data = form.encode_page(found)
    base = (before.characters, before.newlines) if before else (0, 0)
    return data, form.page_ref(data, found, before, *base)


@given(rows(), rows())
def test_a_page_says_what_was_written(first: list[DocumentRow], second: list[DocumentRow]) -> None:
    _, before = page_of(first)
    data, ref = page_of(second, before)
    page = DocumentPage(data, ref, before)
    assert page.rows() == second
    assert [page[i].number for i in range(len(page))] == [len(first) + i for i in range(len(second))]
    offset, lines = before.characters, before.newlines
    for i, row in enumerate(second):
        offset, lines = offset + row.gap, lines + row.gap_newlines
        assert (page[i].start, page[i].first_line, page[i].name) == (offset, lines, row.name.decode())
        offset, lines = offset + row.characters, lines + row.newlines
        assert page[i].stop == offset


def test_no_flipped_bit_passes() -> None:
    data, ref = page_of([DocumentRow(0, 0, 5, 5, 1, b"name", b'{"k":1}'), DocumentRow(1, 1, 0, 0, 0, b"", b"")])
    for offset in range(len(data)):
        for bit in (1, 128):
            damaged = bytearray(data)
            damaged[offset] ^= bit
            with pytest.raises(DamagedData):
                DocumentPage(bytes(damaged), ref, None)


@pytest.mark.parametrize("count", [1, 2, 1024, 1025, 5000])
def test_every_name_is_found_in_its_bucket(count: int) -> None:
    hashes = [table.name_hash(str(i).encode()) for i in range(count)]
    entries = name_tables.last_of_each_name(name_tables.entries_of(b"".join(hashes), 7))
    ref, data = name_tables.table_of(entries, 7 + count)
    assert (name_tables.decode_names(data, ref) == entries).all()
    size = table.bucket_bytes(ref)
    for number, hashed in enumerate(hashes):
        bucket = table.bucket_of(hashed, ref)
        body = table.check_bucket(data[bucket * size : (bucket + 1) * size], bucket, ref)
        assert table.find_in_bucket(body, hashed) == 7 + number
        assert table.find_in_bucket(body, table.name_hash(b"another")) is None


def test_a_bucket_does_not_pass_for_another() -> None:
    entries = name_tables.last_of_each_name(
        name_tables.entries_of(b"".join(table.name_hash(bytes([i, j])) for i in range(64) for j in range(64)))
    )
    ref, data = name_tables.table_of(entries, 4096)
    size = table.bucket_bytes(ref)
    assert ref.buckets > 1
    table.check_bucket(data[size : 2 * size], 1, ref)
    with pytest.raises(DamagedData):
        table.check_bucket(data[size : 2 * size], 0, ref)


def test_of_one_name_the_last_document_counts() -> None:
    shuffled = random.Random(5)
    bearers = [shuffled.choice("abcdefgh") for _ in range(100)]
    entries = name_tables.entries_of(b"".join(table.name_hash(name.encode()) for name in bearers))
    found = {int(entry["number"]) for entry in name_tables.last_of_each_name(entries)}
    assert found == {max(i for i, name in enumerate(bearers) if name == item) for item in set(bearers)}
    first = next(i for i, name in enumerate(bearers) if name in bearers[:i])
    assert name_tables.first_duplicate(entries) == first
    assert name_tables.first_duplicate(entries[:1]) is None
