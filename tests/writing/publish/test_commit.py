"""A commit is one conditional PUT: whatever dies, is lost or comes in between, readers see one whole text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from monocontext import Monocontext, regex
from monocontext.errors import AlreadyExists, DamagedData, NotAContext, NotFound, StoreFailure, UnsupportedFormat
from monocontext.format.manifest import ROOT_KEY, Manifest, find_root, generation_key, read_generation
from monocontext.stores.protocol import Store
from monocontext.testing import Crash, CrashingStore, WrappedStore
from monocontext.writing.publish import append, publish
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.verify import verify
from tests.writing.upkeep.upkept import memory, text_of

OLD = "".join(f"old line {i} é\n" for i in range(12))
NEW = "".join(f"new line {i} 漢\r\n" for i in range(15)) + "no newline at the end"
LAYOUT = {"frame_bytes": 50, "segment_bytes": 120}


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monocontext.writing.pages.FRAMES_PER_PAGE", 5)


WRITES: dict[str, tuple[Callable[[Store], object], str]] = {
    "append": (lambda store: append(NEW, store, segment_bytes=120), OLD + NEW),
    "replace": (lambda store: publish(NEW, store, replace=True, **LAYOUT), NEW),  # type: ignore[arg-type]
    "replace with nothing": (lambda store: publish("", store, replace=True), ""),
    "compact": (lambda store: compact(store, segment_bytes=800, frame_bytes=200), OLD),
}


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_a_crash_at_every_put(name: str, landed: bool) -> None:
    write, new = WRITES[name]
    seen = set()
    for puts in range(100):
        store = memory()
        publish(OLD, store, **LAYOUT)  # type: ignore[arg-type]
        early = Monocontext.open(store, cache_bytes=0)
        crashing = CrashingStore(store, puts, landed=landed)
        with suppress(Crash):
            write(crashing)
        if not crashing.crashed:
            assert text_of(store) == new
            break
        assert text_of(store) in (OLD, new)
        assert str(early) == OLD  # who had opened it before keeps it
        assert verify(store).problems == []
        committed = any(info.key == generation_key(2) for info in store.list("generations/"))
        seen.add(committed)
        assert str(Monocontext.open(store, generation=1).refresh()) == (new if committed else OLD)
        if not committed:
            write(store)
            assert text_of(store) == new
        else:  # manifest.json may lag; the next writer starts from what was committed, and repairs it
            append("more\n", store)
            assert text_of(store) == new + "more\n"
        assert verify(store).problems == []
    assert 2 <= puts < 99
    assert seen == {False, True} or (landed and puts == 2)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("landed", [False, True])
def test_a_crash_at_every_put_of_the_first_publish(landed: bool) -> None:
    for puts in range(100):
        store = memory()
        crashing = CrashingStore(store, puts, landed=landed)
        with suppress(Crash):
            publish(NEW, crashing, **LAYOUT)  # type: ignore[arg-type]
        if any(True for _ in store.list("generations/")):
            append("more", store)  # repairs the pointer
            assert find_root(store).manifest.generation == 2
        else:
            with pytest.raises(NotFound):
                Monocontext.open(store)
            publish(NEW + "more", store, **LAYOUT)  # type: ignore[arg-type]
        assert text_of(store) == NEW + "more"
        assert verify(store).ok
        if not crashing.crashed:
            break
    assert puts > 5


class LostAck(WrappedStore):
    """The first PUT of a root lands, and then its answer is another."""

    def __init__(self, store: Store, key: str, error: type[Exception]) -> None:
        super().__init__(store)
        self.key, self.error, self.lost = key, error, 0

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        etag = super().put(key, data, if_absent=if_absent, if_match=if_match)
        if key == self.key and not self.lost:
            self.lost += 1
            raise self.error("the answer was lost")
        return etag


@pytest.mark.parametrize("error", [AlreadyExists, StoreFailure])
@pytest.mark.parametrize("name", WRITES)
def test_a_lost_answer_to_the_commit(name: str, error: type[Exception]) -> None:
    write, new = WRITES[name]
    store = memory()
    publish(OLD, store, **LAYOUT)  # type: ignore[arg-type]
    losing = LostAck(store, generation_key(2), error)
    write(losing)
    assert losing.lost == 1
    assert text_of(store) == new
    assert [info.key for info in store.list("generations/")] == [generation_key(1), generation_key(2)]
    assert verify(store).problems == []


@pytest.mark.parametrize("error", [AlreadyExists, StoreFailure])
def test_a_lost_answer_to_the_pointer(store: Store, error: type[Exception], recwarn: pytest.WarningsRecorder) -> None:
    publish(OLD, store)
    append(NEW, LostAck(store, ROOT_KEY, error))
    assert text_of(store) == OLD + NEW
    assert len(list(store.list("generations/"))) == 2
    assert all("committed, but manifest.json could not be updated" in str(warning.message) for warning in recwarn)


def test_append_of_nothing_and_where_nothing_is(store: Store) -> None:
    with pytest.raises(NotFound, match=r"no context at .* to append to: `monocontext upload` creates one"):
        append(NEW, store)
    publish(OLD, store)
    assert append("", store).generation == 1
    assert append([], store).generation == 1
    assert len(list(store.list("generations/"))) == 1


@pytest.mark.parametrize("pointer", ["lagging", "missing", b"", b"garbage", b"{", b"\xff\xfe"])
def test_a_pointer_is_repaired_by_the_next_writer(store: Store, pointer: str | bytes) -> None:
    publish(OLD, store)
    first = store.get(ROOT_KEY).data
    append("one\n", store)
    if pointer == "missing":
        store.delete(ROOT_KEY)
        assert text_of(store) == OLD + "one\n"
    elif isinstance(pointer, str):
        store.put(ROOT_KEY, first)
        with Monocontext.open(store) as context:
            assert str(context) == OLD  # readers take what is there
            assert str(context.refresh()) == OLD + "one\n"  # and look ahead when they are told to
    else:
        store.put(ROOT_KEY, pointer)
        with pytest.raises(DamagedData, match=ROOT_KEY):
            Monocontext.open(store)
    with pytest.raises(AlreadyExists, match=r"already holds a context .*`append`.*replace=True"):
        publish(NEW, store)
    append("two\n", store)
    assert text_of(store) == OLD + "one\ntwo\n"
    assert find_root(store).manifest == read_generation(store, 3)
    if isinstance(pointer, bytes):
        store.put(ROOT_KEY, pointer)
        publish(NEW, store, replace=True)
        assert text_of(store) == NEW


@pytest.mark.parametrize("write", [lambda s: append(NEW, s), lambda s: publish(NEW, s, replace=True)])
@pytest.mark.parametrize(
    ("there", "error"),
    [
        (b'[{"segment": "a", "start_line": 0, "line_count": 1}]', NotAContext),
        (b'{"name": "an app", "version": 3}', NotAContext),
        (b'{"format": 2, "min_reader": 2}', UnsupportedFormat),
        (b"garbage and no generation", DamagedData),
    ],
)
def test_what_is_foreign_or_newer_is_never_written_over(
    store: Store, there: bytes, error: type[Exception], write: Callable[[Store], object]
) -> None:
    store.put(ROOT_KEY, there)
    with pytest.raises(error):
        write(store)
    assert [(info.key, store.get(info.key).data) for info in store.list()] == [(ROOT_KEY, there)]


def test_unknown_optional_fields_survive_no_append_that_would_make_them_lie(store: Store) -> None:
    """What a newer writer said of its generation (a filter, a summary) does not hold for the text that follows."""
    root = publish(OLD, store)
    data = dataclasses.replace(root, extra={"shelf": "of generation 1"}).to_bytes()
    store.put(ROOT_KEY, data)
    assert Manifest.from_bytes(store.get(ROOT_KEY).data).extra == {"shelf": "of generation 1"}
    assert append("more", store).extra == {}
    assert text_of(store) == OLD + "more"


def test_iterators_belong_to_the_generation_that_they_were_made_in(store: Store) -> None:
    """Those too that have given nothing yet when the text moves."""
    publish(OLD, store, frame_bytes=50)
    context = Monocontext.open(store)
    made = [
        iter(context),
        context.chunks(7),
        iter(context.lines),
        (hit.line for hit in context.grep("line", max_hits=1)),
        (match.span() for match in regex.finditer("li", context)),
    ]
    expected: list[list[Any]] = [
        [*items] for items in (OLD, Monocontext.open(store).chunks(7), OLD.splitlines(keepends=True))
    ]
    expected += [OLD.splitlines()[:1], [match.span() for match in re.finditer("li", OLD)]]
    publish("x a\n", store, replace=True)
    context.refresh()
    assert [list(each) for each in made] == expected
