"""Against SeaweedFS with credentials: answers as by boto3, forks, and nothing left behind."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from begun_threads import begun_threads
from faults.gauges import connections

from monocontext.errors import DamagedData, NotFound
from monocontext.stores import open_store
from monocontext.stores.http.client import Client
from monocontext.stores.s3.store import S3Store
from monocontext.testing import SeaweedServer

pytestmark = pytest.mark.slow
DATA = random.Random(9).randbytes(1 << 20)


def open_s3(server: SeaweedServer, prefix: str = "transport", **options: object) -> S3Store:
    store = open_store(server.url(prefix), endpoint=server.endpoint, **options)
    assert isinstance(store, S3Store)
    return store


def transport_of(store: S3Store) -> Client:
    transport = store._connection.transport("dev-bucket")
    assert transport is not None
    return transport


@pytest.fixture
def filled(seaweed: SeaweedServer) -> SeaweedServer:
    open_s3(seaweed).put("a", DATA)
    return seaweed


def sockets() -> int:
    result = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            result += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:
            pass
    return result


def in_child(say: Callable[[], str]) -> str:
    """What `say` returns, or how it fails, in a forked child."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = say()
        except BaseException as error:
            said = repr(error)
        os.write(sending, said.encode())
        os._exit(0)
    os.close(sending)
    with open(receiving) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def test_the_same_answers_and_errors_as_boto3(filled: SeaweedServer) -> None:
    ours, theirs = open_s3(filled), open_s3(filled, transport="boto3")
    assert theirs._connection.transport("dev-bucket") is None
    etag = ours.head("a").etag
    asks: list[Callable[[S3Store], object]] = [
        lambda store: store.get("a"),
        lambda store: store.get_range("a", 0, len(DATA), etag=etag),
        lambda store: store.get_range("a", len(DATA) - 1, 1),
        lambda store: store.get_range("a", 5, 0),
        lambda store: store.get("missing"),
        lambda store: store.get_range("missing", 0, 1),
        lambda store: store.get_range("a", 0, 1, etag="0123456789abcdef"),
        lambda store: store.get_range("a", 0, len(DATA) + 1),
        lambda store: store.get_range("a", len(DATA), 1),
        lambda store: store.sibling("s3://mistyped-bucket/x").get("a"),
    ]
    for ask in asks:
        assert _outcome(ask, ours) == _outcome(ask, theirs)


def _outcome(ask: Callable[[S3Store], object], store: S3Store) -> object:
    try:
        return ask(store)
    except Exception as error:
        return type(error), str(error)


def test_close_leaves_nothing_behind_and_may_be_repeated(filled: SeaweedServer) -> None:
    gc.collect()  # stores of other tests
    before = sockets()
    store = open_s3(filled)
    with begun_threads() as begun:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda start: store.get_range("a", start, 9), range(100)))
        with pytest.raises(NotFound):
            store.get("missing")
        with pytest.raises(DamagedData):
            store.get_range("a", len(DATA), 1)
        assert sockets() > before
        store.close()
        store.close()
    assert sockets() <= before  # what other tests left ends meanwhile
    assert not begun.alive()
    assert store.get_range("a", 0, 9).data == DATA[:9]
    store.close()
    assert sockets() <= before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_pool_notices_the_fork_by_itself(filled: SeaweedServer) -> None:
    store = open_s3(filled)
    store.get("a")
    transport = transport_of(store)

    def unnoticed_by_the_store() -> str:
        before, inherited = sockets(), len(transport.pool._open)
        store._connection._process_state.process = os.getpid()
        right = store.get_range("a", 5, 5).data == DATA[5:10]
        # The parent's connections are closed here, and one is opened: the parent alone decides when its own end.
        return f"{right} {sockets() - 1 == before - inherited} {connections(transport.pool)}"

    assert in_child(unnoticed_by_the_store) == "True True (1, 0)"
    assert store.get_range("a", 5, 5).data == DATA[5:10]
    assert connections(transport.pool) == (1, 0)
