"""A conditional PUT that landed and whose reply was lost is nobody else's: every writer knows its own again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sessions.agents import session_id, small

from monocontext import Monocontext, append, publish
from monocontext.errors import AlreadyExists, NotFound, StoreFailure
from monocontext.memory import Memory
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.stores.protocol import Store, put_own
from monocontext.testing import CountingStore, LosingStore, S3StandIn, WrappedStore, http_faults
from rlm.compile.compiling import compile_sessions

KINDS = ["memory-failure", "memory-conflict", "directory-failure", "directory-conflict", "http"]
WRITTEN = ("*.jsonl.zst", "generations/*", "lease.json", "state.json", "plain", "k")
"""Objects that are written by a condition."""


@pytest.fixture(params=KINDS)
def losing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """A store, and the same one over a way on which each reply to a conditional put is lost.

    Over HTTP it is the first reply to a PUT of each kind of object: botocore repeats it and meets its own object.
    """
    kind, _, how = request.param.partition("-")
    if kind == "http":
        with S3StandIn() as server:
            for key in WRITTEN:
                server.faults.add(http_faults.lost(), verb="PUT", key=f"*/{key}")
            with closing(open_store(server.url("place"), endpoint=server.endpoint)) as store:
                yield store, store
            assert server.faults.struck, "no reply was lost"
        return
    store = open_store(f"memory://lost-{request.node.name}" if kind == "memory" else tmp_path / "place")
    way = LosingStore(store, StoreFailure if how == "failure" else AlreadyExists)
    yield store, way
    assert way.lost, "no reply was lost"


def test_the_same_bytes_under_the_same_key_are_ours(losing: tuple[Store, Store]) -> None:
    store, way = losing
    etag = put_own(way, "plain", b"token 1")
    assert store.head("plain").etag == etag
    assert put_own(way, "plain", b"token 2", if_match=etag) != etag
    assert store.get("plain").data == b"token 2"
    for refused in (b"token 3", b"another length"):
        with pytest.raises(AlreadyExists):
            put_own(way, "plain", refused)
        with pytest.raises(AlreadyExists):
            put_own(way, "plain", refused, if_match=etag)
    assert store.get("plain").data == b"token 2"
    with pytest.raises(NotFound):
        put_own(way, "none", b"token 4", if_match=etag)


@pytest.mark.parametrize("conflict", [AlreadyExists, StoreFailure])
def test_what_did_not_land_is_told_as_it_was(conflict: type[Exception]) -> None:
    class Refusing(WrappedStore):
        def put(self, key: str, data: bytes, **condition: Any) -> str:
            raise conflict("on purpose")

    store = open_store(f"memory://refusing-{conflict.__name__}")
    with pytest.raises(conflict, match="on purpose"):
        put_own(Refusing(store), "a", b"x")
    etag = store.put("a", b"y")
    with pytest.raises(conflict, match="on purpose"):
        put_own(Refusing(store), "a", b"x", if_match=etag)
    with pytest.raises(AlreadyExists):  # with something else in its place it cannot land any more
        put_own(Refusing(store), "a", b"x")


def test_nothing_is_asked_where_all_is_well() -> None:
    counted = CountingStore(open_store("memory://well"))
    put_own(counted, "a", b"x", if_match=put_own(counted, "a", b"y"))
    assert counted.counts == {"put": 2}


def test_a_context(losing: tuple[Store, Store]) -> None:
    store, way = losing
    publish("first\n", way)
    assert append("second\n", way).generation == 2
    with Monocontext.open(store) as context:
        assert str(context) == "first\nsecond\n"


@pytest.mark.slow
def test_an_upload_of_a_session(losing: tuple[Store, Store], tmp_path: Path) -> None:
    store, way = losing
    session = small(1)
    first = upload_session(way, recognize_session(session.write(tmp_path)), project="proj")
    session.user("One more thing")
    again = upload_session(way, recognize_session(session.write(tmp_path)), project="proj")
    assert (first.records, again.records) == (4, 1)
    (info,) = Sessions(store).project("proj").sessions()
    assert (info.records, len(list(store.list("sessions/")))) == (5, 1)


@pytest.mark.slow
def test_a_compiled_project(losing: tuple[Store, Store], tmp_path: Path) -> None:
    store, way = losing
    upload_session(store, recognize_session(small(1).write(tmp_path)), project="proj")
    report = compile_sessions(way, "proj")
    assert report.sessions == 1
    assert session_id(1) in store.get("compiled/proj/brief.md").data.decode()


def test_entries_of_a_memory(losing: tuple[Store, Store]) -> None:
    store, way = losing
    memory = Memory(way)
    etag = memory.put("k", "words", create=True)
    assert not memory.put_new("k", "words"), "the same words of another write are another's"
    etag = memory.put("k", "others", if_match=etag)
    with pytest.raises(AlreadyExists):
        memory.put("k", "thirds", if_match="stale")
    assert Memory(store).entry("k").etag == etag


def test_a_session_that_another_machine_went_on_with_before_we_could_look(tmp_path: Path) -> None:
    """Our commit landed and theirs builds on it: nothing that theirs names may be taken back."""
    store = open_store(tmp_path / "place")
    session = small(1)
    ours = session.write(tmp_path / "ours")
    session.user("One more thing")
    theirs = session.write(tmp_path / "theirs")

    class Overtaken(WrappedStore):
        is_overtaken = False

        def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
            etag = super().put(key, data, if_absent=if_absent, if_match=if_match)
            if key.endswith(".jsonl.zst") and not self.is_overtaken:
                self.is_overtaken = True
                upload_session(store, recognize_session(theirs), project="proj")
                raise StoreFailure("the reply is lost")
            return etag

    report = upload_session(Overtaken(store), recognize_session(ours), project="proj")
    assert report.records in (0, 4)
    (info,) = Sessions(store).project("proj").sessions()
    assert info.records == 5
