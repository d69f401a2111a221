"""The folder that keeps what was read: never a wrong byte, never in the way, never more than it may."""

from __future__ import annotations

import errno
import os
import pickle
import random
import stat
import subprocess
import sys
import textwrap
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.stores import open_store
from monocontext.stores.disk import cache as disk_cache
from monocontext.stores.disk.cache import DiskCache, DiskCachedReader
from monocontext.stores.protocol import Blob
from monocontext.testing import CountingStore, FaultyStore, flip_byte
from monocontext.writing.publish import publish

TEXT = "".join(f"{number:099d}\n" for number in range(1000))
PIECE = 1000


@pytest.fixture
def place(tmp_path: Path) -> CountingStore:
    """A text in 100 frames, ten to a segment, with a page of its own."""
    store = open_store(tmp_path / "context")
    publish(TEXT, store, frame_bytes=PIECE, segment_bytes=10 * PIECE, codec="raw", filters=False)
    return CountingStore(store)


def open_cached(place: CountingStore, folder: Path, **options: object) -> Monocontext:
    place.reset()
    options = {"prefetch": "off", **options}  # what is read ahead is kept too, whenever it comes
    return Monocontext.open(place, cache_dir=folder, **options)  # type: ignore[call-overload,no-any-return]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def used_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in files(folder))


def test_what_was_read_once_is_there_the_next_time(place: CountingStore, tmp_path: Path) -> None:
    with open_cached(place, tmp_path / "kept") as context:
        assert str(context) == TEXT
        assert (context.stats.disk_hits, context.stats.gets) == (0, place.gets)
    with open_cached(place, tmp_path / "kept") as context:
        assert str(context) == TEXT
        assert [request.key for request in place.log] == ["manifest.json"]
        assert context.stats.gets == 1
        assert context.stats.bytes_fetched == place.bytes_read
        assert context.stats.disk_bytes >= len(TEXT)
        assert "from disk" in str(context.stats)


def test_only_the_owner_may_look(place: CountingStore, tmp_path: Path) -> None:
    with open_cached(place, tmp_path / "deep" / "kept") as context:
        assert str(context) == TEXT
    for path in (tmp_path / "deep" / "kept").rglob("*"):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
    assert stat.S_IMODE((tmp_path / "deep" / "kept").stat().st_mode) == 0o700


def test_every_flipped_bit_of_a_file_is_noticed(tmp_path: Path) -> None:
    rng = random.Random(3)
    blob = Blob(rng.randbytes(30_000), "etag", 10**6)
    disk = DiskCache(tmp_path)
    disk.keep("an object", 1000, blob)
    (path,) = files(tmp_path)
    right = path.read_bytes()
    assert disk.find("an object", 1000, 30_000) == replace(blob, local=True)
    for at in {*range(0, 150), *(rng.randrange(len(right)) for _ in range(100))}:
        changed = bytearray(right)
        changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        assert disk.find("an object", 1000, 30_000) is None
        assert not path.exists()
    for other in (b"", right[:30], right[:-1], right + b"x"):
        path.write_bytes(other)
        assert disk.find("an object", 1000, 30_000) is None
    os.mkfifo(path)
    assert disk.find("an object", 1000, 30_000) is None
    disk.keep("an object", 1000, blob)
    assert disk.find("an object", 1000, 30_000) == replace(blob, local=True)


def test_only_the_same_range_of_the_same_object_is_found(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path)
    disk.keep("one", 77, Blob(b"0123456789", "etag", 10**6))
    ranges = [("one", 77, 9), ("one", 78, 9), ("one", 0, 10), ("another", 77, 10)]
    assert [disk.find(*place) for place in ranges] == [None] * 4
    assert disk.find("one", 77, 10) == Blob(b"0123456789", "etag", 10**6, local=True)
    disk.forget("one", 77, 10)
    assert disk.find("one", 77, 10) is None


def test_a_file_that_was_moved_is_that_of_nothing_else(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path)
    disk.keep("one", 0, Blob(b"0123456789", "etag", 10**6))
    (path,) = files(tmp_path)
    content = path.read_bytes()
    disk.keep("another", 0, Blob(b"abcdefghij", "etag", 10**6))
    (other,) = set(files(tmp_path)) - {path}
    other.write_bytes(content)
    assert disk.find("another", 0, 10) is None
    assert not other.exists()
    assert disk.find("one", 0, 10) == Blob(b"0123456789", "etag", 10**6, local=True)


def test_an_answer_that_was_damaged_on_its_way_is_not_kept(place: CountingStore, tmp_path: Path) -> None:
    """Nobody can see it when it is written; the reader that decodes it says so."""
    faulty = FaultyStore(place, [None, flip_byte(50)])
    with Monocontext.open(faulty, cache_dir=tmp_path / "kept") as context:
        assert context[:10] == TEXT[:10]
    assert faulty.faults == 1
    with open_cached(place, tmp_path / "kept") as context:
        assert context[:10] == TEXT[:10]
        assert place.gets == 1


def test_the_same_url_at_two_servers_is_two_places(tmp_path: Path) -> None:
    item, two = open_store("memory://one"), open_store("memory://two")
    item.put("segments/x", b"one")
    two.put("segments/x", b"two")
    disk = DiskCache(tmp_path)
    for _ in range(2):
        assert DiskCachedReader(item, disk, "http://a s3://b", is_own=True).get_range("segments/x", 0, 3).data == b"one"
        assert DiskCachedReader(two, disk, "http://c s3://b", is_own=True).get_range("segments/x", 0, 3).data == b"two"


def test_other_objects_are_kept_under_their_recorded_version_only(tmp_path: Path) -> None:
    store = CountingStore(open_store(f"memory://{tmp_path.name}"))
    reader = DiskCachedReader(store, DiskCache(tmp_path / "kept"), "memory://x", is_own=False)
    etag = store.put("theirs.txt", b"first version")
    for _ in range(2):
        assert reader.get_range("theirs.txt", 0, 5, etag=etag).data == b"first"
        assert reader.get_range("theirs.txt", 0, 5).data == b"first"
    assert store.gets == 3
    later = store.put("theirs.txt", b"other version")
    assert reader.get_range("theirs.txt", 0, 5, etag=etag).data == b"first"  # pinned, and never asked for again
    assert reader.get_range("theirs.txt", 0, 5, etag=later).data == b"other"


# -- room --------------------------------------------------------------------------------------------------------------


def test_never_more_than_it_may_hold(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, 100_000)
    rng = random.Random(1)
    for number in range(120):
        disk.keep(
            f"object {number % 50}", number * 10_000, Blob(rng.randbytes(rng.randrange(1, 9000)), "etag", 1 << 40)
        )
        assert used_bytes(tmp_path) <= 100_000
    assert used_bytes(tmp_path) > 60_000
    disk.keep("too large", 0, Blob(bytes(200_000), "etag", 200_000))
    assert disk.find("too large", 0, 5) is None
    assert used_bytes(tmp_path) > 60_000


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, 160_000)
    for number in range(9):
        disk.keep(f"object {number}", 0, Blob(bytes([number]) * 10_000, "etag", 10_000))
    for age, path in enumerate(sorted(files(tmp_path), key=lambda path: path.read_bytes()[-1])):
        os.utime(path, (time.time() - 10_000 + age, time.time() - 10_000 + age))
    assert disk.find("object 0", 0, 10_000)  # used now
    for number in range(9, 17):
        disk.keep(f"object {number}", 0, Blob(bytes(10_000), "etag", 10_000))
    assert disk.find("object 0", 0, 10_000)
    assert disk.find("object 16", 0, 10_000)
    kept = [number for number in range(17) if disk.find(f"object {number}", 0, 10_000)]
    assert kept == [0, *range(kept[1], 17)]
    assert 3 <= kept[1] <= 6


def test_a_part_of_the_disk_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 100_000

    class Usage:
        total = 1_000_000

        @property
        def free(self) -> int:
            return free - used_bytes(tmp_path)

    monkeypatch.setattr(disk_cache.shutil, "disk_usage", lambda path: Usage())
    disk = DiskCache(tmp_path, 10**9)
    for number in range(17):
        disk.keep(f"object {number}", 0, Blob(bytes(5000), "etag", 5000))
        assert free - used_bytes(tmp_path) >= 50_000
    assert used_bytes(tmp_path) > 20_000
    free = 60_000  # somebody else took the rest
    disk.keep("object x", 0, Blob(bytes(5000), "etag", 5000))
    assert used_bytes(tmp_path) <= 10_500
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        disk.keep("object y", 0, Blob(bytes(5000), "etag", 5000))


def test_what_a_dead_process_left_is_removed(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, 100_000)
    disk.keep("object", 0, Blob(bytes(1000), "etag", 1000))
    folder = files(tmp_path)[0].parent
    for name, age in ((".new-old", 10_000), (".new-young", 10)):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    DiskCache(tmp_path, 100_000).keep("another", 0, Blob(bytes(1000), "etag", 1000))
    assert not (folder / ".new-old").exists()
    assert (folder / ".new-young").exists()


# -- a disk that does not serve ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_a_disk_that_cannot_be_written_to_is_said_once(
    place: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(*args: object) -> int:
        raise OSError(code, os.strerror(code))

    with open_cached(place, tmp_path / "kept") as context:
        assert context[:10_000] == TEXT[:10_000]
    monkeypatch.setattr(disk_cache, "_write", fail)
    context = open_cached(place, tmp_path / "kept", cache_bytes=0)
    with pytest.warns(RuntimeWarning, match="nothing is cached in .*kept from now on: "):
        assert str(context) == TEXT
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(context) == TEXT
    assert context.stats.disk_hits == 1 * 2  # what was kept before still serves
    context.close()


def test_a_folder_that_others_can_write_to(place: CountingStore, tmp_path: Path) -> None:
    with open_cached(place, tmp_path / "kept") as context:
        assert str(context) == TEXT
    (tmp_path / "kept" / "monocontext-1").chmod(0o777)
    context = open_cached(place, tmp_path / "kept")
    with pytest.warns(RuntimeWarning, match="no other user can write to"):
        assert str(context) == TEXT
    assert context.stats.disk_hits == 0


def test_the_folder_is_removed_meanwhile(place: CountingStore, tmp_path: Path) -> None:
    import shutil

    with open_cached(place, tmp_path / "kept", cache_bytes=0) as context:
        for _ in range(3):
            assert str(context) == TEXT
            shutil.rmtree(tmp_path / "kept")
    with open_cached(place, tmp_path / "kept") as context:
        assert str(context) == TEXT


# -- threads and processes ---------------------------------------------------------------------------------------------


PROGRAM = """
import random, sys, warnings
from monocontext import Monocontext
warnings.simplefilter("error")
text = "".join(f"{number:099d}\\n" for number in range(1000))
context = Monocontext.open(sys.argv[1], cache_dir=sys.argv[2], cache_dir_bytes=30_000, cache_bytes=0)
rng = random.Random(int(sys.argv[3]))
for _ in range(400):
    start = rng.randrange(20) * 1000
    assert context[start : start + 10] == text[start : start + 10]
print(context.stats.disk_hits)
"""


@pytest.mark.slow
def test_several_processes_at_once(place: CountingStore, tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "context"), str(tmp_path / "kept"), str(n)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for process in running:
        out, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (0, "")
        assert int(out) > 20
    assert used_bytes(tmp_path / "kept") <= 3 * 40_000


def test_a_pickle_carries_the_folder(place: CountingStore, tmp_path: Path) -> None:
    context = open_cached(place, tmp_path / "kept", cache_dir_bytes=12_345_678)
    assert context[:10] == TEXT[:10]
    again = pickle.loads(pickle.dumps(context))
    assert again._opened.disk.folder == str(tmp_path / "kept")
    assert again._opened.disk.capacity_bytes == 12_345_678
    assert again[:10] == TEXT[:10]
    assert (again.stats.gets, again.stats.disk_hits) == (1, 1)
