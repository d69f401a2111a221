"""Contexts that earlier versions wrote: they open for ever. What lies in `golden/` is never rewritten."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from monocontext import Monocontext
from monocontext.format import name_tables
from monocontext.format.document_names import name_hash
from monocontext.format.filters.building import LEAST_FRAME_BYTES, LEAST_FRAMES
from monocontext.format.filters.columns import StoredRows
from monocontext.format.filters.grams import rows_to_read
from monocontext.format.filters.query import FrequencyQuery, Literal
from monocontext.format.manifest import find_root
from monocontext.stores import open_store
from monocontext.testing import CountingStore
from monocontext.writing.publish import append
from monocontext.writing.upkeep.compact import add_filters
from monocontext.writing.upkeep.verify import verify

GOLDEN = Path(__file__).parent / "golden"


def expected_text(folder: Path) -> str:
    return (folder / "text.txt").read_bytes().decode()


@pytest.fixture(params=["raw", "zstd", "in_root", "ends", "directories", "words", "spans", "short"])
def golden(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / "v1" / request.param


def test_reads(golden: Path) -> None:
    text = expected_text(golden)
    with Monocontext.open(golden / "context") as context:
        assert (str(context), len(context), context.generation) == (text, len(text), 2)
        assert list(context.lines) == [line + "\n" for line in text.split("\n")[:-1]]
        assert [context.find(character) for character in "é漢😀Σ"] == [text.find(character) for character in "é漢😀Σ"]
        assert context[20:70] == text[20:70]
    with Monocontext.open(golden / "context", generation=1) as first:
        assert 0 < len(first) < len(text)
        assert str(first) == text[: len(first)]
    report = verify(golden / "context")
    assert report.problems == []
    assert report.frames > 3
    assert len(list((golden / "context" / "segments").iterdir())) >= 2
    assert len(list((golden / "context" / "generations").iterdir())) == 2


def test_small_texts_ride_in_the_roots_of_one_and_their_ends_in_those_of_another() -> None:
    for name, fields in (("in_root", {"text"}), ("ends", {"head", "tail"}), ("zstd", set())):
        text = expected_text(GOLDEN / "v1" / name)
        store = CountingStore(open_store(GOLDEN / "v1" / name / "context"))
        with Monocontext.open(store) as context:
            root = find_root(store.store).manifest
            assert {field for field in ("text", "head", "tail") if getattr(root, field)} == fields
            assert (context[:30], context[-30:]) == (text[:30], text[-30:])
            assert (store.gets == 1) == bool(fields)


def test_can_be_appended_to(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "context", tmp_path / "copy")
    append("more\n", tmp_path / "copy")
    with Monocontext.open(tmp_path / "copy") as context:
        assert str(context) == expected_text(golden) + "more\n"
    assert verify(tmp_path / "copy").ok


def test_directories_of_directories() -> None:
    root = find_root(open_store(GOLDEN / "v1/directories/context")).manifest
    levels = [getattr(page, "level", 0) for page in root.pages]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == 3
    assert root.has_earlier_filters
    assert b'"requires": ["directories"]' in (GOLDEN / "v1/directories/context/manifest.json").read_bytes()


def test_filters_of_before_are_read_as_absent_until_index_renews_them(golden: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(golden / "context", place)
    root, text = find_root(open_store(place)).manifest, expected_text(golden)
    assert root.filters == ()
    with Monocontext.open(place) as context:
        assert context.find(text[-30:]) == text.find(text[-30:])
        narrowed = context._source.reader.narrow(Literal("absent"), 0, len(text))  # type: ignore[attr-defined]
        if not root.text:
            assert ("`monocontext index --filters URL` renews them" in narrowed.reason) == root.has_earlier_filters
    renewed = add_filters(place)
    assert bool(renewed.filters) == (renewed.frames >= LEAST_FRAMES and renewed.frame_bytes >= LEAST_FRAME_BYTES)
    assert not find_root(open_store(place)).manifest.has_earlier_filters
    assert verify(place).problems == []


def test_words_are_counted_as_ever(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "v1/words/context", tmp_path / "copy")
    add_filters(tmp_path / "copy")
    with Monocontext.open(tmp_path / "copy") as context:
        for word, frames in {"東京": [2, 1, 1, 1], "rotating": [12, 11, 11, 0], "absent": [6, 0, 0, 0]}.items():
            holding = [context.span.all_candidates(FrequencyQuery((word,), level)) for level in range(4)]
            assert [candidates.frame_count for candidates in holding if candidates is not None] == frames


GRAMS = {
    "ty of basalt": [7],
    "0b5e55ed": [7],
    "quayy": [1, 3, 5, 9, 11, 13],
    "at 10:15": [4, 5, 8, 9, 11, 12],
    "京都の朝": [],
    "東京の夜": list(range(16)),
}


def test_rows_of_grams_are_as_ever(tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(GOLDEN / "v1/short/context", place)
    (ref,) = add_filters(place).filters
    rows = StoredRows(ref, lambda key: (place / key).read_bytes()).rows
    columns = np.unpackbits(rows, axis=1, count=ref.width, bitorder="little")
    assert (ref.frames, ref.bits) == (17, 11)
    for needle, frames in GRAMS.items():
        result = columns[list(rows_to_read(needle, ref.bits, ref.overlap_bytes)), :15].all(axis=0)
        assert np.flatnonzero(result).tolist() == [frame for frame in frames if frame < 15], needle


DOCUMENTS = [
    ("a.txt", "erste Zeile é\nzweite 漢\n", {"year": 2026}),
    ("leer", "", {}),
    ("b/ü.txt", "ohne Ende 😀", {}),
    ("a.txt", "ersetzt\r\nΣ\u2028\n", {"tags": ["x", None]}),
]


def test_documents_are_those_that_were_stored(tmp_path: Path) -> None:
    place = GOLDEN / "v1/documents/context"
    with Monocontext.open(place) as context:
        result = context.documents
        assert str(context) == expected_text(place.parent)
        read = [(r.name, str(context.view(r.start, r.stop)), result.metadata_of(r.number)) for r in result.records()]
        assert read == DOCUMENTS
    with Monocontext.open(place, shape="dict") as by_name:
        assert by_name == {name: text for name, text, _ in DOCUMENTS}
    assert verify(place).problems == []
    shutil.copytree(place, tmp_path / "copy")
    append({"neu": "more\n"}, tmp_path / "copy")
    with Monocontext.open(tmp_path / "copy", shape="list") as texts:
        assert texts == [*(text for _, text, _ in DOCUMENTS), "more\n"]


def test_a_table_of_names_is_laid_out_as_ever() -> None:
    hashes = b"".join(name_hash(str(i).encode()) for i in range(2000))
    ref, data = name_tables.table_of(name_tables.entries_of(hashes, 5), 2005)
    assert (ref.buckets, ref.stride, sha256(data).hexdigest()[:32]) == (2, 1036, "c65e49cd1eb2a20dd9a7afb2890288e9")
