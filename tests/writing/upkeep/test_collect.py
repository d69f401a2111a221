"""Collection: what no kept generation names goes, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from monocontext import Monocontext
from monocontext.errors import DamagedData, NotAContext, NotFound, UnsupportedFormat
from monocontext.format.manifest import ROOT_KEY, Manifest, checksum, find_root, generation_key, read_generation
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, Crash, CrashingStore, WrappedStore
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.compact import add_filters, compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from tests.budget import examples

from .upkept import FRAME_BYTES, SEGMENT_BYTES, Aging, check, grow_context, memory, text_of, words

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def random() -> Random:
    return Random(8)


def keys(store: Store) -> set[str]:
    return {info.key for info in store.list()}


def generations(store: Store) -> list[int]:
    return [int(info.key[12:32]) for info in store.list("generations/")]


def named_ids(store: Store) -> set[str]:
    """What the generations of a store need, found by other means than those of `gc`: by what verifying them reads."""
    needed = {ROOT_KEY}
    for generation in generations(store):
        counting = CountingStore(store)
        assert verify(counting, generation=generation).problems == []
        needed |= {request.key for request in counting.log}
    return needed


def test_after_a_compaction(random: Random) -> None:
    store = Aging(memory())
    text = grow_context(store, random, 300, 40)
    compact(store, segment_bytes=SEGMENT_BYTES)
    before = keys(store)
    assert gc(store).objects == 0
    store.turn(6.9 * DAY)
    assert gc(store).objects == 0
    store.turn(0.2 * DAY)
    would = gc(store, dry_run=True)
    assert keys(store) == before
    found = gc(store)
    assert would == dataclasses.replace(found, dry_run=True)
    assert (found.generations, found.kept_generations) == (41, 1)
    assert found.objects == len(before - keys(store)) > 100
    assert found.bytes > 0
    assert generations(store) == [42]
    assert keys(store) == named_ids(store)
    check(store, text, random)
    assert gc(store).objects == 0
    append("more\n", store)
    check(store, text + "more\n", random)


def test_what_a_killed_upload_left(random: Random) -> None:
    store = Aging(memory())
    text = grow_context(store, random, 50, 1)
    with pytest.raises(Crash):
        append(words(random, 2000), CrashingStore(store, 5), segment_bytes=SEGMENT_BYTES)
    store.turn(6 * DAY)
    assert gc(store).objects == 0
    store.turn(2 * DAY)
    found = gc(store)
    assert (found.generations, found.segments) == (1, 5)
    check(store, text, random)


def test_what_is_not_ours(random: Random) -> None:
    store = Aging(memory())
    grow_context(store, random, 100, 3)
    some = "0123456789abcdef" * 2
    others = {
        *("notes.txt", "segments/readme.md", f"segments/{some}.seg.bak", f"segments/old/{some}.seg", "segments/ab.seg"),
        *(f"index/{some}.seg", f"filters/{some.upper()}.flt", "generations/7.json", f"generations/{1:021d}.json"),
        *(f"backup/segments/{some}.seg", f"generations/{3:020d}.json.old"),
    }
    for key in others:
        store.put(key, b"?")
    orphan = f"segments/{some}.seg"
    store.put(orphan, b"?")
    store.turn(30 * DAY)
    gc(store)
    assert others < keys(store)
    assert orphan not in keys(store)


def test_where_no_context_is() -> None:
    with pytest.raises(NotFound, match="no context at"):
        gc(memory())
    store = memory()
    store.put(ROOT_KEY, b"[]")
    with pytest.raises(NotAContext):
        gc(store)


def test_a_pointer_that_lags(random: Random) -> None:
    """Readers open what it says, and writers follow the roots after it to the newest one."""
    store = Aging(memory())
    publish("old\n", store)
    copy = store.get(ROOT_KEY).data
    publish("new\n", store, replace=True)
    publish("newer\n", store, replace=True)
    store.put(ROOT_KEY, copy)
    store.turn(30 * DAY)
    gc(store)
    assert generations(store) == [1, 2, 3]
    assert text_of(store) == "old\n"
    assert verify(store).ok
    append("last\n", store)
    assert text_of(store) == "newer\nlast\n"
    store.delete(ROOT_KEY)
    store.turn(30 * DAY)
    gc(store)
    assert generations(store) == [4]


def test_objects_that_only_a_later_version_understands(random: Random) -> None:
    """Filters of another kind, and fields that we do not know, name objects too."""
    store = Aging(memory())
    manifest = publish("text\n", store)
    kept_filter, kept_segment = "ab" * 16, f"segments/{'cd' * 16}.seg"
    data = json.loads(manifest.to_bytes())
    data["filters"] = [{"kind": "grams-9", "objects": [kept_filter]}]
    data["dictionary"] = {"key": kept_segment}
    data["crc32c"] = checksum(data)
    root = json.dumps(data).encode()
    for key in (ROOT_KEY, generation_key(1), f"filters/{kept_filter}.flt", kept_segment):
        store.put(key, root)
    store.turn(30 * DAY)
    assert gc(store).objects == 0


SECOND = generation_key(2)
DAMAGE: list[tuple[str, Callable[[bytes], bytes | None]]] = [
    (SECOND, lambda data: data.replace(b'"frames": ', b'"frames": 1')),
    (SECOND, lambda data: json.dumps(json.loads(data) | {"format": 9, "min_reader": 9}).encode()),
    ("page", lambda data: bytes(len(data))),
    ("page", lambda data: None),
    (ROOT_KEY, lambda data: data[:-9]),
]


@pytest.mark.parametrize(("key", "change"), DAMAGE)
def test_damage_stops_it_before_anything_is_removed(key: str, change: Callable[[bytes], bytes | None]) -> None:
    store = Aging(memory())
    for number in range(4):
        publish(f"{number}\n" * 15_000, store, replace=True, frame_bytes=16, codec="raw")  # no room for pages in roots
        store.turn(DAY)
    key = read_generation(store, 2).pages[0].key if key == "page" else key
    data = change(store.get(key).data)
    store.delete(key) if data is None else store.put(key, data)
    before = keys(store)
    with pytest.raises((DamagedData, UnsupportedFormat, NotFound), match=key.replace(".", r"\.")) as caught:
        gc(store, older_than_seconds=2.5 * DAY)
    assert "\n" not in str(caught.value)
    assert keys(store) == before


@pytest.mark.parametrize("rewrite", [compact, lambda store: add_filters(store, rebuild=True)])
@pytest.mark.parametrize("after", [1, 2])
def test_a_rewrite_whose_text_was_replaced_and_removed_goes_on_from_the_other(
    rewrite: Callable[[Store], object], after: int, random: Random
) -> None:
    """Without a grace period what it reads goes: that is no missing context, and nothing of it is left."""
    store = memory()
    grow_context(store, random, 300, 30)

    class Meeting(WrappedStore):
        """After some reads another text takes the place, and the old one is removed."""

        left = after

        def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
            self.left -= 1
            if self.left == 0:
                publish("another text\n", self.store, replace=True)
                gc(self.store, older_than_seconds=0)
            return super().get_range(key, start, length, etag=etag)

    meeting = Meeting(store)
    rewrite(meeting)
    assert meeting.left <= 0
    assert text_of(store) == "another text\n"
    assert keys(store) == named_ids(store)


def test_a_crash_at_every_removal(random: Random) -> None:
    class Dying(WrappedStore):
        """Carries out so many removals."""

        def __init__(self, store: Store, left: int):
            super().__init__(store)
            self.left = left

        def delete(self, key: str) -> None:
            if self.left == 0:
                raise Crash(key)
            self.left -= 1
            super().delete(key)

    for removals in range(0, 100, 7):
        store = Aging(memory())
        text = grow_context(store, Random(1), 100, 12)
        compact(store, segment_bytes=SEGMENT_BYTES)
        append("more\n", store)
        store.turn(8 * DAY)
        try:
            gc(Dying(store, removals))
        except Crash:
            assert keys(store) >= named_ids(store)
        else:
            break
        check(store, text + "more\n", random)
        gc(store)
        assert keys(store) == named_ids(store)
    assert removals > 20


@pytest.mark.parametrize("seed", range(examples(40)))
def test_random_histories(seed: int) -> None:
    """Generations of the grace period stay as they were, whatever was published, added, compacted or collected."""
    random = Random(seed)
    store = Aging(memory())
    grace = random.choice([0.0, 2.5 * DAY + HOUR / 2, 7 * DAY + HOUR / 2])  # never to the second
    now, text = 0.0, words(random, 60)
    publish(text, store, frame_bytes=FRAME_BYTES, segment_bytes=SEGMENT_BYTES)
    texts = {1: text}
    stored = {1: now}

    def committed(manifest: Manifest, new: str) -> None:
        nonlocal text
        text = new
        if manifest.generation not in texts:
            texts[manifest.generation], stored[manifest.generation] = text, now

    def replacement() -> None:
        earlier = random.choice(list(texts.values()))  # the same objects again, perhaps
        new = random.choice([words(random, 80), earlier, ""])
        filters = random.random() < 0.7
        layout = {"frame_bytes": FRAME_BYTES, "segment_bytes": SEGMENT_BYTES, "filters": filters}
        committed(publish(new, store, replace=True, **layout), new)  # type: ignore[arg-type]

    def addition() -> None:
        piece = words(random, random.choice([1, 2, 100]))
        committed(append(piece, store, filters=random.random() < 0.7), text + piece)

    def wait(seconds: float) -> None:
        nonlocal now
        store.turn(seconds)
        now += seconds

    def collection() -> None:
        gc(store, older_than_seconds=grace)
        numbers = sorted(texts)
        superseded = dict(zip(numbers, [stored[n] for n in numbers[1:]], strict=False))
        kept = [n for n in numbers if n not in superseded or superseded[n] >= now - grace]
        for gone in set(texts) - set(kept):
            del texts[gone]
        newest = find_root(store).manifest
        if grace == 0 and newest.generation not in texts:  # a fence
            assert newest.history.fence == newest.generation
            committed(newest, text)
            kept.append(newest.generation)
        assert generations(store) == kept
        assert keys(store) >= named_ids(store)
        for number in kept:
            with Monocontext.open(store, generation=number, cache_bytes=0) as context:
                assert str(context) == texts[number]

    steps: list[Callable[[], None]] = [
        *([addition] * 5),
        *([lambda: wait(random.choice([HOUR, DAY, 4 * DAY]))] * 3),
        replacement,
        lambda: committed(compact(store, segment_bytes=SEGMENT_BYTES), text),
        lambda: committed(add_filters(store), text),
        collection,
    ]
    for _ in range(25):
        random.choice(steps)()
        if grace == 0:
            wait(1.0)  # a second is between any two of them
    collection()
    check(store, text, random)
    wait(30 * DAY)
    collection()
    assert keys(store) == named_ids(store)


def test_a_machine_whose_clock_is_ahead_takes_nothing_that_is_new(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ages are by the store's clock: a writer that has not committed yet keeps what it has stored."""
    publish("a text\n", any_store)
    underway = f"segments/{'ab' * 16}.seg"
    any_store.put(underway, b"stored, and not committed")
    if isinstance(any_store, MemoryStore):
        pytest.skip("its clock is the machine's")
    ahead = time.time() + 30 * 86400
    monkeypatch.setattr(time, "time", lambda: ahead)
    assert gc(any_store).objects == 0
    assert any_store.get(underway).data == b"stored, and not committed"


def test_files_that_killed_writers_had_not_finished(tmp_path: Path) -> None:
    """They go by their age; a lock, and what a writer has just begun, stay."""
    publish("text", tmp_path / "ctx")
    folder = tmp_path / "ctx" / "segments"
    old, new, lock = (folder / f".monocontext-{name}" for name in ("0" * 16, "1" * 16, "lock"))
    for path in (old, new, lock):
        path.write_bytes(b"half")
    for path in (old, lock):
        os.utime(path, (time.time() - 8 * DAY,) * 2)
    would = gc(tmp_path / "ctx", dry_run=True)
    assert (would.temporaries, would.bytes, old.exists()) == (1, 4, True)
    found = gc(CountingStore(open_store(tmp_path / "ctx")))
    assert (found.temporaries, found.bytes) == (1, 4)
    assert (old.exists(), new.exists(), lock.exists()) == (False, True, True)
