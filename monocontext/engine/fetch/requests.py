"""Plan byte-range requests for the items that callers want. Pure.

Ranges that lie near each other in one object become one request, and long ones are split so that they arrive in
parallel. Two ranges a little apart are cheaper as one: a request costs what some 100 KB of transfer cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from monocontext.records import NamedTuple, dataclass

GAP_BYTES = 128 << 10
"""Read over a gap of up to this rather than ask twice. A request in parallel costs no round trip, so the gap buys only
the request itself: 0.11 ms of a client's CPU, what receiving 800 KiB takes. Its bytes delay what comes behind them by
1.5 ms at 90 MB/s, a twentieth of the 30 ms that a request takes near the store."""
WIDER = (1, 2, 4, 8)
"""Times that gap, where there would be more requests than may run at once: then each merged one saves a round trip.
Simulated for a third of 2,000 frames behind 150 ms: 1.3 s with gaps of 128 KiB, 0.8 with 256 and 0.5 with 1 MiB, for
1.2, 1.8 and 2.8 times the bytes; where one wave carries all, wider gaps bring nothing (docs/decisions/006)."""
FILTER_GAP_BYTES = 4 << 10
"""The same between blocks of a filter: they are small and far apart, and the whole is a fifth of the text."""
PART_BYTES = 1 << 20
MAX_PART_BYTES = 8 << 20
"""8 MiB take ~90 ms at the 90 MB/s of one connection, three times the first-byte latency near the store."""
FAN_OUT = 16


class FetchItem(NamedTuple):
    """Something stored that a caller wants: a frame, an index page, a block of a filter."""

    key: Hashable
    """Frame number; -1 - page number; object and number of a block."""
    object: str
    offset: int
    stored_bytes: int
    bytes: int
    """Size in memory once it is decoded."""
    decode: Callable[[memoryview], Any]
    """From the stored bytes to what a caller gets and the cache keeps; raises `DamagedData`."""
    etag: str | None = None
    """Version of the object, where one is recorded."""
    gap_bytes: int = GAP_BYTES
    is_raw: bool = False
    """Whether `decode`, given a whole body, gives it back as it is: nothing is allocated then."""
    begin: Callable[[memoryview], Callable[[], Any]] | None = None
    """`decode` in two steps, where it is large: the first makes room, the second fills it and may run in any thread."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The items that a walk through the text needs before it goes on: index pages, blocks of filters."""

    items: tuple[FetchItem, ...]
    some_will_do: bool = False
    """Whether a part of it may be enough: the walk looks again whenever something of it has come."""


class RangeRequest:
    """One ranged GET, and the items that it brings. Immutable."""

    __slots__ = ("is_in_place", "items", "memory_bytes", "object", "start", "stop", "stored_bytes")

    def __init__(self, object: str, start: int, stop: int, items: tuple[FetchItem, ...]):
        self.object = object
        self.start = start
        self.stop = stop
        self.items = items
        self.stored_bytes = stop - start
        self.is_in_place = len(items) == 1 and items[0].is_raw
        """Whether the body is one raw frame: it is checked and kept where it was received."""
        decoded_bytes = 0 if self.is_in_place else sum([item.bytes for item in items])
        self.memory_bytes = self.stored_bytes + decoded_bytes
        """At most what the request occupies while it runs: the body and what it decodes to."""


def part_bytes(total_bytes: int) -> int:
    """How much one request asks for when `total_bytes` are wanted at once.

    A sixteenth of the whole, at least 1 MiB and at most 8 MiB: small reads are spread over connections, large ones do
    not become a storm of requests.
    """
    return min(max(total_bytes // FAN_OUT, PART_BYTES), MAX_PART_BYTES)


def coalesce(
    items: Iterable[FetchItem], most_bytes: int = MAX_PART_BYTES, at_once: int | None = None
) -> list[RangeRequest]:
    """Requests that cover the items, each item whole in one of them, in the order in which `items` first names them.

    At most 2 * ceil(total / part_bytes(total)) requests for items that lie back to back (items are not cut, so a part
    may be half full), plus one for each object and each gap above the items' `gap_bytes`. No request is larger than
    `most_bytes` unless a single item is. Where these are more than `at_once`, gaps of up to eight times the size are
    read over until they are not.
    """
    wanted = list(items)
    if len(wanted) == 1:
        [item] = wanted
        return [RangeRequest(item.object, item.offset, item.offset + item.stored_bytes, (item,))]
    rank = {id(item): i for i, item in enumerate(wanted)}
    ordered = sorted(wanted, key=lambda item: (item.object, item.offset))
    limit = min(part_bytes(sum(item.stored_bytes for item in ordered)), most_bytes)
    groups: list[list[FetchItem]] = []
    for times in WIDER:
        groups = _group(ordered, limit, times)
        if at_once is None or len(groups) <= at_once:
            break
    groups.sort(key=lambda group: min(rank[id(item)] for item in group))
    return [
        RangeRequest(group[0].object, group[0].offset, max(n.offset + n.stored_bytes for n in group), tuple(group))
        for group in groups
    ]


def _group(ordered: Iterable[FetchItem], most_bytes: int, times: int) -> list[list[FetchItem]]:
    """Items in the order of their places, those together that one request brings."""
    groups: list[list[FetchItem]] = []
    for item in ordered:
        group = groups[-1] if groups else None
        if group and group[-1].object == item.object:
            stop = item.offset + item.stored_bytes
            gap = item.offset - (group[-1].offset + group[-1].stored_bytes)
            if gap <= item.gap_bytes * times and stop - group[0].offset <= most_bytes:
                group.append(item)
                continue
        groups.append([item])
    return groups
