"""The asynchronous text gives what the synchronous one does, without a thread for each reader."""

from __future__ import annotations

import asyncio
import inspect
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from begun_threads import begun_threads

from monocontext import ContextTooLarge, Monocontext, publish
from monocontext.aio import AsyncMonocontext
from monocontext.aio.methods import TextMethods
from monocontext.engine.fetch.workers import MAX_RUNNING
from monocontext.engine.reader import Reader
from monocontext.errors import ContextClosed, NotFound
from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.stores.s3.blocking_client import BlockingClient
from monocontext.testing import CountingStore, S3StandIn, SlowStore

from .stub import STUB, stub

TEXT = "".join(f"line {i} {'äöü' * (i % 3)} {i * 7919 % 10007} 💬\r\n" for i in range(6000)) + "the end"


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 100))


@pytest.fixture(scope="module")
def server() -> Iterator[S3StandIn]:
    publish(TEXT, "memory://aio-text/ctx", frame_bytes=4000, segment_bytes=40_000)
    with S3StandIn(open_store("memory://aio-text")) as one:
        yield one
    forget("aio-text")


def open_text(server: S3StandIn, **options: Any) -> AsyncMonocontext:
    return AsyncMonocontext.open(server.url("ctx"), endpoint=server.endpoint, anonymous=True, **options)


@pytest.mark.slow
def test_every_method_equals_that_of_the_synchronous_text(server: S3StandIn) -> None:
    chance = random.Random(8)
    with Monocontext.open(server.url("ctx"), endpoint=server.endpoint, anonymous=True) as sync:

        async def work() -> None:
            async with await open_text(server) as context:
                assert len(context) == len(sync) == len(TEXT)
                assert context.generation == sync.generation
                for _ in range(150):
                    a, b = (chance.randrange(-len(TEXT) - 9, len(TEXT) + 9) for _ in range(2))
                    if b - a > 20_000:
                        b = a + chance.randrange(20_000)
                    assert await context[a:b] == sync[a:b] == TEXT[a:b]
                    assert await context.read(a, b) == TEXT[a:b]
                    needle = TEXT[a % len(TEXT) :][: chance.randrange(1, 12)]
                    for name in ("find", "rfind", "count"):
                        assert await getattr(context, name)(needle) == getattr(sync, name)(needle), (name, needle)
                assert await context[5] == TEXT[5]
                assert await context[-1] == TEXT[-1]
                assert await context[10:2000:3] == TEXT[10:2000:3]
                assert await context.contains("line 5999 ")
                assert not await context.contains("no such line")
                assert await context.startswith("line 0")
                assert await context.endswith("end")
                assert await context.index("line 77 ") == TEXT.index("line 77 ")
                assert await context.equals(TEXT)
                for pattern in ("line 59.7", r"^the e", "nothing of it"):
                    assert [hit async for hit in context.grep(pattern)] == list(sync.grep(pattern))
                assert [hit async for hit in context.grep("line", max_hits=3)] == list(sync.grep("line", max_hits=3))
                assert [line async for line in context.lines] == list(sync.lines)
                assert await context.lines.count() == len(sync.lines)
                assert await context.lines[100:200] == sync.lines[100:200]
                assert await context.lines[-1] == "the end"
                assert [piece async for piece in context.chunks(7777)] == list(sync.chunks(7777))

        run(work)


def test_it_costs_the_same_requests(server: S3StandIn) -> None:
    def keys() -> list[tuple[str, str]]:
        return sorted((asked.path, asked.headers.get("range", "")) for asked in server.log if asked.method == "GET")

    options = {"prefetch": "off"}
    server.reset_counts()
    with Monocontext.open(server.url("ctx"), endpoint=server.endpoint, anonymous=True, **options) as sync:
        assert sync[1000:90_000] == TEXT[1000:90_000]
        assert sync.find("line 4321 ") > 0
    asked = keys()
    server.reset_counts()

    async def work() -> None:
        async with await open_text(server, **options) as context:
            await context[1000:90_000]
            await context.find("line 4321 ")

    run(work)
    assert keys() == asked


def test_200_readers_share_one_cache_and_one_flight(server: S3StandIn) -> None:
    most = 0
    server.reset_counts()

    async def work() -> None:
        nonlocal most

        async def read(i: int) -> None:
            nonlocal most
            start = (i % 20) * 5000
            assert await context[start : start + 6000] == TEXT[start : start + 6000]
            most = max(most, len(begun.alive()))

        async with await open_text(server, prefetch="off") as context:
            await asyncio.gather(*(read(i) for i in range(200)))
            assert context.stats.gets == server.counts["GET"]
            assert isinstance(context._text._reader, Reader)
            assert context._text._reader.fetcher.under_way() == (0, 0)

    with begun_threads() as begun:
        run(work)
    ranges = [(asked.path, asked.headers.get("range")) for asked in server.log if "segments/" in asked.path]
    assert len(ranges) == len(set(ranges)), "no range is asked for twice"
    spans: dict[str, list[tuple[int, int]]] = {}
    for path, asked in ranges:
        low, high = map(int, re.findall(r"\d+", asked or ""))
        spans.setdefault(path, []).append((low, high))
    for each in spans.values():
        each.sort()
        assert all(a[1] < b[0] for a, b in pairwise(each)), "no byte is fetched twice"
    assert most <= MAX_RUNNING + 2, "no thread for each reader"


def slow(seconds: float) -> tuple[CountingStore, SlowStore]:
    counting = CountingStore(open_store("memory://aio-text/ctx"))
    return counting, SlowStore(counting, seconds)


def test_others_keep_what_a_cancelled_task_also_waited_for() -> None:
    async def work() -> None:
        counting, store = slow(0.6)
        async with await AsyncMonocontext.open(store, prefetch="off") as context:
            counting.reset()
            both = [asyncio.create_task(context[50_000:50_100]) for _ in range(2)]
            await asyncio.sleep(0.05)
            both[0].cancel()
            assert await both[1] == TEXT[50_000:50_100]
            with pytest.raises(asyncio.CancelledError):
                await both[0]
            segments = [asked for asked in counting.log if asked.key.startswith("segments/")]
            assert len(segments) == 1

    run(work)


@pytest.mark.usefixtures("server")
def test_a_cancelled_pass_asks_for_no_more() -> None:
    async def work() -> None:
        counting, store = slow(0.01)
        async with await AsyncMonocontext.open(store, prefetch="off", cache_bytes=0) as context:
            counting.reset()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(context.run(lambda text: [text[at : at + 9] for at in range(len(text))]), 0.2)
            await asyncio.sleep(0.5)
            before = counting.gets
            await asyncio.sleep(0.5)
            assert 0 < before == counting.gets

    run(work)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_loop_that_has_ended_is_not_waited_for() -> None:
    """What asyncio.run leaves behind, if its client is asked between the last step of the loop and its end or later."""
    loop = asyncio.new_event_loop()

    class Client:
        meta = None

        async def get_object(self, **_: Any) -> None:
            raise AssertionError

    async def adapt() -> BlockingClient:
        return BlockingClient(Client())

    client = loop.run_until_complete(adapt())
    with pytest.raises(ConnectionError, match=r"^a synchronous read blocks the event loop of its client: use"):
        client.get_object()  # in the thread of its loop
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.get_object)
        time.sleep(0.1)
        loop.close()
        for future in (asked, threads.submit(client.get_object)):
            with pytest.raises(ConnectionError, match=r"^the event loop of the client is closed: create"):
                future.result(10)


@pytest.mark.usefixtures("server")
def test_a_text_whose_opening_was_cancelled_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed, begun = list[Monocontext](), list[int]()
    monkeypatch.setattr(Monocontext, "close", lambda text: closed.append(text))

    def delay() -> float:
        begun.append(1)
        return 0.3

    async def work() -> None:
        store = SlowStore(open_store("memory://aio-text/ctx"), delay)
        for number, patience in enumerate((0.1, 0.29, 0.3, 0.31)):
            task = asyncio.create_task(AsyncMonocontext.open(store).__aenter__())
            while len(begun) == number:  # the request has not begun
                await asyncio.sleep(0.01)
            await asyncio.wait([task], timeout=patience)
            if not task.cancel():
                closed.append((await task)._text)
            await asyncio.wait([task])
        while len(closed) < 4:
            await asyncio.sleep(0.01)
        assert len(closed) == len(begun) == 4

    run(work)


def test_errors_are_those_of_the_synchronous_text(server: S3StandIn, tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(NotFound):
            await AsyncMonocontext.open(server.url("nothing"), endpoint=server.endpoint, anonymous=True)
        with pytest.raises(TypeError, match=r"^unknown option .unit.: options are url, client, "):
            await AsyncMonocontext.open(tmp_path, unit="lines")
        async with await open_text(server, materialize_limit=1000) as context:
            with pytest.raises(ContextTooLarge):
                await context.read()
            with pytest.raises(IndexError):
                await context[len(TEXT)]
            with pytest.raises(ValueError, match="substring not found"):
                await context.index("nothing of it")
            with pytest.raises(re.error):
                async for _ in context.grep("("):
                    pass

    run(work)


def test_it_is_opened_by_await_or_by_async_with(server: S3StandIn) -> None:
    async def work() -> None:
        async with open_text(server) as context:
            assert await context[:9] == TEXT[:9]
        with pytest.raises(ContextClosed):
            await context[:9]
        context = await open_text(server)
        async with context as same:
            assert same is context

    run(work)


def test_a_client_of_the_callers_stays_open(server: S3StandIn) -> None:
    aioboto3 = pytest.importorskip("aioboto3")

    async def work() -> None:
        session = aioboto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
        async with session.client("s3", endpoint_url=server.endpoint) as client:
            async with await AsyncMonocontext.open(server.url("ctx"), client=client) as context:
                assert await context[:20] == TEXT[:20]
            assert (await client.head_object(Bucket="bucket", Key="ctx/manifest.json"))["ContentLength"] > 0

    run(work)


def test_a_stop_iteration_of_code_is_no_endless_wait(server: S3StandIn) -> None:
    async def work() -> None:
        async with open_text(server) as context:
            with pytest.raises(RuntimeError, match="StopIteration"):
                await asyncio.wait_for(context.run(lambda text: next(iter([]))), 10)

    run(work)


UNAWAITABLE: dict[str, Callable[[Any], Any]] = {
    "in": lambda t: "x" in t,
    "for": lambda t: [c for c in t],  # noqa: C416
    "list": list, "unpacking": lambda t: [*t], "reversed": reversed, "==": lambda t: t == TEXT,
    "== from the right": lambda t: t == TEXT, "!=": lambda t: t != TEXT, "in a list": lambda t: t in [TEXT],
    "<": lambda t: t < TEXT, ">= from the right": lambda t: t <= TEXT, "+": lambda t: t + "x",
    "+ from the right": lambda t: "x" + t, "*": lambda t: t * 2, "* from the right": lambda t: 2 * t,
    "%": lambda t: t % 5,
    "% from the right": lambda t: "%s" % t,  # noqa: UP031
    "str": str, "f-string": lambda t: f"{t}",
    "format": lambda t: "{:>5}".format(t),  # noqa: UP032
    "hash": hash, "key": lambda t: {t: 1}, "bytes": bytes,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", UNAWAITABLE)
def test_what_cannot_be_awaited_raises_at_once_and_names_what_can(server: S3StandIn, name: str) -> None:
    async def work() -> None:
        async with open_text(server) as context:
            before = context.stats.gets
            with pytest.raises(TypeError, match=r"await |async for|text\.url") as refused:
                UNAWAITABLE[name](context)
            assert "\n" not in str(refused.value)
            assert context.stats.gets == before

    run(work)


def test_what_needs_no_waiting_stays(server: S3StandIn) -> None:
    async def work() -> None:
        async with open_text(server) as context:
            assert (len(context), bool(context)) == (len(TEXT), True)
            assert context == context
            assert context != 5
            assert "AsyncMonocontext" in repr(context)
            assert repr(open_text(server)) == "<AsyncMonocontext, not open>"
            lines = context.lines
            for operation in (lambda: "x" in lines, lambda: list(lines), lambda: [*lines], lambda: reversed(lines)):
                with pytest.raises(TypeError, match="`async for` over lines"):
                    operation()
            with pytest.raises(TypeError, match=r"await lines\.count\(\)"):
                bool(lines)

    run(work)


def test_every_name_of_a_text_is_here_or_left_out_for_a_reason() -> None:
    here = {name for name in dir(AsyncMonocontext) if not name.startswith("_")}
    left_out = {"close", "file", "is_large", "maketrans", "repl_namespace", "repl_tools", "serve", "span"}
    assert {name for name in dir(Monocontext) if not name.startswith("_")} - here == left_out
    assert here - set(dir(Monocontext)) == {"aclose", "contains", "equals", "read", "run"}


def test_a_lazy_result_is_awaited_too(server: S3StandIn) -> None:
    async def work() -> None:
        async with open_text(server, materialize_limit=1000) as context:
            low = await context.lower()
            assert isinstance(low, AsyncMonocontext)
            assert await low[50:90] == TEXT.lower()[50:90]
            head, _, rest = await context.partition("line 5 ")
            assert head == TEXT.partition("line 5 ")[0]
            assert isinstance(rest, AsyncMonocontext)
            pieces = await context.split("line ")
            assert [piece async for piece in pieces] == TEXT.split("line ")
            for items in (pieces, context.lines, low.lines):
                with pytest.raises(TypeError, match=r"await lines\.count\(\)"):
                    len(items)
            assert await pieces.count() == len(TEXT.split("line "))
            assert await low.lines.count() == await context.lines.count() == TEXT.count("\n") + 1
            await low.aclose()
            assert await context[:5] == TEXT[:5]
            await (await context.view(3)).aclose()  # of all views, as `close` is
            with pytest.raises(ContextClosed):
                await context[:5]

    run(work)


def test_every_operator_of_str_is_decided() -> None:
    """Each is defined here for itself: none is inherited from `object`, where it would mean something else."""
    of_object = {"__class__", "__delattr__", "__dir__", "__doc__", "__getattribute__", "__init__", "__init_subclass__"}
    of_object |= {"__new__", "__reduce__", "__reduce_ex__", "__setattr__", "__sizeof__", "__subclasshook__"}
    of_object |= {"__ne__", "__getstate__", "__getnewargs__"}  # the opposite of `__eq__`; pickling
    own = {*vars(AsyncMonocontext), *vars(TextMethods)}
    assert {name for name in dir(str) if name.startswith("__")} - of_object - own == set()


def test_the_stub_of_the_generated_methods_is_current() -> None:
    assert STUB.read_text() == stub(), "run `python tests/aio/stub.py`"
    assert inspect.signature(AsyncMonocontext.find) == inspect.signature(Monocontext.find)
    assert AsyncMonocontext.split.__doc__ == Monocontext.split.__doc__


@pytest.mark.parametrize("place", [5, None, b"s3://bucket"])
def test_what_is_no_place_is_refused_at_once(place: Any) -> None:
    with pytest.raises(TypeError, match="takes a URL, a path or a store, not"):
        AsyncMonocontext.open(place)
