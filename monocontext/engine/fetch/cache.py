"""Cache decoded frames and pages: bounded in bytes, resistant to scans.

A new entry joins the probation queue, in order of arrival. A second use moves it to the main part, where the least
recently used entry is evicted first. A full cache evicts from probation while that is larger than its share, so a scan
evicts the entries that the same scan fetched before (after S3-FIFO: Yang et al., SOSP 2023; 2Q: Johnson and Shasha,
VLDB 1994). The keys of entries evicted from probation are remembered for a while, and such an entry returns straight to
the main part. Otherwise a new working set could not get in where a few frames fill a tenth of the cache.

Prefetched entries wait in a third part for their first use, which moves them to probation. They are evicted last: the
read-ahead keeps to a share of the cache, and the entry that is fetched first is wanted first.

Invariants:

- `used_bytes` is at most the capacity; nothing is evicted while everything fits
- an entry is expected, on probation or in the main part, and never in two of these
- a decoded text belongs to a frame in the cache

Not thread-safe: the reader holds a lock around each call. A change that an exception interrupts is repaired by the
next one.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import ref

from cachetools import Cache as BaseCache
from cachetools import LRUCache

from monocontext.engine.fetch.scheduler import FetchItem, RangeRequest
from monocontext.engine.frame import FrameText
from monocontext.records import NamedTuple, dataclass, field

_MOST_BYTES = 4
"""Maximum bytes per character of a `str`."""


@dataclass(slots=True)
class DecodedTexts:
    """The decoded texts of some frames, oldest first. Not thread-safe."""

    size_bytes: int = 0
    """A `str` takes one, two or four bytes a character, depending on its largest character."""
    _kept: OrderedDict[Hashable, tuple[FrameText, int]] = field(default_factory=OrderedDict)

    def keep(self, key: Hashable, frame: FrameText, decoded: str) -> None:
        self.drop(key)
        size_bytes = sys.getsizeof(decoded)
        self._kept[key] = frame, size_bytes
        self.size_bytes += size_bytes
        frame.decoded = decoded

    def drop(self, key: Hashable) -> None:
        """Drop the text of a frame, if it is kept."""
        result = self._kept.pop(key, None)
        if result is not None:
            frame, size_bytes = result
            self.size_bytes -= size_bytes
            frame.decoded, frame.decoding_work = None, 0

    def drop_oldest(self) -> None:
        self.drop(next(iter(self._kept)))

    def clear(self) -> None:
        for key in list(self._kept):
            self.drop(key)


PROBATION_SHARE = 0.1
"""The share of the capacity for probation, as in S3-FIFO. Anything from a twentieth to a fifth does nearly as well."""
ONE_USE = 2
"""Repeated uses of an entry count as one use until this many other entries have arrived.

A loop over slices touches each frame several times, and a line across two frames touches the first one again after the
second has arrived. Such a loop is still a scan (the correlated references of LRU-K: O'Neil et al., SIGMOD 1993).
"""


class Sized(Protocol):
    """A decoded frame or a loaded page."""

    @property
    def size_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CachedBytes:
    """Verified bytes that are not decoded further, such as a block of a filter."""

    body: bytes
    size_bytes: int


class _OnProbation(NamedTuple):
    entry: Sized
    size_bytes: int
    first_used: int
    """The number of entries that had arrived at its first use."""


P = ParamSpec("P")
T = TypeVar("T")


def change(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Run a method, and before it repair the state if the change before was interrupted.

    The object has `_is_dirty`, which is false between changes, and `_recover()`, which makes its state consistent
    again.
    """

    @wraps(method)
    def changed(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._is_dirty:
            self._recover()
        self._is_dirty = True
        result = method(self, *args, **kwargs)
        self._is_dirty = False
        return result

    return changed


class Cache:
    """Byte-bounded cache of index pages and decoded frames: probation, and a least-recently-used main part.

    Frames are kept as UTF-8: one emoji makes a `str` four bytes a character. Frames that are sliced again and again are
    kept as `str` too, in memory that is free.
    """

    def __init__(self, capacity_bytes: int):
        self.capacity_bytes = capacity_bytes
        self._share_bytes = int(capacity_bytes * PROBATION_SHARE)
        self._main: LRUCache[Hashable, Sized] = LRUCache(
            max(capacity_bytes, 0), getsizeof=lambda entry: entry.size_bytes
        )
        self._probation: OrderedDict[Hashable, _OnProbation] = OrderedDict()
        self._probation_bytes = 0
        self._expected: OrderedDict[Hashable, tuple[Sized, int]] = OrderedDict()
        self.expected_bytes = 0
        """Bytes that no caller has read yet."""
        self._given_up: OrderedDict[Hashable, None] = OrderedDict()
        """The keys of entries evicted from probation."""
        self._decoded = DecodedTexts()
        self._arrivals = 0
        self._is_dirty = False
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> Sized | None:
        """The entry, which counts as used; None if there is none. 0.1 us on probation, 0.6 us in the main part."""
        if self._is_dirty:
            self._recover()
        result = self._probation.get(key)
        if result is not None:
            self.hits += 1
            if self._arrivals - result.first_used >= ONE_USE:
                self.hold(key)
            return result.entry
        entry = self._main.get(key)
        if entry is None and key in self._expected:
            entry = self._use_expected(key)
        if entry is None:
            self.misses += 1
        else:
            self.hits += 1
        return entry

    def peek(self, key: Hashable) -> Sized | None:
        """The entry, which does not count as used."""
        if (result := self._probation.get(key)) is not None:
            return result.entry
        if (expected := self._expected.get(key)) is not None:
            return expected[0]
        return BaseCache.get(self._main, key) if key in self._main else None

    @change
    def put(self, key: Hashable, entry: Sized, *, used: bool = True) -> None:
        """Keep an entry, unless it is larger than the whole cache. `used=False`: it was prefetched for a later use."""
        size_bytes = entry.size_bytes
        if size_bytes > self.capacity_bytes:
            return
        self._arrivals += 1
        if self._decoded.size_bytes:
            self._decoded.drop(key)
        self._drop(key)
        if not used:
            self._expected[key] = entry, size_bytes
            self.expected_bytes += size_bytes
            self._make_room(0, key)
        elif key in self._given_up:
            del self._given_up[key]
            self._make_room(size_bytes)
            self._main[key] = entry
        else:
            self._probation[key] = _OnProbation(entry, size_bytes, self._arrivals)
            self._probation_bytes += size_bytes
            self._make_room(0, key)

    @change
    def expect(self, key: Hashable) -> bool:
        """Keep an entry on probation as long as a prefetched one, since a use of it is predicted. Returns whether it
        was on probation."""
        result = self._probation.get(key)
        if result is None:
            return False
        self._drop(key)
        self._expected[key] = result.entry, result.size_bytes
        self.expected_bytes += result.size_bytes
        return True

    @change
    def give_up_first(self, key: Hashable) -> None:
        """Evict a prefetched entry first, since its use is no longer expected."""
        result = self._expected.get(key)
        if result is not None:
            self._drop(key)
            entry, size_bytes = result
            self._probation[key] = _OnProbation(entry, size_bytes, self._arrivals)
            self._probation.move_to_end(key, last=False)
            self._probation_bytes += size_bytes

    @change
    def hold(self, key: Hashable) -> None:
        """Move an entry from probation to the main part, as a second use does."""
        result = self._probation.get(key)
        if result is not None:
            self._drop(key)
            self._main[key] = result.entry

    def has_room_for_decoded(self, characters: int) -> bool:
        """Whether a decoded text of this many characters fits without an eviction. Otherwise two texts could evict each
        other in turn, or a text too large for the cache would be decoded again and again."""
        return self.used_bytes + _MOST_BYTES * characters + 100 <= self.capacity_bytes

    @change
    def keep_decoded(self, key: Hashable, frame: FrameText, decoded: str) -> None:
        """Keep the decoded text of a frame, if the frame is in the cache."""
        if key in self:
            self._decoded.keep(key, frame, decoded)
            self._make_room(0)

    @change
    def cool(self) -> None:
        """Evict everything that was used. Prefetched entries stay for their first use."""
        self._main.clear()
        self._probation.clear()
        self._given_up.clear()
        self._probation_bytes = 0

    @change
    def clear(self) -> None:
        self._decoded.clear()
        self._main.clear()
        self._probation.clear()
        self._expected.clear()
        self._given_up.clear()
        self._probation_bytes = self.expected_bytes = 0

    @property
    def used_bytes(self) -> int:
        return int(self._main.currsize) + self._probation_bytes + self.expected_bytes + self._decoded.size_bytes

    def __contains__(self, key: Hashable) -> bool:
        """Whether the cache has an entry. The check does not count as a use."""
        return key in self._probation or key in self._main or key in self._expected

    def has_all(self, keys: Iterable[Hashable]) -> bool:
        """Whether the cache has all of these. The check does not count as a use."""
        return all(key in self for key in keys)

    def __len__(self) -> int:
        return len(self._probation) + len(self._main) + len(self._expected)

    def __repr__(self) -> str:
        expected = f", {len(self._expected)} expected" if self._expected else ""
        return (
            f"<Cache {self.used_bytes:,}/{self.capacity_bytes:,} bytes, {len(self)} entries, "
            f"{len(self._probation)} on probation{expected} | {self.hits:,} hits, {self.misses:,} misses>"
        )

    def expect_nothing(self) -> None:
        """Evict all prefetched entries first, since their use is no longer expected."""
        for key in list(self._expected):
            self.give_up_first(key)

    @change
    def _use_expected(self, key: Hashable) -> Sized:
        entry, size_bytes = self._expected[key]
        self._drop(key)
        self._probation[key] = _OnProbation(entry, size_bytes, self._arrivals)
        self._probation_bytes += size_bytes
        return entry

    def _recover(self) -> None:
        """Recount the entries after an interrupted change, which may have lost the entry that it moved."""
        self._is_dirty = True
        self._decoded.clear()
        main = {key: BaseCache.__getitem__(self._main, key) for key in self._main}
        self._main = LRUCache(self._main.maxsize, getsizeof=self._main.getsizeof)
        self._probation = OrderedDict((k, v) for k, v in self._probation.items() if k not in main)
        others = [(k, v) for k, v in self._expected.items() if k not in main and k not in self._probation]
        self._expected = OrderedDict(others)
        self._probation_bytes = sum(result.size_bytes for result in self._probation.values())
        self.expected_bytes = sum(size_bytes for _, size_bytes in self._expected.values())
        for key, entry in main.items():
            self._main[key] = entry
        self._make_room(0)
        self._is_dirty = False

    def _drop(self, key: Hashable) -> None:
        result = self._probation.pop(key, None)
        if result is not None:
            self._probation_bytes -= result.size_bytes
        elif (expected := self._expected.pop(key, None)) is not None:
            self.expected_bytes -= expected[1]
        else:
            self._main.pop(key, None)

    def _make_room(self, size_bytes: int, newest: Hashable = None) -> None:
        """Evict entries until `size_bytes` more fit; the newest entry stays."""
        while self.used_bytes + size_bytes > self.capacity_bytes:
            others = len(self._probation) - (newest in self._probation)
            if self._decoded.size_bytes:
                self._decoded.drop_oldest()
            elif others and (not self._main or self._probation_bytes > self._share_bytes):
                key, oldest = self._probation.popitem(last=False)
                self._probation_bytes -= oldest.size_bytes
                self._given_up[key] = None
            elif self._main:
                self._main.popitem()
            else:
                self._drop(next(iter(self._expected)))
        # As many keys as entries: an entry that returns later than that was not part of a working set.
        while len(self._given_up) > len(self):
            self._given_up.popitem(last=False)


MOST_WARM = 256
"""The number of contexts that keep the frames that they used: a look at a thousand contexts leaves 64 MiB of frames
instead of 256."""

_warm: OrderedDict[int, ref[Cache]] = OrderedDict()
"""The caches that were filled last, oldest first. Guarded by the one lock of all these caches."""


def keep_warm(cache: Cache) -> None:
    """Record that a cache was filled just now, and `cool` the one that was filled longest ago."""
    _warm[id(cache)] = ref(cache)
    _warm.move_to_end(id(cache))
    while len(_warm) > MOST_WARM:
        _, result = _warm.popitem(last=False)
        oldest = result()
        if oldest is not None:
            oldest.cool()


def forget_warm(cache: Cache) -> None:
    """Drop the record of a cache, since its context is closed."""
    _warm.pop(id(cache), None)


# -- stored frames -----------------------------------------------------------------------------------------------------

MOST_SHARE = 0.5
"""The most of the cache that stored frames may take: the other half is for decoded frames, which most reads want."""


def reserved_bytes(text_bytes: int, stored_bytes: int, cache_bytes: int) -> int:
    """The bytes of a cache to reserve for stored frames: for all of a text or none, since a pass returns to all of
    it."""
    fits = stored_bytes <= cache_bytes * MOST_SHARE
    return stored_bytes if text_bytes > cache_bytes and fits else 0


@dataclass(slots=True, eq=False)
class StoredBytes:
    """The stored bytes of frames, up to a limit. Its owner holds the lock."""

    limit_bytes: int
    used_bytes: int = 0
    _kept: dict[Hashable, bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<StoredBytes {self.used_bytes:,}/{self.limit_bytes:,} bytes of {len(self._kept)} frames>"

    def keep(self, request: RangeRequest, body: memoryview) -> None:
        """Keep the frames of a verified answer, as many as fit."""
        for item in request.items:
            if isinstance(item.key, int) and item.key >= 0 and item.key not in self._kept:
                if self.used_bytes + item.stored_bytes > self.limit_bytes:
                    return
                offset = item.offset - request.start
                self._kept[item.key] = bytes(body[offset : offset + item.stored_bytes])
                self.used_bytes += item.stored_bytes

    def body_of(self, request: RangeRequest) -> bytes | None:
        """The answer to a request, with zeros in the gaps between its items; None if an item is missing."""
        if not self._kept or not all(item.key in self._kept for item in request.items):
            return None
        body = bytearray(request.stored_bytes)
        for item in request.items:
            offset = item.offset - request.start
            body[offset : offset + item.stored_bytes] = self._kept[item.key]
        return bytes(body)

    def forget(self, items: Iterable[FetchItem]) -> None:
        """Drop the frames among these items."""
        for item in items:
            self.used_bytes -= len(self._kept.pop(item.key, b""))

    def clear(self) -> None:
        self._kept.clear()
        self.used_bytes = 0
