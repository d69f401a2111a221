"""Plan the ranged requests that fetch stored items.

Nearby ranges in one object become one request, and long ranges are split into parts that arrive in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from enum import IntEnum
from threading import Lock
from typing import Any

from monocontext.records import NamedTuple, dataclass

GAP_BYTES = 128 << 10
"""Read over a gap of up to this size rather than send two requests: a request costs 0.11 ms of the client's CPU, as
much as it takes to receive 800 KiB. The gap delays the data after it by 1.5 ms at 90 MB/s."""
GAP_FACTORS = (1, 2, 4, 8)  # tried in turn until no more requests are needed than may run at once (decisions/006)
FILTER_GAP_BYTES = 4 << 10  # as `GAP_BYTES`, for blocks of a filter, which are small and far apart
PART_BYTES = 1 << 20  # the least size of the requests for a large read: takes 11 ms at the 90 MB/s of one connection
MAX_PART_BYTES = 8 << 20  # takes 90 ms at that rate: three times the latency near the store
FAN_OUT = 16  # requests into which a large read is split


class FetchItem(NamedTuple):
    """A stored byte range that a caller wants: a frame, an index page, a block of a filter."""

    key: Hashable
    """The key in the cache: the number of a frame, `("page", number)` of an index page, and the like."""
    object: str
    """The key of the object in the store, or the URL of a foreign object."""
    offset: int
    stored_bytes: int
    decoded_bytes: int  # the memory that its value takes
    decode: Callable[[memoryview], Any]
    """Decodes the stored bytes into the value for the caller and the cache; raises `DamagedData`."""
    etag: str | None = None  # the recorded version of the object, if any
    gap_bytes: int = GAP_BYTES
    is_raw: bool = False  # whether `decode` returns a whole body unchanged, and so allocates nothing


@dataclass(frozen=True, slots=True)
class Missing:
    """The items that have to be fetched before a look-up can go on: index pages, blocks of filters."""

    items: tuple[FetchItem, ...]


class Priority(IntEnum):
    """The order in which requests start: the lowest first."""

    DEMAND = 0
    LITERAL_HINT = 1
    COMPUTED_HINT = 2
    SEQUENTIAL = 3


class Arrival:
    """An event that happens once, for which threads wait.

    A `Future` or `Event` waits with a `Condition`, which an exception in a waiting thread can leave locked; then the
    thread that brings the result would wait for ever.
    """

    __slots__ = ("_arrived", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._arrived = Lock()
        self._arrived.acquire()

    def arrive(self) -> None:
        """Wake all threads that wait. Called once."""
        self.is_done = True
        self._arrived.release()

    def wait(self, seconds: float) -> bool:
        """Wait for the event, at most `seconds`. Returns whether it has happened."""
        if not self.is_done and self._arrived.acquire(timeout=seconds):
            self._arrived.release()  # if an interrupt skips this, other waiting threads look again by themselves
        return self.is_done


class FetchRequest(Arrival):
    """One ranged GET, and the values of its items once they have arrived.

    Callers that want its values hold a reference to it and wait. A queued request to which nobody refers is never sent.
    """

    __slots__ = (
        "__weakref__", "error", "is_started", "items", "memory_bytes", "object", "pid",
        "priority", "sent_at", "start", "stop", "stored_bytes", "values", "was_speculative",
    )  # fmt: skip

    def __init__(self, object: str, start: int, stop: int, items: tuple[FetchItem, ...]):
        super().__init__()
        self.object = object
        self.start = start
        self.stop = stop
        self.items = items
        self.stored_bytes = stop - start
        is_in_place = len(items) == 1 and items[0].is_raw  # the body is checked and kept where it was received
        self.memory_bytes = self.stored_bytes + (0 if is_in_place else sum([item.decoded_bytes for item in items]))
        """The most memory that the request takes while it runs: for its body and the decoded values."""
        self.priority = Priority.DEMAND
        self.was_speculative = False  # whether no caller waited for it when it was sent
        self.is_started = False
        self.sent_at = 0.0  # by the clock of the workers, in seconds
        self.values: dict[Hashable, Any] = {}
        self.error: BaseException | None = None
        self.pid = os.getpid()  # the process whose threads carry it out: in the child of a fork it will never be done

    def finish(self, values: dict[Hashable, Any], error: BaseException | None) -> None:
        """Set the values or the error, and wake all threads that wait. Called once, under the lock."""
        self.values, self.error = values, error
        self.arrive()


def part_bytes(total_bytes: int) -> int:
    """The size of each request for `total_bytes`: small reads use many connections, large ones few requests."""
    return min(max(total_bytes // FAN_OUT, PART_BYTES), MAX_PART_BYTES)


def coalesce(
    items: Iterable[FetchItem], most_bytes: int = MAX_PART_BYTES, most_requests: int | None = None
) -> list[FetchRequest]:
    """Requests that cover the items, each item whole in one request, in the order in which `items` first names them.

    At most 2 * ceil(total / part_bytes(total)) requests for adjacent items (items are not cut, so a part may be half
    full), plus one for each object and each gap above the items' `gap_bytes`. No request is larger than `most_bytes`
    unless a single item is. Above `most_requests`, gaps of up to eight times `gap_bytes` are read over.
    """
    wanted = list(items)
    rank = {id(item): i for i, item in enumerate(wanted)}  # by identity: to hash an item takes longer
    ordered = sorted(wanted, key=lambda item: (item.object, item.offset))
    request_bytes = min(part_bytes(sum(item.stored_bytes for item in ordered)), most_bytes)
    groups: list[list[FetchItem]] = []
    for factor in GAP_FACTORS:
        groups = _group(ordered, request_bytes, factor)
        if most_requests is None or len(groups) <= most_requests:
            break
    groups.sort(key=lambda group: min(rank[id(item)] for item in group))
    return [FetchRequest(group[0].object, group[0].offset, max(map(_stop, group)), tuple(group)) for group in groups]


def _group(ordered: Iterable[FetchItem], request_bytes: int, gap_factor: int) -> list[list[FetchItem]]:
    """The items, in order of their offsets, as one list for each request."""
    groups: list[list[FetchItem]] = []
    for item in ordered:
        group = groups[-1] if groups else None
        if (
            group
            and group[-1].object == item.object
            and item.offset - _stop(group[-1]) <= item.gap_bytes * gap_factor
            and _stop(item) - group[0].offset <= request_bytes
        ):
            group.append(item)
        else:
            groups.append([item])
    return groups


def _stop(item: FetchItem) -> int:
    """The byte of its object after an item."""
    return item.offset + item.stored_bytes
