"""Tasks that are cancelled at random moments of asynchronous work: what comes after them is right, and nothing is left.

A moment is a number of turns of the loop, so that each wait of a piece of work is met as likely as any other.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from monocontext.aio import AsyncMonocontext

from .gauges import at_rest, open_sockets
from .interrupting import SOON_SECONDS
from .test_interrupts import TEXT, Place, assert_nothing_left, descriptors, placed, running_threads

Work = Callable[[AsyncMonocontext, Random], Awaitable[Any]]


async def _slice(context: AsyncMonocontext, random: Random, most: int) -> tuple[str, str]:
    start = random.randrange(len(TEXT))
    stop = start + random.randrange(1, most)
    return await context[start:stop], TEXT[start:stop]


async def _find(context: AsyncMonocontext, random: Random) -> tuple[int, int]:
    needle = f"line {random.randrange(5_000)} of"
    return await context.find(needle), TEXT.find(needle)


async def _grep(context: AsyncMonocontext, random: Random) -> tuple[list[str], list[str]]:
    needle = f"line {random.randrange(400)}1 of"
    result = [hit.line async for hit in context.grep(needle, fixed=True)]
    return result, [line for line in TEXT.splitlines() if needle in line]


async def _count(context: AsyncMonocontext, random: Random) -> tuple[int, int]:
    return await context.count("of é"), TEXT.count("of é")


async def _lines(context: AsyncMonocontext, random: Random) -> tuple[list[str], list[str]]:
    most = random.randrange(1, 300)
    result: list[str] = []
    async for line in context.lines:
        result.append(line)
        if len(result) == most:
            break
    return result, TEXT.splitlines(keepends=True)[:most]


async def _refresh(context: AsyncMonocontext, random: Random) -> tuple[int, int]:
    return len(await context.refresh()), len(TEXT)


WORKS: dict[str, Work] = {
    "slice": lambda context, random: _slice(context, random, 200),
    "long slice": lambda context, random: _slice(context, random, 60_000),
    "find": _find,
    "grep": _grep,
    "count": _count,
    "lines": _lines,
    "refresh": _refresh,
}


class Canceller:
    """Cancels work after a random number of turns of the loop, at most about as many as such work takes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.struck = 0
        self._turns: dict[str, int] = {}

    async def strike(self, work: Awaitable[Any], kind: str) -> Any:
        """What `work` gives, or None where it was cancelled."""
        task = asyncio.ensure_future(work)
        left = self.random.randrange(self._turns.get(kind, 30))
        turns = 0
        while turns < left and not task.done():
            await asyncio.sleep(0)
            turns += 1
        task.cancel()
        try:
            done = await task
        except asyncio.CancelledError:
            self.struck += 1
            self._turns[kind] = min(self._turns.get(kind, 30) + 3, 3_000)  # it may take longer than was known
            return None
        self._turns[kind] = max(turns, 10)
        return done


async def campaign(place: Place, cancellations: int, seed: int) -> str:
    """Cancel work so many times; each time what comes next is right. What was done, in a line."""
    canceller = Canceller(seed)
    random = canceller.random
    tried = 0
    context = await AsyncMonocontext.open(place.url, cache_bytes=60_000, **place.options)
    while canceller.struck < cancellations:
        tried += 1
        assert tried < 50 * cancellations, f"{canceller.struck} of {tried} struck"
        name = random.choice([*WORKS, *WORKS, "open", "close"])
        try:
            async with asyncio.timeout(SOON_SECONDS):
                if name in ("open", "close"):
                    await canceller.strike(_opened(place, is_read=name == "open"), name)
                else:
                    result = await canceller.strike(WORKS[name](context, random), name)
                    assert result is None or result[0] == result[1]
                result = await WORKS[random.choice(list(WORKS))](context, random)
                assert result[0] == result[1]
        except BaseException as error:
            error.add_note(f"seed {seed}, try {tried}, {canceller.struck} struck, {name}")
            raise
        if random.random() < 0.02:
            await context.aclose()
            context = await AsyncMonocontext.open(place.url, cache_bytes=60_000, **place.options)
    await assert_rested(context)
    await context.aclose()
    await assert_only_this_task()
    return f"seed {seed}: {canceller.struck} cancelled of {tried}"


async def _opened(place: Place, is_read: bool) -> None:
    """Cancelled at any moment, in closing too: nothing stays open."""
    async with AsyncMonocontext.open(place.url, **place.options) as context:
        if is_read:
            await context[:10]


async def assert_rested(context: AsyncMonocontext) -> None:
    reader: Any = context._text._reader
    end = time.monotonic() + 30
    while not at_rest(reader):
        assert time.monotonic() < end, f"still under way: {reader!r}"
        await asyncio.sleep(0.01)


async def assert_only_this_task() -> None:
    end = time.monotonic() + 30
    while asyncio.all_tasks() != {asyncio.current_task()}:
        assert time.monotonic() < end, asyncio.all_tasks()
        await asyncio.sleep(0.01)


def cancelled(place: AbstractContextManager[Place], cancellations: int, seed: int) -> None:
    unheard: list[dict[str, Any]] = []
    before = running_threads(), open_sockets(), descriptors()

    async def run(here: Place) -> str:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: unheard.append(about))
        return await campaign(here, cancellations, seed)

    with place as here:
        print(asyncio.run(run(here)))
    gc.collect()
    assert not unheard, unheard[:3]  # what is told here keeps its socket, so this comes first
    assert_nothing_left(*before)


@pytest.mark.slow
@pytest.mark.parametrize("cancellations", [12, pytest.param(340, marks=[pytest.mark.fuzz, pytest.mark.timeout(1200)])])
@pytest.mark.parametrize("kind", ["memory", "directory", "http"])
def test_what_comes_after_a_cancellation_is_right(kind: str, tmp_path: Path, cancellations: int) -> None:
    cancelled(placed(kind, tmp_path), cancellations, seed=1)
