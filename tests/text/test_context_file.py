"""`context.file()`: a text file over a context, for what reads files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest

from monocontext import ContextTooLarge, Monocontext, publish
from monocontext.text.namespace import NamespacePatch

StringIO: Any = NamespacePatch().names["__import__"]("io").StringIO

ROWS = [[str(i), f"name {i}", 'has "quotes", and\r\na line end' if i % 7 == 0 else "é" * (i % 5)] for i in range(3000)]


@pytest.fixture(scope="module")
def table() -> str:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(ROWS)
    return out.getvalue()


@pytest.fixture
def context(table: str) -> Iterator[Monocontext]:
    publish(table, "memory://context-file", frame_bytes=1000, segment_bytes=20_000)
    with Monocontext.open("memory://context-file") as text:
        yield text
    from monocontext.stores.memory import forget

    forget("context-file")


def test_csv_reads_it(context: Monocontext) -> None:
    with context.file() as file:
        assert list(csv.reader(file)) == ROWS
    assert context[:1] == "0", "closing the file leaves the context open"


def test_reads_and_seeks_as_a_file_does(context: Monocontext, table: str) -> None:
    ours, real = context.file(), io.StringIO(table, newline="")
    assert isinstance(ours, io.TextIOBase)
    assert ours.readable()
    assert ours.seekable()
    assert not ours.writable()
    steps = """file.read(10), file.readline(), file.tell(), file.seek(5000), file.read(3000), file.seek(0, 2),
        file.read(5), file.seek(100), next(file), file.readlines(500), file.read(), file.seek(0), len(list(file))"""
    assert eval(f"[{steps}]", {"file": ours}) == eval(f"[{steps}]", {"file": real})


def test_it_cannot_be_written_to(context: Monocontext) -> None:
    with pytest.raises(io.UnsupportedOperation, match="write"):
        context.file().write("x")


@pytest.mark.parametrize("arguments", [(), ("r",), ("rt",)])
def test_open_names_file_where_a_file_is_meant(context: Monocontext, arguments: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match=r"call context\.file\(\)"):
        context.open(*arguments)  # type: ignore[call-overload]


@pytest.mark.parametrize("place", [5, b"s3://bucket", ["a"]])
def test_what_is_no_place_is_refused(place: object) -> None:
    with pytest.raises(TypeError, match="takes a URL, a path or a store, not"):
        Monocontext.open(place)  # type: ignore[call-overload]


def test_a_read_above_the_limit_says_what_to_write(context: Monocontext, table: str) -> None:
    small = context.view(materialize_limit=1000)
    for file in (small.file(), StringIO(small)):
        with pytest.raises(ContextTooLarge, match="iterate the file"):
            file.read()
        assert file.read(900) + file.readline() == table[: table.index("\n", 900) + 1]
    assert context.file().read() == table
