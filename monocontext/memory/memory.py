"""Store keys and values that outlive a run and that many agents share.

Invariants, with any number of writers on any machines:

- a put is one request and replaces all of an entry: value, lifetime and metadata; a put of another key never undoes it
- of any number of create-only puts of one key, exactly one succeeds; so does one of several puts over one version
- the lifetime of an entry begins with its own write, by the store's clock, and replaces the lifetime of earlier writes
- no call returns an expired entry; `purge` removes its object, but not a version that was put since
"""

from __future__ import annotations

import builtins
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Self, Unpack

from monocontext.engine.open import TextOptions
from monocontext.errors import AlreadyExists, DamagedData, NotFound
from monocontext.memory.encoding import check_ttl, encode_entry
from monocontext.memory.entry import Entry, Found, Sizes
from monocontext.memory.names import name_of, prefix_of
from monocontext.memory.objects import MEMORY_REQUESTS, Entries
from monocontext.options import StoreOptions, validate_options
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store, put_own
from monocontext.stores.store_user import StoreUser
from monocontext.text.assembled import DocumentStart, FramePiece, assemble, ends_line
from monocontext.text.monocontext import Monocontext

_NAME_BYTES = 1024  # the longest key of an object in S3, which includes the prefix of the memory


class Memory(StoreUser):
    """A key-value store below one URL. Safe for use by many threads, processes and machines at once.

    Keys and values are any text, and are kept exactly. Costs below are requests.
    """

    def __init__(self, store: Store, *, owns_store: bool = False) -> None:
        super().__init__(store, owns_store=owns_store)
        self._entries = Entries(store)
        url = store.url
        location = url.partition("://")[2].partition("/")[2].strip("/") if url.startswith("s3:") else ""
        self._name_bytes = _NAME_BYTES - (len(location.encode()) + 1 if location else 0)

    @classmethod
    @validate_options(StoreOptions)
    def open(cls, url: str | os.PathLike[str] | Store, **store_options: Unpack[StoreOptions]) -> Self:
        """Open the memory at `s3://bucket/prefix`, in a directory, or at `memory://name`, existing or not (no request).

        `store_options` are those of `stores.open_store`. Raises `InvalidUrl`.
        """
        return cls._open_at(url, store_options)

    def put(
        self,
        key: str,
        value: str,
        ttl: float | None = None,
        *,
        create: bool = False,
        if_match: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Store a value and return its ETag (1 PUT; values above 16 MiB go in parts).

        - `ttl`: its lifetime in seconds, None for no end. 0 removes the key, and returns an empty ETag
        - `create`: only if there is no such key; otherwise raises `AlreadyExists`
        - `if_match`: only over the version with this ETag; otherwise raises `AlreadyExists`, or `NotFound` if the key
          is missing
        - `metadata`: names and short texts to keep with the value

        Raises `InvalidEntry` for a key, value or lifetime that cannot be stored. An expired entry counts as missing; a
        conditional put over one costs 3 more requests. If the answer to a conditional put is lost, it is read back.
        """
        if create and if_match is not None:
            raise ValueError("create and if_match cannot be combined: leave one out")
        name, ttl = self._object_name(key), check_ttl(ttl)
        header, data = encode_entry(key, value, ttl, metadata)
        if ttl == 0:
            if create and (entry := self._find_live(name)):
                raise self._exists(entry)
            if not create and not self.delete(key, if_match=if_match) and if_match is not None:
                raise self._missing_key(key)
            return ""
        if create:
            etag = self._create(name, data)
        elif if_match is not None:
            etag = self._swap(key, name, data, if_match)
        else:
            etag = self.store.put(name, data)
        self._entries.remember(name, etag, header)
        return etag

    def put_new(self, key: str, value: str, ttl: float | None = None) -> bool:
        """Store a value if there is no such key. Returns whether it did (1 PUT): just one of many callers gets True."""
        try:
            self.put(key, value, ttl, create=True)
        except AlreadyExists:
            return False
        return True

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value of a key, or `default` (1 GET)."""
        try:
            return self.entry(key).value
        except NotFound:
            return default

    def __getitem__(self, key: str) -> str:
        """The value of a key (1 GET). Raises `NotFound`."""
        value = self.entry(key).value
        assert value is not None
        return value

    def __contains__(self, key: str) -> bool:
        return self._find_live(self._object_name(key)) is not None

    def entry(self, key: str) -> Entry:
        """A key's value, lifetime, version and metadata (1 GET; 1 more request if the server sends no time).

        Raises `NotFound`, also for an expired entry, and `DamagedData`.
        """
        name = self._object_name(key)
        try:
            entry = self._entries.read(name)
        except NotFound as error:
            raise (error if str(error).startswith("no bucket ") else self._missing_key(key)) from None
        if entry.is_expired:
            raise self._missing_key(key)
        return entry

    def delete(self, key: str, *, if_match: str | None = None) -> bool:
        """Remove a key. Returns whether there was one (1 HEAD, 1 DELETE, at most 1 GET). Removes a damaged entry, too.

        Several calls at once may each return True, since stores do not say whether a DELETE removed something: to let
        one caller win, use `put_new`. `if_match`: only the version with this ETag; otherwise raises `AlreadyExists`.
        """
        name = self._object_name(key)
        try:
            entry = self._find_live(name)
        except DamagedData:
            if if_match is not None:
                raise
        else:
            if entry is None:
                return False
            if if_match not in (None, entry.etag):
                raise self._changed(entry, if_match)
        self.store.delete(name, if_match=if_match)
        return True

    def list(self, prefix: str = "") -> list[str]:
        """The keys that begin with `prefix`, in order of code points (same requests as `entries`)."""
        return [entry.key for entry in self.entries(prefix)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def entries(self, prefix: str = "", *, tell: Callable[[str], object] = warnings.warn) -> builtins.list[Entry]:
        """The entries whose keys begin with `prefix`, without values. `tell` gets a line for each damaged entry.

        Costs 1 LIST per 1,000 keys, and 1 GET of 2 KB, 16 at once, for each entry that this object has not seen before.
        """
        return [entry for entry in self._listed(prefix, tell) if not entry.is_expired]

    def _listed(self, prefix: str, tell: Callable[[str], object] = warnings.warn) -> Iterator[Entry]:
        """Yield the entries that are not damaged, expired or not."""
        for entry in self._entries.list_all(prefix_of(prefix)):
            if isinstance(entry, DamagedData):
                tell(f"left out: {entry}")
            else:
                yield entry

    def read_entries(self, prefix: str = "", *, ahead: int = 4) -> Iterator[Entry]:
        """The entries whose keys begin with `prefix`, with values, in order (1 LIST per 1,000 keys, 1 GET per entry).

        `ahead` values are read at once, and the next ones when the caller needs them. Warns of damaged entries.
        """
        infos = iter(self._entries.infos(prefix_of(prefix)))
        while names := [info.key for info in islice(infos, max(ahead, 1))]:
            yield from (entry for entry in at_once(self._read_live, names, MEMORY_REQUESTS) if entry is not None)

    def search(
        self, pattern: str | re.Pattern[str], prefix: str = "", *, ignore_case: bool = False, fixed: bool = False
    ) -> Iterator[Found]:
        """Yield matching lines of values, in order of the keys (1 LIST per 1,000 keys, 1 GET per entry, 4 at once).

        `pattern`: a regular expression, or with `fixed` a plain text. Raises `re.error`.
        """
        if isinstance(pattern, str):
            pattern = re.compile(re.escape(pattern) if fixed else pattern, re.IGNORECASE if ignore_case else 0)
        matching = (entry for entry in self.read_entries(prefix) if pattern.search(entry.value or ""))
        return (hit for entry in matching for hit in _matching_lines(entry, pattern))

    def _read_live(self, name: str) -> Entry | None:
        try:
            entry = self._entries.read(name)
        except NotFound:
            return None
        except DamagedData as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
            return None
        return None if entry.is_expired else entry

    def _find_live(self, name: str) -> Entry | None:
        """The entry under a name without its value; None if there is none, or it has expired (1 HEAD, 0 or 1 GET)."""
        entry = self._entries.find(name)
        return None if entry is None or entry.is_expired else entry

    def total(self, prefix: str = "") -> Sizes:
        """The sizes of the entries whose keys begin with `prefix` (same requests as `entries`; no value is read)."""
        entries = self.entries(prefix)
        return Sizes(sum(len(e.key.encode()) for e in entries), sum(e.value_bytes for e in entries), len(entries))

    def clear(self, prefix: str = "") -> int:
        """Remove all keys that begin with `prefix`. Returns their number (1 LIST per 1,000 keys, 1 DELETE each)."""
        infos = self._entries.infos(prefix_of(prefix))
        return len(at_once(lambda info: self.store.delete(info.key), infos, MEMORY_REQUESTS))

    def purge(self) -> int:
        """Remove the objects of expired entries. Returns their number (same requests as `entries`, and 1 DELETE each).

        This only saves space: no call returns expired entries. Versions that were put meanwhile stay. Warns of damaged
        entries, which stay too.
        """
        expired = [entry for entry in self._listed("") if entry.is_expired]

        def remove(entry: Entry) -> bool:
            try:
                self.store.delete(self._object_name(entry.key), if_match=entry.etag)
            except AlreadyExists:
                return False
            return True

        return sum(at_once(remove, expired, MEMORY_REQUESTS))

    @validate_options(TextOptions)
    def context(self, prefix: str = "", *, documents: bool = False, **options: Unpack[TextOptions]) -> Monocontext:
        """The values as one lazy text, in the order of their keys, each below a line `=== KEY: key ===`. With
        `documents`, each is a document named by its key, without that line.

        The text has the entries of this moment, and reads values when they are needed (same requests as `entries`).
        Reading a value that was replaced raises `ContextChanged`. `options`: as for `Monocontext.open`.
        """
        pieces: builtins.list[str | DocumentStart | FramePiece] = []
        between = ""
        for entry in self._entries.list_all(prefix_of(prefix)):
            if isinstance(entry, DamagedData):
                raise entry
            header = entry.header
            if header is None or entry.is_expired:
                continue
            title = entry.key if entry.key.isprintable() else repr(entry.key)
            pieces.append(DocumentStart(entry.key, {}) if documents else f"{between}=== KEY: {title} ===\n")
            pieces.append(FramePiece(self._object_name(entry.key), header.header_bytes, header.frames, entry.etag))
            between = "" if documents or not header.frames or ends_line(header.frames) else "\n"
        return assemble(self.store.url, self.store, iter([*pieces, *filter(None, [between])]), **options)

    def _create(self, name: str, data: bytes) -> str:
        """Store an entry if there is none, or an expired one. Returns its ETag."""
        etag: str | None = None
        while True:
            try:
                return put_own(self.store, name, data, if_match=etag)
            except (AlreadyExists, NotFound) as error:
                entry = self._entries.find(name)
                if entry is None and etag is None and isinstance(error, NotFound):
                    raise  # no bucket
                if entry is not None and not entry.is_expired:
                    raise self._exists(entry) from None
                etag = entry.etag if entry else None

    def _swap(self, key: str, name: str, data: bytes, etag: str) -> str:
        """Store an entry over the version with this ETag, and return the new ETag. Raises `NotFound` for an expired
        entry, and `AlreadyExists` for a malformed ETag; the store would accept both."""
        if not (isinstance(etag, str) and etag.isascii() and etag.isprintable() and '"' not in etag):
            raise AlreadyExists(f"no version of {key!r} has the ETag {etag!r:.80}: take one from Memory.entry")
        remembered = self._entries.recall(name, etag)
        if remembered is None or remembered.ttl_seconds is not None:
            entry = self._entries.find(name)
            if entry is not None and entry.is_expired:
                raise self._missing_key(key)
        try:
            return put_own(self.store, name, data, if_match=etag)
        except (AlreadyExists, NotFound):
            entry = self._entries.find(name)
            raise (self._missing_key(key) if entry is None else self._changed(entry, etag)) from None

    def _object_name(self, key: str) -> str:
        return name_of(key, self._name_bytes)

    def _exists(self, entry: Entry) -> AlreadyExists:
        return AlreadyExists(f"the key {entry.key!r} exists already: replace it with if_match={entry.etag!r}")

    def _changed(self, entry: Entry, etag: str | None) -> AlreadyExists:
        return AlreadyExists(f"the key {entry.key!r} has the ETag {entry.etag}, not {etag!r:.80}: read it again")

    def _missing_key(self, key: str) -> NotFound:
        return NotFound(f"no key {key!r} in {self.url}")


def _matching_lines(entry: Entry, pattern: re.Pattern[str]) -> builtins.list[Found]:
    """The lines of a matching value that match; its first line if only several lines together match."""
    lines = (entry.value or "").split("\n")
    results = [Found(entry.key, number, line) for number, line in enumerate(lines, 1) if pattern.search(line)]
    return results or [Found(entry.key, 1, lines[0])]
