"""Files that workers read: the text, documents and answers of an upload that reads them itself."""

from __future__ import annotations

import os
import random
import uuid
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.engine.reader import Reader
from monocontext.errors import AccessDenied, InvalidText, NotFound
from monocontext.format import inline
from monocontext.stores.memory import MemoryStore
from monocontext.testing import WrappedStore
from monocontext.writing import file_parts
from monocontext.writing.input_options import InputOptions
from monocontext.writing.segments import SegmentLayout
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.verify import verify
from tests.budget import examples

WORDS = (
    "alpha",
    "gamma ray",
    "délta",
    "ΐota",
    "kilo\n",
    "x",
    "\n",
    "\r\n",
    "\r",
    "日本語テキスト",
    "12:34:56",
    "\ufeff",
)


def fresh() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex)


def content(dice: random.Random) -> bytes:
    kind = dice.randrange(12)
    if kind == 0:
        return b""
    if kind == 1:
        return b"\xef\xbb\xbf"
    if kind == 2:
        return b"\x00\x01binary"
    text = "".join(dice.choice(WORDS) + dice.choice((" ", "\n", "")) for _ in range(dice.choice((1, 30, 900))))
    return (b"\xef\xbb\xbf" if kind == 3 else b"") + text.encode()


def tree(root: Path, dice: random.Random) -> list[Path]:
    """A folder with files in subfolders, and files that are named by themselves."""
    for number in range(dice.randrange(1, 30)):
        folder = root / "tree" / dice.choice(("", "a", "a/b", "z"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_bytes(content(dice))
    alone = root / "alone.txt"
    alone.write_bytes(content(dice).replace(b"\x00", b""))
    given = [root / "tree", alone]
    dice.shuffle(given)
    return given[: dice.choice((1, 2, 2))]


def told(sources: list[Path], store: MemoryStore, **options: Any) -> tuple[dict[str, Any], list[str]]:
    """What readers see of an upload, and its notes."""
    notes: list[str] = []
    publish(sources, store, frame_bytes=600, note=notes.append, **options)
    assert verify(store).ok
    with Monocontext.open(store) as context:
        rows = [context.documents.table.document(number) for number in range(context.documents.count)]
        seen = {
            "text": str(context),
            "documents": [(row.name, row.start, row.stop, row.first_line, row.newlines, row.bytes) for row in rows],
            "lines": len(context.lines),
        }
        whole, dice = str(context), random.Random(len(str(context)))
        for _ in range(20 if whole else 0):
            at = dice.randrange(len(whole))
            needle = whole[at : at + dice.choice((3, 8, 20))]
            assert (context.find(needle), context.count(needle)) == (whole.find(needle), whole.count(needle))
    return seen, sorted(notes)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of some files, ranges of the larger ones, and searches that ask filters."""
    monkeypatch.setattr(file_parts, "BATCH_BYTES", 1500)
    monkeypatch.setattr(file_parts, "_FOLLOWING", 2)
    monkeypatch.setattr(Reader, "is_one_wave", lambda self, start, stop: False)
    monkeypatch.setattr(inline, "MOST_TEXT_BYTES", 0)
    monkeypatch.setattr(inline, "MOST_GROWN_BYTES", 0)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("seed", range(examples(60)))
def test_a_tree_is_what_an_upload_without_workers_makes(seed: int, tmp_path: Path) -> None:
    sources = tree(tmp_path, random.Random(seed))
    with ThreadPoolExecutor(2) as pool:
        assert told(sources, fresh(), executor=pool) == told(sources, fresh())


@pytest.mark.slow
def test_workers_in_processes_read_what_the_driver_never_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths, too: a worker may have another directory of its own."""
    (tmp_path / "logs").mkdir()
    for number in range(4):
        (tmp_path / "logs" / f"{number}.log").write_text(f"line of log {number}\n" * 400_000)
    monkeypatch.chdir(tmp_path)
    with ProcessPoolExecutor(2, initializer=os.chdir, initargs=("/",)) as pool:
        publish([Path("logs")], tmp_path / "by_workers", executor=pool)
    monkeypatch.setattr(file_parts, "read_and_store", None)
    publish([Path("logs")], tmp_path / "alone")
    with Monocontext.open(tmp_path / "by_workers") as one, Monocontext.open(tmp_path / "alone") as other:
        assert len(one) == len(other)
        assert one[30_000_000:30_000_500] == other[30_000_000:30_000_500]
        assert one.count("log 3\n") == 400_000
        assert list(one.documents) == list(other.documents)


class Elsewhere(Executor):
    """Workers on a machine without the files: they do no task, but make filters, for which they need none."""

    def submit(self, work: Any, /, *args: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(None if args else work())
        return done


@pytest.mark.usefixtures("small_batches")
def test_the_driver_reads_what_workers_do_not_find(tmp_path: Path) -> None:
    sources = tree(tmp_path, random.Random(5))
    assert told(sources, fresh(), executor=Elsewhere()) == told(sources, fresh())


@pytest.mark.usefixtures("small_batches")
def test_another_file_of_that_name_on_the_worker_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("here\n" * 100)
    real = file_parts.read_and_store

    def elsewhere(task: file_parts.Task, **options: Any) -> Any:
        if not options.get("is_driver"):
            path.write_text("away\n" * 100)
            os.utime(path, ns=(1, 1))
            found = real(task, **options)
            path.write_text("here\n" * 100)
            return found
        return real(task, **options)

    monkeypatch.setattr(file_parts, "read_and_store", elsewhere)
    with ThreadPoolExecutor(1) as pool:
        publish(path, store := fresh(), executor=pool)
    with Monocontext.open(store) as context:
        assert str(context) == "here\n" * 100


class NoDeletes(WrappedStore):
    def delete(self, key: str, *, if_match: str | None = None) -> None:
        raise AccessDenied(f"{key}: no right to delete")


@pytest.mark.usefixtures("small_batches")
def test_a_writer_needs_no_right_to_delete(tmp_path: Path) -> None:
    """What workers left for the filters stays then, until `gc`."""
    (tmp_path / "a.txt").write_text("some words\n" * 2000)
    store = fresh()
    with ThreadPoolExecutor(2) as pool:
        publish(tmp_path / "a.txt", NoDeletes(store), frame_bytes=600, executor=pool)
    left = len(list(store.list("filters/")))
    gc(store, older_than_seconds=0)
    assert 0 < len(list(store.list("filters/"))) < left
    assert verify(store).ok


@pytest.mark.usefixtures("small_batches")
def test_a_range_of_a_file_that_was_written_over_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the text would be of two files; one that has grown is still the same up to there."""
    path = tmp_path / "a.txt"
    path.write_text("first\n" * 2000)
    [*tasks] = file_parts._cut_tasks(file_parts._parts([path], InputOptions()))
    assert len(tasks) > 3
    read = partial(file_parts.read_and_store, url=fresh(), options={}, layout=SegmentLayout(600), reach=0,
                   is_driver=True, reusable=None, reading=InputOptions())  # fmt: skip
    monkeypatch.setattr(file_parts, "store_batch", lambda batch, **_: file_parts.StoredBatch())
    with path.open("a") as file:
        file.write("more\n")
    assert read(tasks[1]) is not None
    path.write_text("other\n" * 2000)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InvalidText, match=r"a.txt: it changed while it was read; start again"):
        read(tasks[1])


def test_bad_text_and_a_missing_file_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("good\n" * 1000)
    (tmp_path / "bad.txt").write_bytes(b"bad \xff\n")
    with ThreadPoolExecutor(2) as pool, warnings.catch_warnings():
        with pytest.raises(InvalidText, match=r"bad.txt: not utf-8 at byte 4 \(0xff\)"):
            publish(tmp_path / "bad.txt", fresh(), executor=pool)
        with pytest.raises(NotFound, match=r"none.txt: no such file"):
            publish([tmp_path / "none.txt"], fresh(), executor=pool)
