"""Read contexts that DeepRecurse wrote, line by line. Their manifest is a JSON array of segments with line counts.

As in DeepRecurse, segments come in the order of `start_line`. The lines of a segment are those of `str.splitlines`, at
most `line_count` of them. The key of a segment is its name after the prefix, without a slash in between, or the name
alone if it begins with the prefix.

New here: segments are read in parallel and cached, lines can be indexed, and an object that changes is an error.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import Any

from monocontext.engine.fetch.cache import Cache
from monocontext.engine.fetch.requests import Arrival
from monocontext.engine.fetch.workers import LOOK_SECONDS, run_in_thread
from monocontext.engine.open import OriginalOptions, check_prefetch
from monocontext.engine.stats import Stats
from monocontext.errors import ContextChanged, ContextClosed, DamagedData, NotAContext, NotFound
from monocontext.format.deeprecurse import DeepRecurseSegment, parse_manifest, segment_key
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY
from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.text.lines import LineView

_SEGMENTS_AHEAD = 64  # the segments that are loaded ahead of a pass
_SEGMENTS_AHEAD_OF_LONG_PASS = 16
_LONG_PASS_LINES = 1_000_000


def open_deeprecurse(
    open_context: Callable[..., Any],
    bucket: str,
    prefix: str,
    manifest_name: str,
    *,
    region: str | None,
    encoding: str,
    errors: str,
    client: object | None,
    options: OriginalOptions,
) -> Any:
    """Open a context with the arguments of DeepRecurse's constructor: lines of its format, or a `Monocontext`."""
    named = {"region": region, "client": client}
    store_options: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if manifest_name == ROOT_KEY:
        url = f"s3://{bucket}/{prefix.rstrip('/')}".rstrip("/")
        try:
            return open_context(url, **store_options, **options)
        except NotAContext:
            pass  # most likely DeepRecurse's format, which is tried next
        except NotFound:
            if not prefix or prefix.endswith("/"):
                raise
            # Without a slash, DeepRecurse's manifest is at another key: the prefix, directly followed by the name.
    arguments: dict[str, Any] = {**options}
    store_options |= {name: arguments[name] for name in StoreOptions.__annotations__ if name in arguments}
    store = open_store(f"s3://{bucket}", **store_options)
    check_prefetch(options.get("prefetch", "all"))
    lines = open_deeprecurse_lines(
        store,
        prefix + manifest_name,
        lambda name: name if name.startswith(prefix) else prefix + name,
        encoding=encoding,
        errors=errors,
        **{name: arguments[name] for name in ("cache_bytes", "cache_dir") if name in arguments},
    )
    return DeepRecurseLines(lines, bucket, prefix, manifest_name)


def open_deeprecurse_lines(
    store: Store,
    manifest_name: str = ROOT_KEY,
    key_of: Callable[[str], str] | None = None,
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    cache_bytes: int = 256 << 20,
    cache_dir: str | os.PathLike[str] | None = None,
) -> LineView:
    """The lines of a DeepRecurse context (1 GET, for its manifest). Raises `ValueError` for a `cache_dir`."""
    if cache_dir is not None:
        raise ValueError(
            f"cache_dir cannot be used for {store.url}: its DeepRecurse manifest records no versions of its objects; "
            "convert it with `monocontext index`"
        )
    blob = store.get(manifest_name, most_bytes=MOST_ROOT_BYTES)
    segments = parse_manifest(blob.data, f"{store.url}/{manifest_name}")
    context = DeepRecurseContext(store, segments, key_of or segment_key(store), encoding, errors, cache_bytes)
    context.stats.gets, context.stats.bytes_fetched = 1, len(blob.data)
    return LineView(context)


class DeepRecurseLines(LineView):
    """The result of DeepRecurse's constructor: lines, with the arguments as attributes.

    `isinstance(lines, Monocontext)` is true, as with the original.
    """

    __slots__ = ("bucket", "manifest_name", "prefix")

    def __init__(self, lines: LineView, bucket: str, prefix: str, manifest_name: str) -> None:
        super().__init__(lines._reader)
        self.bucket, self.prefix, self.manifest_name = bucket, prefix, manifest_name


class _Loading(Arrival):
    """A segment that a thread is loading. The cache keeps it once it has arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.pid = os.getpid()
        self.lines: list[str] = []
        self.size_bytes = 0
        """The estimated memory that the lines take."""
        self.error: BaseException | None = None


class DeepRecurseContext:
    """The lines of the segments in a manifest, fetched by parallel GETs and cached up to `cache_bytes`."""

    limit = 64 << 20
    """The most characters of a slice with a step; plain slices have no limit, as in the original."""

    def __init__(
        self,
        store: Store,
        segments: list[DeepRecurseSegment],
        key_of: Callable[[str], str],
        encoding: str,
        errors: str,
        cache_bytes: int,
    ):
        self._store = store
        self._segments = segments
        self._key_of = key_of
        self._encoding, self._errors = encoding, errors
        self._starts = [segment.start_line for segment in segments]
        # For each segment, the greatest stop line of any segment up to it: segments may overlap.
        self._stops = list(accumulate((segment.start_line + segment.line_count for segment in segments), max))
        self._cache = Cache(cache_bytes)
        self._loading: dict[int, _Loading] = {}
        self._etags: dict[str, str] = {}
        self._lock = threading.RLock()  # a job may run in this thread, within `_start_loading`
        self._closed = False
        self.stats = Stats()
        self.lines = segments[-1].start_line + segments[-1].line_count if segments else 0

    @property
    def owner(self) -> DeepRecurseContext:
        return self

    url = property(attrgetter("_store.url"))

    def read(self, start: int, stop: int) -> str:
        """Lines [start, stop) joined (1 GET for each segment that is not cached, in parallel)."""
        return "".join(self.iterate(start, stop))

    def iterate(self, start: int, stop: int, *, reverse: bool = False) -> Iterator[str]:
        numbers = self._segments_between(start, stop)
        pending: deque[tuple[int, _Loading]] = deque()
        ahead = iter(reversed(numbers) if reverse else numbers)
        most_pending = _SEGMENTS_AHEAD if stop - start <= _LONG_PASS_LINES else _SEGMENTS_AHEAD_OF_LONG_PASS
        while True:
            while len(pending) < most_pending and (number := next(ahead, None)) is not None:
                pending.append((number, self._start_loading(number)))
            if not pending:
                return
            number, loading = pending.popleft()
            segment = self._segments[number]
            low, high = max(start - segment.start_line, 0), min(stop - segment.start_line, segment.line_count)
            lines = self._wait_for_lines(number, loading)[low:high]
            yield from reversed(lines) if reverse else lines

    def _segments_between(self, start: int, stop: int) -> list[int]:
        """The numbers of the segments with lines in [start, stop)."""
        candidates = range(bisect_right(self._stops, start), bisect_right(self._starts, stop - 1))
        return [n for n in candidates if self._segments[n].start_line + self._segments[n].line_count > start]

    def _start_loading(self, number: int) -> _Loading:
        with self._lock:
            if self._closed:
                raise ContextClosed(f"{self.url} is closed")
            loading = self._loading.get(number)
            if loading is not None and loading.pid == os.getpid():  # a forked child has none of the loading threads
                return loading
            cached = self._cache.get(number)
            if isinstance(cached, _Loading):
                self.stats.hits += 1
                return cached
            self.stats.misses += 1
            loading = _Loading()
            run_in_thread(partial(self._load, number, loading))
            if not loading.is_done:
                self._loading[number] = loading
            return loading

    def _wait_for_lines(self, number: int, loading: _Loading) -> list[str]:
        """Wait for the lines of a segment. Raises the error that its loading raised."""
        while not loading.wait(LOOK_SECONDS):
            if loading.pid != os.getpid():  # a thread of the parent loads it
                loading = self._start_loading(number)
        if loading.error is not None:
            raise loading.error
        return loading.lines

    def _load(self, number: int, loading: _Loading) -> None:
        try:
            self._fetch_lines(number, loading)
        except BaseException as error:  # raised by the waiting caller
            loading.error = error
        with self._lock:
            if self._loading.get(number) is loading:
                del self._loading[number]
            loading.arrive()
            if loading.error is None:
                self._cache.put(number, loading)

    def _fetch_lines(self, number: int, loading: _Loading) -> None:
        segment = self._segments[number]
        key = self._key_of(segment.key)
        blob = self._store.get(key)
        with self._lock:
            first_seen = self._etags.setdefault(key, blob.etag)
        if first_seen != blob.etag:
            expected = f"expected ETag {first_seen}, found {blob.etag}"
            raise ContextChanged(f"{key} was replaced while it was read: {expected}")
        try:
            text = blob.data.decode(self._encoding, self._errors)
        except UnicodeDecodeError as error:
            raise DamagedData(f"{key}: not {self._encoding} at byte {error.start}: {error.reason}") from None
        loading.lines = text.splitlines(keepends=True)[: segment.line_count]
        loading.size_bytes = len(text) * 2 + 80 * len(loading.lines)
        with self._lock:
            self.stats.gets += 1
            self.stats.bytes_fetched += len(blob.data)
            self.stats.bytes_used += len(blob.data)

    def refresh(self) -> None:
        raise ValueError("a DeepRecurse context has no generations, so it cannot be refreshed: open it again")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._cache.clear()
        self._store.close()
