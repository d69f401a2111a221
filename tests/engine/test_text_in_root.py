"""Text that came with its root: after a refresh, when it is closed, in part, and when it is damaged."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

import pytest
import zstandard

from monocontext import Monocontext, append, publish
from monocontext.engine.text_in_root import TextInRoot
from monocontext.errors import ContextClosed, DamagedData
from monocontext.format.inline import read_end, text_in
from monocontext.format.manifest import find_root
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from tests.engine.counted import memory

pytestmark = pytest.mark.usefixtures("texts_in_roots")

TEXT = "".join(f"line {number:04d} é漢\n" for number in range(3000))


@pytest.fixture
def store() -> MemoryStore:
    store = memory()
    publish(TEXT, store, frame_bytes=1000, segment_bytes=4000)
    return store


def test_a_refresh_takes_the_copies_of_the_newer_root(store: MemoryStore) -> None:
    with Monocontext.open(store) as context:
        assert context[-5:] == TEXT[-5:]
        append("more\n", store)
        assert context[-5:] == TEXT[-5:]
        context.refresh()
        assert context[-10:] == (TEXT + "more\n")[-10:]
        assert str(context) == TEXT + "more\n"
        assert context.generation == 2
    with Monocontext.open(store, generation=1) as old:
        assert str(old) == TEXT


def test_a_closed_text_gives_nothing_of_its_root(store: MemoryStore) -> None:
    large = memory()
    publish(TEXT * 400, large, codec="raw", filters=False)
    assert find_root(large).manifest.head
    for place in (store, large):
        context = Monocontext.open(place)
        context.close()
        for look in (lambda c: c[:10], lambda c: c[-10:], lambda c: c.lines[1:2], str):
            with pytest.raises(ContextClosed):
                look(context)


def test_ranges_that_the_root_does_not_have_come_from_the_store(store: MemoryStore) -> None:
    counting = CountingStore(store)
    root = find_root(store).manifest
    reader = TextInRoot(counting, root)
    [key] = {info.key for info in list(store.list("segments/"))[:1]}
    size = store.head(key).size_bytes - 16  # the last line of a segment is none of a frame
    whole = store.get(key).data[:size]
    assert reader.get_range(key, 3, size - 5).data == whole[3 : size - 2]
    assert reader.get_range(key, 0, size).in_root
    assert counting.gets == 0
    reader.forget(key, 0, size)
    assert reader.get_range(key, 0, size).data == whole
    assert reader.get_range(root.pages[0].key, 0, 8).data == b"MCPAGE\0\1"
    assert counting.gets == 2


def test_lines_at_the_ends_of_a_larger_text() -> None:
    text = TEXT * 400
    store = memory()
    publish(text, store, codec="raw", filters=False)
    counting = CountingStore(store)
    lines = text.splitlines(keepends=True)
    with Monocontext.open(counting) as context:
        assert context.lines[:20] == "".join(lines[:20])
        assert context.lines[-20:] == "".join(lines[-20:])
        assert context[5] == text[5]
        assert counting.gets == 1
        middle = len(lines) // 2
        assert context.lines[middle : middle + 3] == "".join(lines[middle : middle + 3])
        ends = context._reader.ends  # type: ignore[union-attr]
        for at in (0, 1, ends.head_stop - 1, ends.head_stop, ends.head_stop + 1, ends.tail_start - 1, ends.tail_start):
            assert context._reader.line_of(at) == text.count("\n", 0, at)  # type: ignore[union-attr]
            assert context[at : at + 40] == text[at : at + 40]
        assert context[ends.head_stop - 3 : ends.head_stop + 3] == text[ends.head_stop - 3 : ends.head_stop + 3]


@pytest.mark.parametrize("length", range(1, 9))
def test_a_part_of_a_copy_is_read_without_the_rest(length: int) -> None:
    store = memory()
    publish("abcdefgh"[:length], store, codec="raw")
    root = find_root(store).manifest
    assert text_in(root) == b"abcdefgh"[:length]
    damaged = replace(root, text=root.text + "????")
    for start in range(length + 1):
        for stop in range(start, length + 1):
            assert text_in(root, start, stop) == text_in(damaged, start, stop) == b"abcdefgh"[start:stop]
    with pytest.raises(DamagedData, match="not base64"):
        text_in(damaged)


@pytest.mark.parametrize(("data", "size"), [(b"", "0"), (b"a" * 70_000, "70,000")])
def test_an_end_whose_size_is_invalid(data: bytes, size: str) -> None:
    with pytest.raises(DamagedData, match=f"expected 1 to 65,536 bytes, its header says {size}"):
        read_end(b64encode(zstandard.compress(data)).decode())
