"""Searches in texts of 10 GB and 1 TB, on a virtual clock: bytes, requests and round trips are exact."""

from __future__ import annotations

import pytest

from monocontext import Monocontext, regex
from monocontext.testing import CountingStore
from tests.simulated import SimulatedWorkers
from tests.virtual import virtual_context

LINE = "2026-11-22T02:19:24.117Z INFO  worker-07 request served status=200 bytes=5120 duration=17ms path=/api/items\n"
FRAME = LINE * ((256 << 10) // len(LINE))
REQUEST = "3f0c1d4e-7a52-4b8e-9c61-0d2f5b7a9e13"
ROUND_TRIP_SECONDS = 0.030
LEAST_BYTES_PER_SECOND = 600e6


def planted(number: int) -> str:
    """A frame with one line that holds the request id."""
    middle = len(FRAME) // 2 // len(LINE) * len(LINE) + number % 7 * len(LINE)
    return FRAME[:middle] + f"2026-11-22 ERROR request {REQUEST} failed\n" + FRAME[middle:]


@pytest.mark.parametrize(("gigabytes", "most_gets"), [(10, 24), (1000, 1100)])
def test_a_request_id_in_three_places_cold(gigabytes: int, most_gets: int) -> None:
    frames = gigabytes * 10**9 // len(FRAME)
    places = [frames // 5, frames // 2, frames - 7]
    store = CountingStore(virtual_context(frames, FRAME, {offset: planted(offset) for offset in places}, filters=True))
    workers = SimulatedWorkers(lambda request: ROUND_TRIP_SECONDS + request.stored_bytes / LEAST_BYTES_PER_SECOND)
    context = Monocontext.open(store, workers=workers)  # a round trip that the clock does not see
    result = [match.start() for match in regex.finditer(REQUEST, context)]
    assert [context[offset : offset + len(REQUEST)] for offset in result] == [REQUEST] * 3
    assert [offset // len(FRAME) for offset in result] == places
    stored = context._reader.manifest.stored_bytes  # type: ignore[union-attr]
    assert store.bytes_read < stored / 100
    assert store.gets <= most_gets
    if gigabytes == 10:
        assert workers.now() < 4.5 * ROUND_TRIP_SECONDS  # with the one for the root: five
    search = context.stats.search
    assert (search.looked_at, search.hits, search.false_positives) == (3, 3, 0)
