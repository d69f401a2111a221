"""A text of many appends: few pieces, small roots, bounded work each time, and the text that was appended."""

from __future__ import annotations

from random import Random

import pytest

from monocontext.errors import ContextChanged
from monocontext.format.manifest import find_root, generation_key
from monocontext.stores.memory import MemoryStore
from monocontext.writing.appended import TIER_FACTOR, pieces_to_merge
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from tests.writing.upkeep.upkept import Overtaken, memory, text_of


@pytest.mark.parametrize("seed", range(6))
def test_few_pieces_and_each_byte_is_stored_again_once_a_tier(seed: int) -> None:
    random = Random(seed)
    sizes: list[int] = []
    stored = total = 0
    for _ in range(3000):
        new = random.choice([1, 100, random.randrange(1, 1 << random.randrange(1, 14))])
        taken = pieces_to_merge(sizes, new, 64)
        sizes[len(sizes) - taken :] = [new + sum(sizes[len(sizes) - taken :])]
        total += new
        stored += sizes[-1]
        assert len(sizes) <= (TIER_FACTOR - 1) * 13
    assert sum(sizes) == total
    assert stored <= 13 * total


LINE = "{:06d} the quick brown fox jumps over the lazy dog, é\n"


def test_a_long_text_closes_the_short_ones_before_it(store: MemoryStore) -> None:
    pieces = [LINE.format(0), *(LINE.format(n) for n in range(9)), LINE.format(7) * 1000, LINE.format(8), "end"]
    publish(pieces[0], store, frame_bytes=1024)
    for piece in pieces[1:]:
        root = append(piece, store)
    assert sum(ref.frames for ref in root.filters) == root.frames - 3  # two short ones, and the one before them
    assert text_of(store) == "".join(pieces)
    assert verify(store).problems == []


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_pairs_of_cr_and_lf_and_codecs_mix(codec: str) -> None:
    store, text = memory(), "a\r"
    publish(text, store, frame_bytes=16)
    for number in range(90):
        piece = ["\n", "b\r", "\n\r", "漢", "x" * 20 + "\r"][number % 5]
        append(piece, store, codec=codec if number % 7 else "raw")
        text += piece
        if number % 10 == 0:
            assert text_of(store) == text
    assert text_of(store) == text
    assert verify(store).problems == []


def others(store: MemoryStore, appends: int) -> None:
    """Append so many times, and remove what can be removed."""
    for number in range(appends):
        append(LINE.format(number), store)
    gc(store, older_than_seconds=0)


def test_a_writer_that_slept_while_its_number_was_freed_begins_anew(store: MemoryStore) -> None:
    """Its root is written at a number that others have passed and removed: it is taken back, and nothing is lost."""
    publish("begin\n", store)
    root = append("late\n", Overtaken(store, lambda: others(store, 10)))
    assert root.generation == 13
    assert text_of(store) == "begin\n" + "".join(map(LINE.format, range(10))) + "late\n"
    assert find_root(store).manifest == root
    assert verify(store).problems == []


def test_a_writer_that_slept_for_long_says_that_it_cannot_tell(store: MemoryStore) -> None:
    publish("begin\n", store)
    with pytest.raises(ContextChanged, match="generation 2 was written, but the newest is 82"):
        append("late\n", Overtaken(store, lambda: others(store, 80)))
    assert text_of(store) == "begin\n" + "".join(map(LINE.format, range(80)))
    assert not [info for info in store.list("generations/") if info.key == generation_key(2)]
    append("more\n", store)
    assert text_of(store).endswith("more\n")
    assert verify(store).problems == []
