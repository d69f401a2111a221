"""Compaction: the same text in few objects."""

from __future__ import annotations

import uuid
from itertools import groupby, pairwise
from random import Random

import pytest

from monocontext import Monocontext, replace
from monocontext.format.index import Frame
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore
from monocontext.writing.index_in_place import index
from monocontext.writing.publish import append, publish
from monocontext.writing.segments import SegmentLayout
from monocontext.writing.upkeep.compact import compact, ranges_to_rewrite
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify

from .upkept import FRAME_BYTES, SEGMENT_BYTES, check, grow_context, memory, root, words


@pytest.fixture
def random() -> Random:
    return Random(4)


def segments_of(store: Store) -> list[str]:
    """The objects that the newest generation's text lies in, in order, each once for each run."""
    with Monocontext.open(store) as context:
        reader = context._source.reader  # type: ignore[attr-defined]
        return [name for name, _ in groupby(reader.frame(n).object for n in range(reader.manifest.frames))]


def test_nothing_to_do_costs_two_requests_and_the_pages(random: Random) -> None:
    for lines in (0, 3, 2000):
        store = CountingStore(memory())
        publish(words(random, lines), store, frame_bytes=FRAME_BYTES, segment_bytes=SEGMENT_BYTES)
        store.reset()
        assert compact(store, segment_bytes=SEGMENT_BYTES) == root(store)
        assert (store.counts["put"], store.gets) == (0, 3)  # two roots, and a LIST of segments


def test_without_filters(store: Store, random: Random) -> None:
    text = grow_context(store, random, 1000, 40)
    before = root(store).filters
    after = compact(store, segment_bytes=SEGMENT_BYTES, filters=False)
    assert set(after.filters) <= set(before)  # what fits is kept, none is made
    check(store, text, random)
    assert sum(ref.frames for ref in compact(store, segment_bytes=SEGMENT_BYTES).filters) == after.frames


def test_the_plan() -> None:
    layout = SegmentLayout(frame_bytes=100, segment_bytes=1000)

    def rewritten(*segments: tuple[str, int, int], dead: dict[str, int] | None = None) -> list[tuple[int, int]]:
        """The ranges to rewrite of segments with a name, frames and bytes. Frames are stored as they are."""
        frames: list[Frame] = []
        for name, count, size in segments:
            for start, end in pairwise(size * i // count for i in range(count + 1)):
                counts = len(frames), name, start, end - start, end - start
                frames.append(Frame(*counts, 1, 0, 0, 0, "raw", None, 0, 0, 0))
        ranges = ranges_to_rewrite(frames, layout, dead or {})
        return [(found[0].number, found[-1].number + 1) for found in ranges]

    full, half, small, elsewhere = ("a", 10, 1000), ("b", 5, 500), ("c", 3, 300), ("s3://b/k", 1, 10)
    assert rewritten() == []
    assert rewritten(full, half, full) == []
    assert rewritten(full, small, full) == []  # one for one is nothing gained
    assert rewritten(full, small, small, full, small, small) == [(10, 16), (26, 32)]
    assert rewritten(small, elsewhere, small) == []
    assert rewritten(("d", 50, 1000)) == [(0, 50)]  # frames of 20 bytes
    assert rewritten(("d", 19, 1000)) == []
    assert rewritten(full, half, full, dead={"a": 400, "b": 400}) == []
    assert rewritten(full, half, full, dead={"b": 500}) == [(10, 15)]


@pytest.mark.parametrize("allowed", [True, False])
def test_virtual_segments_stay_where_they_are(allowed: bool, random: Random) -> None:
    elsewhere, here = (f"memory://{uuid.uuid4().hex}" for _ in range(2))
    texts = [words(random, 20) for _ in range(12)]
    for number, text in enumerate(texts):
        open_store(elsewhere).put(f"{number:02}.txt", text.encode())
    index(elsewhere, here, frame_bytes=FRAME_BYTES)
    of_objects = root(open_store(here)).filters
    more = [words(random, 3) for _ in range(40)]
    for piece in more:
        append(piece, here)
    allow = [elsewhere] if allowed else []
    after = compact(here, allow=allow)
    store = open_store(here)
    assert [name for name in segments_of(store) if "://" in name] == [f"{elsewhere}/{n:02}.txt" for n in range(12)]
    assert len(segments_of(store)) == 13
    if allowed:
        assert sum(ref.frames for ref in after.filters) == after.frames
    else:  # the last frame that may not be read is followed by another text
        assert sum(ref.frames for ref in after.filters) == after.frames - 1 > of_objects[0].frames
    assert verify(here, allow=[elsewhere]).problems == []
    whole = "".join(texts + more)
    assert str(Monocontext.open(here, allow=[elsewhere])) == whole
    with Monocontext.open(here, allow=[elsewhere]) as context:
        for at in range(0, len(whole) - 12, 501):
            assert context.find(whole[at : at + 12]) == whole.find(whole[at : at + 12])
        assert context.stats.search.pruned > 0
    assert compact(here, allow=allow) == after


def test_dead_bytes_are_given_back(store: Store, random: Random) -> None:
    """Of a segment with frames that edits have replaced, once half of it is dead."""
    texts = {f"d{number}": words(random, 20) + "\n" for number in range(100)}
    publish(texts, store, frame_bytes=FRAME_BYTES, segment_bytes=SEGMENT_BYTES)
    for number in range(0, 100, 3):
        texts[f"d{number}"] = words(random, 20) + "\n"
        replace(store, {f"d{number}": texts[f"d{number}"]})
    compact(store, segment_bytes=SEGMENT_BYTES)
    gc(store, older_than_seconds=0)
    after = root(store)
    assert sum(info.size_bytes for info in store.list("segments/")) < 1.3 * after.stored_bytes
    check(store, "".join(texts.values()), random)
