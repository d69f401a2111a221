"""Round trips on a virtual clock, where each request takes one: what a first second is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from benchmarks.first_second import NEEDLE_SHARE
from benchmarks.first_second_client import WINDOW_CHARACTERS
from benchmarks.logs import NEEDLE, make_incident, make_logs
from monocontext import Monocontext, publish
from monocontext import regex as re
from monocontext.engine.fetch.fetcher import FIRST_WAVE_BYTES, wave_bytes
from monocontext.engine.fetch.link import Link
from monocontext.engine.fetch.requests import FetchRequest
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, WrappedStore
from tests.engine.counted import memory
from tests.simulated import SimulatedWorkers, VirtualClock
from tests.virtual import virtual_context

pytestmark = pytest.mark.usefixtures("stores_are_measured")
Look = Callable[[Monocontext], object]


def gigabyte() -> Store:
    """A virtual context of 4,000 frames with the line in one of them, as `publish` would write it."""
    filler = b"".join(make_logs(256 << 10, 6)).decode("ascii")
    planted = {int(4000 * NEEDLE_SHARE): f"{filler[:100_000]}{NEEDLE}{filler[100_000:]}"}
    return virtual_context(4000, filler, planted, filters=True)


large = cache(gigabyte)


def find(context: Monocontext) -> None:
    assert context.find(NEEDLE) > 0


def window(context: Monocontext) -> None:
    at = context.find(NEEDLE)
    assert NEEDLE in context[at - WINDOW_CHARACTERS : at + WINDOW_CHARACTERS]


def head(context: Monocontext) -> None:
    assert len(context[:500]) == 500


class SlowRoot(WrappedStore):
    """A store whose roots take as long as all other requests."""

    def __init__(self, store: Store, clock: VirtualClock, seconds: float) -> None:
        super().__init__(store)
        self._clock, self._seconds = clock, seconds

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        self._clock.advance(self._seconds)
        return super().get(key, most_bytes=most_bytes)


def rounds(
    store: Store, *looks: Look, seconds: float = 0.15, bytes_per_second: float | None = None
) -> tuple[list[float], int]:
    """The requests in a row of opening and of each look, and the GETs of all."""
    clock = VirtualClock()
    counting = CountingStore(SlowRoot(store, clock, seconds))

    def answer(request: FetchRequest) -> float:
        if context._reader.manifest.text:  # type: ignore[union-attr]  # all of it came with the root
            return 0.0
        return seconds + (request.stored_bytes / bytes_per_second if bytes_per_second else 0.0)

    context = Monocontext.open(counting, workers=SimulatedWorkers(answer, clock))
    taken, began = [clock.now() / seconds], clock.now()
    for look in looks:
        look(context)
        taken.append(round((clock.now() - began) / seconds, 3))
        began = clock.now()
    return taken, counting.gets


LATENCIES = (0.01, 0.05, 0.15)


def test_5_megabytes_take_one_round_where_they_were_written_at_once(texts_in_roots: None) -> None:
    store = memory()
    publish(make_incident(5_000_000, NEEDLE_SHARE).decode(), store, filters=False)
    for seconds in LATENCIES:
        assert rounds(store, head, find, window, seconds=seconds) == ([1, 0, 0, 0], 1), seconds


def test_a_gigabyte_takes_four(texts_in_roots: None) -> None:
    store = gigabyte()
    for seconds in LATENCIES:
        taken, asked = rounds(store, head, find, window, seconds=seconds)
        assert taken == [1, 0, 3, 0], seconds
        assert asked <= 20


@pytest.mark.parametrize(
    ("look", "most"),
    [
        (lambda c: c.view(5_000_000, 1_000_000_000).find(NEEDLE), 4),
        (lambda c: c.count(NEEDLE), 3),
        (lambda c: re.search(NEEDLE + r"\d*", c), 3),
        (lambda c: list(c.grep("(?i)" + NEEDLE)), 3),
        (lambda c: c.find("this is not there"), 2),
        (lambda c: c.lower().find(NEEDLE.lower()), 3),
    ],
)
def test_a_search_takes_rows_then_index_pages_then_frames(look: Look, most: int) -> None:
    taken, _ = rounds(large(), look)
    assert taken[1] <= most


@pytest.mark.parametrize(
    ("round_trip", "speed", "expected"),
    [
        (None, None, 0),
        (0.0, None, 0),
        (0.0005, 1e9, 0),
        (0.01, None, FIRST_WAVE_BYTES),
        (0.15, None, 15_000_000),
        (0.15, 90e6, 13_500_000),
        (0.01, 90e6, 900_000),
        (0.05, 2e6, 100_000),
        (0.002, 1e9, 2_000_000),
    ],
)
def test_what_one_wave_carries(round_trip: float | None, speed: float | None, expected: int) -> None:
    link = Link(round_trip)
    if speed:
        link.begin_busy_period(0.0)
        link.note_answer(4 << 20, 0.0, (round_trip or 0.0) + (4 << 20) / speed)
    assert abs(wave_bytes(link) - expected) <= 1


def test_a_thin_link_is_noticed() -> None:
    """After a transfer of 2 MiB a wave is as large as what this link carries in a round trip."""
    store = memory()
    publish(make_incident(20_000_000, NEEDLE_SHARE).decode(), store)
    taken, _ = rounds(store, find, bytes_per_second=10e6)
    assert taken[1] > 1
    link = Link(0.1)
    assert wave_bytes(link) >= 9 << 20
    clock = VirtualClock()
    context = Monocontext.open(
        SlowRoot(store, clock, 0.1),
        workers=SimulatedWorkers(lambda request: 0.1 + request.stored_bytes / 2e6, clock),
    )
    context[1_000_000:17_000_000]
    measured = context._reader.fetcher.link  # type: ignore[union-attr]
    assert measured.round_trip_seconds == pytest.approx(0.1)
    assert measured.bytes_per_second is not None
    assert 2e6 <= measured.bytes_per_second <= 16e6
    assert wave_bytes(measured) < 9 << 20
