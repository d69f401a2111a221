"""Documents of an asynchronous text: those of the synchronous one, for the same GETs, and code over them as written."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from monocontext import Monocontext, documents, publish, regex
from monocontext.aio import AsyncMonocontext
from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.testing import CountingStore

TEXTS = {
    f"dir/{n:03d}.txt": f"document {n}\n"
    + f"row {n * 7919 % 1009} äöü 💬\n" * (n % 90)
    + ("needle" if n % 50 == 7 else "")
    for n in range(300)
}


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 100))


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    publish(
        documents([(name, text, {"length": len(text)}) for name, text in TEXTS.items()]),
        "memory://aio-documents/ctx",
        frame_bytes=4000,
        segment_bytes=40_000,
    )
    yield open_store("memory://aio-documents/ctx")
    forget("aio-documents")


def test_documents_are_those_of_the_synchronous_text(store: Any) -> None:
    sync = Monocontext.open(store).documents

    async def work() -> None:
        async with AsyncMonocontext.open(store) as context:
            found = context.documents
            assert found.count == sync.count == len(TEXTS)
            assert [name async for name in found] == list(TEXTS)
            assert [pair async for pair in found.items()] == list(TEXTS.items())
            for name in random.Random(5).sample(list(TEXTS), 40):
                assert await found[name] == TEXTS[name]
                assert await found.record(name) == sync.record(name)
                assert await found.metadata(name) == {"length": len(TEXTS[name])}
                assert await found.contains(name)
                assert await found.at(sync.record(name).start) == sync.record(name)
            assert not await found.contains("dir")
            with pytest.raises(KeyError, match="dir/x"):
                await found["dir/x"]

    run(work)


PROGRAMS: dict[str, list[Callable[[Any], Any]]] = {
    "list": [
        lambda texts: [n for n, text in enumerate(texts) if "needle" in text],
        lambda texts: [text[:20] for text in texts if regex.search(r"row 10\d\d", text)],
        lambda texts: (len(texts), texts[17], texts[-3], texts[5:9], texts.index(TEXTS["dir/200.txt"])),
        lambda texts: max(texts, key=len)[:30],
        lambda texts: sorted(len(text) for text in texts),
        lambda texts: texts == list(TEXTS.values()),
        lambda texts: sum(text.count("💬") for text in reversed(texts)),
    ],
    "dict": [
        lambda texts: {name for name, text in texts.items() if "needle" in text},
        lambda texts: {name: len(text) for name, text in texts.items()},
        lambda texts: (texts["dir/003.txt"], "dir/3" in texts, texts.get("x", 5), list(texts)[:4]),
        lambda texts: texts == TEXTS,
        lambda texts: any(text.endswith("needle") for text in texts.values()),
    ],
    "text": [
        lambda text: [name for name, part in text.documents.items() if "needle" in part],
        lambda text: (text.find("document 250"), text[100:130], text.lines[7]),
    ],
}


@pytest.mark.parametrize("shape", PROGRAMS)
def test_code_over_documents_runs_as_written_for_the_same_requests(shape: Any, store: Any) -> None:
    real: Any = {"list": list(TEXTS.values()), "dict": TEXTS}.get(shape)
    options: Any = {"prefetch": "off"}
    for number, program in enumerate(PROGRAMS[shape]):
        requests, answers = [], []
        counting = CountingStore(store)
        with Monocontext.open(counting, shape=shape, **options) as texts:
            answers.append(program(texts))
        requests.append(sorted((asked.key, asked.start) for asked in counting.log))
        counting.reset()

        async def work(counting: Any = counting, answers: Any = answers, program: Any = program) -> None:
            async with AsyncMonocontext.open(counting, shape=shape, **options) as context:
                answers.append(await context.run(program))

        run(work)
        requests.append(sorted((asked.key, asked.start) for asked in counting.log))
        assert answers[0] == answers[1], number
        assert real is None or answers[0] == program(real), number
        assert requests[0] == requests[1], number


def test_what_is_no_shape_is_refused(store: Any) -> None:
    shape: Any = "tuple"

    async def work() -> None:
        with pytest.raises(ValueError, match="shape must be 'text', 'list' or 'dict', not 'tuple'"):
            await AsyncMonocontext.open(store, shape=shape)

    run(work)


@pytest.mark.parametrize(
    ("use", "instead"),
    [
        (lambda found: "a" in found, "documents.contains"),
        (list, "`async for` over documents"),
        (len, "documents.count"),
        (bool, "documents.count"),
    ],
)
def test_operators_that_cannot_wait_say_what_to_write(use: Callable[[Any], Any], instead: str, store: Any) -> None:
    async def work() -> None:
        async with AsyncMonocontext.open(store) as context:
            with pytest.raises(TypeError, match=instead):
                use(context.documents)

    run(work)
