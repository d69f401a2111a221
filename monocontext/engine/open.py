"""Open a context: its store, its root, and the objects outside it that it refers to."""

# No `from __future__ import annotations`: a TypedDict compiles annotations that are strings, 1.5 ms of an import.

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from monocontext.engine.fetch.workers import DEFAULT_WORKERS, Workers
from monocontext.engine.prefetch.streams import Prefetch
from monocontext.engine.reader import Reader
from monocontext.engine.stats import Stats
from monocontext.engine.text_in_root import TextInRoot
from monocontext.errors import ForeignObject, InvalidUrl, NotPicklable
from monocontext.format.manifest import Manifest, find_root, read_newest_after
from monocontext.options import ReachOptions, StoreOptions
from monocontext.stores import is_within, open_store, options_for, split_object
from monocontext.stores.disk import CAPACITY_BYTES
from monocontext.stores.protocol import RangeReader, Store, StoreBase, innermost
from monocontext.stores.secrets_in_urls import without_secrets

if TYPE_CHECKING:
    from monocontext.stores.disk.cache import DiskCache


class CacheOptions(TypedDict, total=False):
    """Options that say how a text is read, wherever it is stored."""

    cache_bytes: int
    """Memory for decoded text and index pages."""
    materialize_limit: int
    """The most characters of a result that becomes one real `str`."""
    cache_dir: str | os.PathLike[str] | None
    """A folder that keeps fetched data for the next process."""
    cache_dir_bytes: int
    """The most bytes that the folder keeps."""
    prefetch: Prefetch
    """Which reads are fetched ahead."""


class TextOptions(CacheOptions, total=False):
    """Options of a text that is assembled from pieces, not opened at a URL."""

    workers: Workers | None
    """The workers that carry out requests, instead of the shared threads."""


class RootOptions(TypedDict, total=False):
    """Options of `Monocontext.open` for a text that is opened at a URL."""

    allow: Iterable[str | os.PathLike[str]]
    """URLs and paths outside the context that may be read."""
    generation: int | None
    """The generation to open; None for the newest."""
    preload: bool
    """Whether to fetch the whole text at once."""


class OpenOptions(TextOptions, RootOptions, StoreOptions, total=False):
    """All options of `Monocontext.open` except `unit`."""


class OriginalOptions(TextOptions, RootOptions, ReachOptions, total=False):
    """Our own options: those of `Monocontext.open` that DeepRecurse's `Context` does not have."""

    transport: Literal["own", "boto3", None]
    keep_alive: bool | None


def check_place(location: object) -> None:
    """Raise `TypeError` unless a value is a URL, a path or a store."""
    if not isinstance(location, str | os.PathLike) and not hasattr(location, "get_range"):
        raise TypeError(f"open() takes a URL, a path or a store, not {type(location).__name__}")


def check_prefetch(prefetch: str) -> None:
    """Raise `ValueError` unless `prefetch` is one of the words of `Prefetch`."""
    if prefetch not in get_args(Prefetch):
        raise ValueError(f"prefetch must be 'all', 'code', 'history' or 'off', not {prefetch!r}")


class ContextHandle:
    """The store and the options of an open context, from which this process and others make its readers."""

    def __init__(
        self,
        store: Store,
        *,
        cache_bytes: int,
        allow: Iterable[str | os.PathLike[str]] = (),
        store_options: StoreOptions | None = None,
        workers: Workers | None = None,
        owns_store: bool = True,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_dir_bytes: int = CAPACITY_BYTES,
        prefetch: Prefetch = "all",
    ):
        self.store = store
        self.allow = tuple(os.fspath(location) for location in ([allow] if isinstance(allow, str) else allow))
        self.cache_bytes = cache_bytes
        self.store_options: StoreOptions = store_options or {}
        check_prefetch(prefetch)
        self.prefetch: Prefetch = prefetch
        self.disk = _disk_cache(cache_dir, cache_dir_bytes) if cache_dir is not None else None
        self._workers = workers
        self._round_trip_seconds: float | None = None
        self._owns_store = owns_store
        self._foreign: dict[str, Store] = {}

    def reader(self, generation: int | None = None) -> Reader:
        """A reader of a generation, by default of the newest (1 GET for its root, 2 if that is damaged)."""
        clock = self._workers.now if self._workers else time.monotonic
        began = clock()
        root = find_root(self.store, generation)
        waited = clock() - began
        self._round_trip_seconds = waited / root.gets
        return self.reader_of(root.manifest, Stats(gets=root.gets, bytes_fetched=root.read_bytes, wait_seconds=waited))

    def newer(self, reader: Reader) -> Reader:
        """The same reader if it reads the newest generation, else a new one (1 GET, and 1 for each later generation).

        A new reader continues the counts. Its cache starts empty, since each generation numbers frames anew.
        """
        newest = read_newest_after(self.store, reader.manifest)
        reader.stats.gets += 1 + newest.generation - reader.manifest.generation
        return reader if newest is reader.manifest else self.reader_of(newest, reader.stats)

    def reader_of(self, manifest: Manifest, stats: Stats | None = None) -> Reader:
        """A reader of a root that was already read or made, committed or not (no GET)."""
        is_near = self._workers is None and isinstance(self.store, StoreBase) and self.store.is_near
        store = self._with_disk_cache(self.store, self.store.url, is_own=True)
        sources = manifest.sources
        reader = Reader(
            manifest,
            TextInRoot(store, manifest) if manifest.text else store,
            self._workers or DEFAULT_WORKERS,
            url=self.store.url,
            cache_bytes=self.cache_bytes,
            find_foreign=lambda url: self.find_foreign(url, sources),
            stats=stats,
            prefetch=self.prefetch,
            round_trip_seconds=0.0 if is_near else self._round_trip_seconds,
        )
        if self.store.url.startswith("s3:"):
            reader.stats.credentials_source = innermost(self.store).credentials_source
        return reader

    def find_foreign(self, url: str, sources: Iterable[str]) -> tuple[RangeReader, str]:
        """The store and key of an object outside the context. Raises `ForeignObject` if it may not be read.

        In a bucket, all objects of that bucket are allowed. On disk, the context's own folder is, and so are `sources`,
        the files that its root names: a root names the exact version (inode, time, size) and the checksums of a file,
        so no reader gets text that the writer did not have. Any other object needs `allow=`.
        """
        own_url = self.store.url
        try:
            root, key = split_object(url)  # first, since it refuses a URL with credentials, and does not show them
        except InvalidUrl as error:
            raise ForeignObject(f"{own_url} refers to {without_secrets(url)}: {error}") from None
        trusted = [own_url, *self.allow, *(sources if own_url.startswith("file:") else ())]
        if not any(is_within(url, location) for location in trusted):
            raise ForeignObject(
                f"{own_url} refers to {url}, which is outside the context: to read it, open the context with "
                f"allow=[{url!r}], or with a folder or bucket that contains it"
            )
        if root not in self._foreign:  # with the endpoint and client of this store
            sibling = innermost(self.store).sibling(root) if root.startswith("s3:") else None
            self._foreign[root] = sibling or open_store(root, **options_for(root, self.store_options))
        return self._with_disk_cache(self._foreign[root], root, is_own=False), key

    def _with_disk_cache(self, store: Store, url: str, *, is_own: bool) -> RangeReader:
        """The store, read through the disk cache if there is one."""
        if self.disk is None:
            return store
        # The name includes the endpoint, since two servers may have the same URL.
        return self.disk.reader(store, f"{self.store_options.get('endpoint') or ''} {url}", is_own=is_own)

    def arguments_to_reopen(self) -> tuple[str, dict[str, Any]]:
        """A URL and options with which another process opens this context by its own credentials. Raises `NotPicklable`
        for a text in memory, or one that was opened with `client=`."""
        if self.store.url.startswith("memory:"):
            raise NotPicklable(f"{self.store.url} is in the memory of this process: store it in a directory or on S3")
        if "client" in self.store_options:
            raise NotPicklable(f"{self.store.url} was opened with client=, which cannot be pickled: leave it out")
        options: dict[str, Any] = {"cache_bytes": self.cache_bytes, "allow": self.allow, "prefetch": self.prefetch}
        if self.disk is not None:
            options |= {"cache_dir": self.disk.folder, "cache_dir_bytes": self.disk.capacity_bytes}
        return self.store.url, options | self.store_options

    def close(self) -> None:
        """Close the stores of objects outside the context, and the context's own store if this handle owns it."""
        for store in [*self._foreign.values(), *([self.store] if self._owns_store else [])]:
            store.close()
        self._foreign.clear()


def _disk_cache(folder: str | os.PathLike[str], capacity_bytes: int) -> "DiskCache":
    from monocontext.stores.disk.cache import DiskCache  # 3 ms

    return DiskCache(folder, capacity_bytes)
