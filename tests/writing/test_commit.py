"""One function commits: nothing is lost, doubled, left behind or tried for ever."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from monocontext import Monocontext, append, delete, publish, replace, update
from monocontext.errors import AlreadyExists, DamagedData, NotFound, StoreFailure, Unsupported
from monocontext.format.manifest import ROOT_KEY, Manifest, generation_key, listed_generations, read_generation
from monocontext.format.refs import OBJECT, id_in
from monocontext.stores import open_store
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.testing import CountingStore, HttpFault, S3StandIn, WrappedStore
from monocontext.testing.http_faults import refuse
from monocontext.writing import commit as module
from monocontext.writing.commit import commit
from monocontext.writing.pages import named_objects
from monocontext.writing.upkeep.compact import add_filters, compact
from monocontext.writing.upkeep.forget import find_leftovers
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.sync import sync
from monocontext.writing.upkeep.verify import verify
from monocontext.writing.upkeep.versions import list_versions, restore
from tests.writing.upkeep.upkept import documents_of, memory, text_of

SECRET = "the person who asked to be forgotten"


def orphans(store: Store) -> list[str]:
    """Objects that no version names."""
    named = set[str]().union(*(named_objects(store, read_generation(store, n)) for n in listed_generations(store)))
    return [info.key for info in store.list() if OBJECT.fullmatch(info.key) and id_in(info.key) not in named]


class Meeting(WrappedStore):
    """Another writer acts right before the first PUT of an object in a folder, or the first `times`."""

    def __init__(self, store: Store, folder: str, act: Callable[[Store], object], times: int = 1) -> None:
        super().__init__(store)
        self._folder, self._act, self._times = folder, act, times
        self.met = False

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        if key.startswith(self._folder) and self._times:
            self._times -= 1
            self.met = True
            self._act(self.store)
        return super().put(key, data, if_absent=if_absent, if_match=if_match)


BASE = {f"d{number}": f"doc {number} " + "lorem ipsum " * 30 + "\n" for number in range(20)}
NEW = "new text\n"
LONG = NEW * 1200  # more than 16 frames
OTHER = {f"o{number}": f"other {number} " + "dolor sit amet " * 30 + "\n" for number in range(20)}
VERBS: dict[str, tuple[Callable[[Store, Path], object], Callable[[dict[str, str]], dict[str, str]]]] = {
    "append": (lambda s, _: append({"a": NEW}, s), lambda t: t | {"a": NEW}),
    "long append": (lambda s, _: append({"l": LONG}, s), lambda t: t | {"l": LONG}),
    "update": (lambda s, _: update(s, {"u": NEW, "d3": NEW}), lambda t: t | {"u": NEW, "d3": NEW}),
    "replace": (lambda s, _: replace(s, {"d4": NEW}), lambda t: t | {"d4": NEW}),
    "delete": (lambda s, _: delete(s, ["d5"]), lambda t: {n: x for n, x in t.items() if n != "d5"}),
    "forget": (lambda s, _: delete(s, ["d6"], forget=True), lambda t: {n: x for n, x in t.items() if n != "d6"}),
    "sync": (lambda s, files: sync(files, s), lambda t: t | {"d7": NEW, "u": "from a file\n", "s": NEW}),
    "restore": (lambda s, _: restore(s, 1), lambda t: BASE),
    "compact": (lambda s, _: compact(s, frame_bytes=4096), lambda t: t),
    "filters": (lambda s, _: add_filters(s, rebuild=True), lambda t: t),
    "publish": (lambda s, _: publish(OTHER, s, frame_bytes=600, replace=True), lambda t: OTHER),
    "gc": (lambda s, _: gc(s, older_than_seconds=3600), lambda t: t),
    "gc now": (lambda s, _: gc(s, older_than_seconds=0), lambda t: t),
}


@cache
def base_objects() -> dict[str, bytes]:
    """What is stored of BASE: to write it anew for each pair takes seconds."""
    store = memory()
    publish(BASE, store, frame_bytes=600)
    return {info.key: store.get(info.key).data for info in store.list()}


PAIRS = [pair for pair in itertools.product(VERBS, VERBS) if not ("append" in pair[0] and pair[0] == pair[1])]
"""Two appends of one name store two documents of that name, as always."""


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_pair_of_writers(first: str, second: str, tmp_path: Path) -> None:
    """The second commits while the first is about to: the first is made again on its root. Nothing is lost, doubled or
    stale, and no object stays that no version names."""
    for name, text in {"d7": NEW, "u": "from a file\n", "s": NEW}.items():
        (tmp_path / name).write_text(text)
    store = memory()
    for key, data in base_objects().items():
        store.put(key, data)
    (act, change), (other, other_change) = VERBS[first], VERBS[second]
    meeting = Meeting(store, "generations/", lambda store: other(store, tmp_path))
    if (first, second) in {
        ("delete", "delete"), ("forget", "forget"), ("restore", "forget"),  # what it names is gone
        ("replace", "publish"), ("delete", "publish"),
        ("long append", "forget"), ("long append", "gc now"),  # its segments were removed
        ("publish", "forget"), ("publish", "gc now"),
    }:  # fmt: skip
        with pytest.raises((NotFound, AlreadyExists)):
            act(meeting, tmp_path)
        expected = other_change(BASE)
    else:
        act(meeting, tmp_path)
        expected = change(other_change(BASE) if meeting.met else BASE)
    assert meeting.met or first.startswith("gc")
    assert documents_of(store) == expected
    assert len(text_of(store)) == sum(map(len, expected.values()))
    assert verify(store).problems == []
    assert orphans(store) == []


@pytest.mark.parametrize("folder", ["segments/", "index/", "filters/", "generations/"])
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("gc", "gc now", "forget")])
def test_a_writer_beside_a_forget_leaves_nothing(store: Store, verb: str, folder: str, tmp_path: Path) -> None:
    """It has read the text before, and stores it again after the other has looked."""
    texts = BASE | {"d2": f"{SECRET}\n" * 30}
    publish(texts, store, frame_bytes=600)
    (tmp_path / "d7").write_text(NEW)
    meeting = Meeting(store, folder, lambda store: delete(store, "d2", forget=True))
    with suppress(AlreadyExists, NotFound):  # a long text was removed meanwhile, or the version that was to come back
        VERBS[verb][0](meeting, tmp_path)
    if meeting.met:
        assert find_leftovers(store, [SECRET]) == []
        assert "d2" not in documents_of(store)
        assert verify(store).problems == []
        assert orphans(store) == []


def test_a_second_attempt_has_what_workers_stored(store: Store, tmp_path: Path) -> None:
    """The first attempt joined their filter with others, and changed documents in a step of its own."""
    publish(BASE, store, frame_bytes=600)
    (tmp_path / "d7").write_text(NEW)
    (tmp_path / "long").write_text(LONG)
    meeting = Meeting(store, "generations/", lambda store: append({"a": NEW}, store))
    with ThreadPoolExecutor(1) as pool:
        sync(tmp_path, meeting, executor=pool)
    assert meeting.met
    expected = BASE | {"d7": NEW, "a": NEW, "long": LONG}
    assert documents_of(store) == expected
    assert len(text_of(store)) == sum(map(len, expected.values()))
    assert verify(store).problems == []
    assert orphans(store) == []


def test_a_reader_never_sees_what_no_version_has(store: Store, tmp_path: Path) -> None:
    """A log that was rotated: its document goes and another comes in one version."""
    (tmp_path / "app.log").write_text("old lines\n")
    sync(tmp_path, store)
    (tmp_path / "app.log").rename(tmp_path / "app-1.log")
    (tmp_path / "app.log").write_text("new\n")
    sync(tmp_path, store, delete=True)
    assert [len(str(Monocontext.open(store, generation=number))) for number in (1, 2)] == [10, 14]
    assert listed_generations(store) == [1, 2]


class RefusesIfMatch(WrappedStore):
    """As behind a proxy that weakens ETags: If-Match never holds."""

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        return super().put(key, data, if_absent=if_absent, if_match="W/other" if if_match else None)


@pytest.mark.parametrize("verb", ["append", "restore", "publish"])
def test_a_server_that_refuses_if_match(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = memory()
    publish("text\n", inner)
    append("line\n", inner)
    store = CountingStore(RefusesIfMatch(inner))
    with pytest.warns(UserWarning, match=r"generation 3 is committed, but manifest.json could not be updated"):
        VERBS[verb][0](store, tmp_path)
    assert store.requests < 30
    monkeypatch.setattr(module, "_COPY_ATTEMPTS", 1)
    # It must not say to try again: what is committed would be written twice.
    with pytest.warns(UserWarning, match=r"generation 4 is committed, .*: other writers replaced it first 1 times$"):
        append("last\n", store)


@pytest.mark.parametrize(("status", "code"), [(409, "ConditionalRequestConflict"), (412, "PreconditionFailed")])
@pytest.mark.filterwarnings("error::UserWarning")
def test_conflicts_are_tried_again(status: int, code: str) -> None:
    """HTTP 409 says that another request was under way; a server may also answer 412 although nobody has written."""
    with S3StandIn() as server:
        place = open_store(server.url("context"), endpoint=server.endpoint)
        publish("text\n", place)
        for key in ("*generations/*", "*manifest.json"):
            server.faults.add(refuse(status, code), verb="PUT", key=key, times=2)
        append("more\n", place)
        assert str(Monocontext.open(place)) == "text\nmore\n"


CARELESS = HttpFault("ignores conditions", ignores=frozenset({"if-none-match", "if-match"}))
REFUSING = refuse(412, "PreconditionFailed")


@pytest.mark.parametrize(
    ("fault", "key", "reason"),
    [(CARELESS, "*", "ignores conditional writes"), (REFUSING, "*generations/*", "refuses a create-only write")],
)
def test_a_server_without_conditions_is_refused(fault: HttpFault, key: str, reason: str) -> None:
    with S3StandIn() as server:
        place = open_store(server.url("context"), endpoint=server.endpoint)
        server.faults.add(fault, verb="PUT", key=key, times=None)
        with pytest.raises(Unsupported, match=reason):
            publish("text\n", place)
        assert list(place.list()) == []


def test_a_clock_that_is_behind_is_waited_for_a_while(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(WrappedStore):
        def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
            return (dataclasses.replace(info, modified_seconds=4e9) for info in super().list(prefix))

    publish(BASE, store)
    monkeypatch.setattr("monocontext.writing.upkeep.forget._POLL_SECONDS", 0)
    with pytest.raises(StoreFailure, match=r"the deletion is committed as generation 2, .*: correct the clock"):
        delete(Ahead(store), "d2", forget=True)


def test_a_name_is_no_glob_in_a_second_attempt(store: Store) -> None:
    publish({"[a]": "x", "a": "y"}, store)
    with pytest.raises(NotFound, match=r"no document is named '\[a\]'"):
        delete(Meeting(store, "generations/", lambda store: delete(store, "[a]")), "[a]")
    assert list(documents_of(store)) == ["a"]


def test_a_bound_on_lost_attempts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTEMPTS", 5)
    monkeypatch.setattr(module, "_LONGEST_PAUSE_SECONDS", 0)
    publish("text\n", store)
    with pytest.raises(StoreFailure, match=r"nothing was changed: other writers committed first 5 times"):
        append("ours\n", Meeting(store, "generations/", lambda store: append("theirs\n", store), times=5))
    assert str(Monocontext.open(store)) == "text\n" + "theirs\n" * 5
    assert orphans(store) == []


def test_what_a_failed_change_stored_is_removed(store: Store) -> None:
    publish("text\n", store)
    before = {info.key for info in store.list()}

    def change(base: Manifest | None, store: Store) -> Manifest:
        store.put(f"segments/{'0' * 32}.seg", b"x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        commit(store, change)
    assert {info.key for info in store.list()} == before


@pytest.mark.parametrize(
    "act",
    [
        lambda s: append("more\n", s),
        lambda s: replace(s, {"a": "x\n"}),
        lambda s: update(s, {"a": "x\n"}),
        lambda s: delete(s, "a"),
        lambda s: publish("other\n", s, replace=True),
        lambda s: list_versions(s),
        lambda s: restore(s, 1),
        lambda s: compact(s),
        lambda s: Monocontext.open(s).refresh(),
        lambda s: Monocontext.open(s, generation=2),
    ],
)
def test_a_root_under_another_number_is_damage(act: Callable[[Store], object]) -> None:
    """A restore by hand, or a hostile bucket: it would be followed for ever."""
    store = CountingStore(memory())
    publish({"a": "A\n"}, store)
    append({"b": "B\n"}, store)
    for key in (ROOT_KEY, generation_key(2)):
        store.put(key, store.get(generation_key(1)).data)
    store.reset()
    with pytest.raises(DamagedData, match=r"0002\.json: expected generation 2, found 1"):
        act(store)
    assert store.requests < 12
    [problem] = verify(store).problems
    assert problem.endswith("generations/00000000000000000002.json: expected generation 2, found 1")
