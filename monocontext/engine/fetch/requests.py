"""Combine stored items that callers want into ranged GET requests.

Nearby ranges in one object become one request, and long ranges are split into parts that arrive in parallel. Two
ranges a little apart are cheaper as one: a request costs as much as the transfer of about 100 KB.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from monocontext.records import NamedTuple, dataclass

GAP_BYTES = 128 << 10
"""Read over a gap of up to this size rather than send two requests.

A parallel request costs no round trip, so the gap saves only the request itself: 0.11 ms of the client's CPU, as much
as it takes to receive 800 KiB. The bytes in the gap delay the data after them by 1.5 ms at 90 MB/s, a twentieth of the
30 ms that a request takes near the store.
"""
WIDER = (1, 2, 4, 8)
"""Factors by which gaps grow while more requests are needed than may run at once: each one less saves a round trip.

Simulated for a third of 2,000 frames with round trips of 150 ms: 1.3 s with gaps of 128 KiB, 0.8 with 256 and 0.5 with
1 MiB, for 1.2, 1.8 and 2.8 times the bytes. Where one wave carries everything, wider gaps gain nothing
(docs/decisions/006).
"""
FILTER_GAP_BYTES = 4 << 10
"""The gap for blocks of a filter: they are small and far apart, and a whole filter is a fifth of the text."""
PART_BYTES = 1 << 20
MAX_PART_BYTES = 8 << 20
"""8 MiB take ~90 ms at the 90 MB/s of one connection, three times the first-byte latency near the store."""
FAN_OUT = 16
"""Requests into which a large read is split."""


class FetchItem(NamedTuple):
    """A stored byte range that a caller wants: a frame, an index page, a block of a filter."""

    key: Hashable
    """Name in the cache. A frame: its number; an index page: -1 - its number; a block: its object and number."""
    object: str
    offset: int
    stored_bytes: int
    bytes: int
    """Size in memory once it is decoded."""
    decode: Callable[[memoryview], Any]
    """Decodes the stored bytes into the value for the caller and the cache; raises `DamagedData`."""
    etag: str | None = None
    """The recorded version of the object, if any."""
    gap_bytes: int = GAP_BYTES
    is_raw: bool = False
    """Whether `decode` returns a whole body unchanged, and so allocates nothing."""
    begin: Callable[[memoryview], Callable[[], Any]] | None = None
    """`decode` of a large item in two steps: the first allocates, the second fills and may run in any thread."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The items that a walk (see `frame_table`) needs before it goes on: index pages, blocks of filters."""

    items: tuple[FetchItem, ...]
    some_will_do: bool = False
    """Whether some of them may be enough: the walk looks again whenever one has come."""


class RangeRequest:
    """One ranged GET and the items that it covers. Immutable."""

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
        """An upper bound of the memory of a running request: the body and its decoded values."""


def part_bytes(total_bytes: int) -> int:
    """The size of each request when `total_bytes` are wanted at once.

    It is a sixteenth of the whole, at least 1 MiB and at most 8 MiB: small reads are spread over connections, large
    ones do not become a storm of requests.
    """
    return min(max(total_bytes // FAN_OUT, PART_BYTES), MAX_PART_BYTES)


def coalesce(
    items: Iterable[FetchItem], most_bytes: int = MAX_PART_BYTES, at_once: int | None = None
) -> list[RangeRequest]:
    """Requests that cover the items, each item whole in one request, in the order in which `items` first names them.

    At most 2 * ceil(total / part_bytes(total)) requests for adjacent items (items are not cut, so a part may be half
    full), plus one for each object and each gap above the items' `gap_bytes`. No request is larger than `most_bytes`
    unless a single item is. If that makes more than `at_once` requests, gaps of up to eight times the size are read
    over.
    """
    wanted = list(items)
    rank = {id(item): i for i, item in enumerate(wanted)}
    ordered = sorted(wanted, key=lambda item: (item.object, item.offset))
    limit = min(part_bytes(sum(item.stored_bytes for item in ordered)), most_bytes)
    groups: list[list[FetchItem]] = []
    for factor in WIDER:
        groups = _group(ordered, limit, factor)
        if at_once is None or len(groups) <= at_once:
            break
    groups.sort(key=lambda group: min(rank[id(item)] for item in group))
    return [
        RangeRequest(group[0].object, group[0].offset, max(_stop(item) for item in group), tuple(group))
        for group in groups
    ]


def _group(ordered: Iterable[FetchItem], most_bytes: int, gap_factor: int) -> list[list[FetchItem]]:
    """The items, in order of their offsets, as one list for each request."""
    groups: list[list[FetchItem]] = []
    for item in ordered:
        group = groups[-1] if groups else None
        if (
            group
            and group[-1].object == item.object
            and item.offset - _stop(group[-1]) <= item.gap_bytes * gap_factor
            and _stop(item) - group[0].offset <= most_bytes
        ):
            group.append(item)
        else:
            groups.append([item])
    return groups


def _stop(item: FetchItem) -> int:
    return item.offset + item.stored_bytes
