"""Store keys and values that outlive a run and that many agents share.

Invariants, with any number of writers on any machines:

- a put is one request and replaces an entry whole: its value, its lifetime, its metadata; a put of another key never
  undoes it
- of any number of create-only puts of one key exactly one succeeds, and so of compare-and-swap puts of one version
- an entry lives from its own write on, by the store's clock; no lifetime of an earlier write outlasts that write
- no call sees an expired entry; `purge` removes its object, but not a version that was put since
"""

from __future__ import annotations

import builtins
import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, Unpack

from monocontext.engine.open import TextOptions
from monocontext.errors import AlreadyExists, DamagedData, InvalidEntry, MonocontextError, NotFound
from monocontext.memory.encoding import EntryHeader, check_ttl, encode_entry
from monocontext.memory.entry import Entry, Found, Sizes
from monocontext.memory.names import name_of, prefix_of
from monocontext.memory.objects import THREADS, Entries
from monocontext.options import StoreOptions, validate_options
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store, put_own
from monocontext.stores.store_user import StoreUser

if TYPE_CHECKING:
    from monocontext.text.monocontext import Monocontext

_NAME_BYTES = 1024
"""Longest name of an object in S3, in bytes, with the prefix of the memory."""
_CHECKPOINTS = "checkpoint:"
_VALUES_AHEAD = 4
"""The values that a search reads at once."""
SWEEP_SECONDS = 300.0
"""The time between two purges by `sweep`: a LIST of a thousand entries costs as much as ten GETs."""


class Memory(StoreUser):
    """A key-value store at one place. Safe for use by many threads, and by many memories at one place.

    Keys are any text, values are text; both are kept exactly. Costs below are requests.
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
        """Open the memory at `s3://bucket/prefix`, a directory, or `memory://name`; it need not exist (no request).

        `store_options` are those of `stores.open_store`. Raises `InvalidUrl`.
        """
        return cls._open_at(url, store_options)

    # -- one key ---------------------------------------------------------------------------------------------------

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

        - `ttl`: its lifetime in seconds; None for no end. 0 removes the key, and returns an empty ETag
        - `create`: only if there is no such key; else raises `AlreadyExists`
        - `if_match`: only over the version with this ETag; else raises `AlreadyExists`, or `NotFound` for a missing key
        - `metadata`: names and short texts to keep with the value

        Raises `InvalidEntry` for a key, value or lifetime that cannot be stored. A conditional put costs 3 requests
        more over an expired entry, which counts as missing. If its answer is lost, it finds out whether it succeeded.
        """
        if create and if_match is not None:
            raise ValueError("create and if_match cannot be combined")
        name, ttl = self._object_name(key), check_ttl(ttl)
        header, data = encode_entry(key, value, ttl, metadata)
        if ttl == 0:
            self._remove_now(name, create, if_match)
            return ""
        if if_match is not None:
            self._check_match(key, name, if_match)
        if create:
            etag = self._create(name, header, data)
        elif if_match is not None:
            etag = self._swap(name, header, data, if_match)
        else:
            etag = self.store.put(name, data)
        self._entries.remember(name, etag, header)
        return etag

    def put_new(
        self, key: str, value: str, ttl: float | None = None, *, metadata: Mapping[str, str] | None = None
    ) -> bool:
        """Store a value if there is no such key; returns whether it did (1 PUT). Of many callers one gets True."""
        try:
            self.put(key, value, ttl, create=True, metadata=metadata)
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
        offset = self._entries.find(self._object_name(key))
        return offset is not None and not offset[0].is_expired

    def entry(self, key: str) -> Entry:
        """A key's value, lifetime, version and metadata (1 GET; 1 request more if the server sends no time).

        Raises `NotFound`, also for an expired entry, and `DamagedData`.
        """
        name = self._object_name(key)
        try:
            result = self._entries.read(name)
        except NotFound as error:
            raise (error if "no bucket" in str(error) else self._missing_key(key)) from None
        if result.is_expired:
            raise self._missing_key(key)
        return result

    def delete(self, key: str, *, if_match: str | None = None) -> bool:
        """Remove a key; returns whether there was one (1 HEAD, 1 DELETE, at most 1 GET). A damaged entry goes, too.

        `if_match`: only the version with this ETag; else raises `AlreadyExists`.
        """
        name = self._object_name(key)
        try:
            offset = self._entries.find(name)
        except DamagedData:
            if if_match is not None:
                raise
        else:
            if offset is None or offset[0].is_expired:
                return False
        if if_match is None:
            self.store.delete(name)
        else:
            self._check_match(key, name, if_match)
            self.store.delete(name, if_match=if_match)
        return True

    # -- many keys -------------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> list[str]:
        """Keys that begin with `prefix`, in order of their code points (cost as of `entries`)."""
        return [entry.key for entry in self.entries(prefix)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def entries(self, prefix: str = "") -> builtins.list[Entry]:
        """Each key that begins with `prefix`, without its value.

        Costs 1 LIST a thousand, and 1 GET of 2 KB, 16 at once, for each entry that this object has not seen before.
        """
        return [entry for entry, _ in self._entries.list_all(prefix_of(prefix)) if not entry.is_expired]

    def read_entries(self, prefix: str = "", *, ahead: int = _VALUES_AHEAD) -> Iterator[Entry]:
        """Each key that begins with `prefix`, with its value, in order of the keys (1 LIST a thousand, 1 GET an entry).

        Values are read `ahead` at once; the next ones when the last of them is asked for.
        """
        names = iter(self._entries.infos(prefix_of(prefix)))
        while part := [info.key for info in islice(names, max(ahead, 1))]:
            yield from (entry for entry in at_once(self._read_live, part, THREADS) if entry is not None)

    def search(
        self, pattern: str | re.Pattern[str], prefix: str = "", *, ignore_case: bool = False, fixed: bool = False
    ) -> Iterator[Found]:
        """The lines of values that match, key by key (1 LIST, 1 GET an entry, a few ahead).

        `pattern` is a regular expression, with `fixed` a text. Raises `re.error`.
        """
        if isinstance(pattern, str):
            pattern = re.compile(re.escape(pattern) if fixed else pattern, re.IGNORECASE if ignore_case else 0)
        return self._search_values(pattern, prefix)

    def _search_values(self, pattern: re.Pattern[str], prefix: str) -> Iterator[Found]:
        for entry in self.read_entries(prefix):
            if not pattern.search(entry.value or ""):
                continue
            lines = enumerate((entry.value or "").split("\n"), 1)
            results = [Found(entry.key, number, line) for number, line in lines if pattern.search(line)]
            # A match over several lines is reported at the first line of the value.
            yield from results or [Found(entry.key, 1, (entry.value or "").split("\n", 1)[0])]

    def _read_live(self, name: str) -> Entry | None:
        try:
            entry = self._entries.read(name)
        except NotFound:
            return None
        return None if entry.is_expired else entry

    def total(self, prefix: str = "") -> Sizes:
        """Bytes of keys and of values (cost as of `entries`; no value is read)."""
        result = self.entries(prefix)
        return Sizes(sum(len(e.key.encode()) for e in result), sum(e.value_bytes for e in result), len(result))

    def clear(self, prefix: str = "") -> int:
        """Remove every key that begins with `prefix`; returns their number (1 LIST, 1 DELETE each, 16 at once)."""
        infos = self._entries.infos(prefix_of(prefix))
        return len(at_once(lambda info: self.store.delete(info.key), infos, THREADS))

    def purge(self) -> int:
        """Remove the objects of expired entries; returns their number (cost as of `entries`, and 1 DELETE each).

        A version that was put meanwhile stays. A purge only saves space.
        """
        expired = [entry for entry, _ in self._entries.list_all(prefix_of("")) if entry.is_expired]

        def remove(entry: Entry) -> bool:
            try:
                self.store.delete(self._object_name(entry.key), if_match=entry.etag)
            except AlreadyExists:
                return False
            return True

        return sum(at_once(remove, expired, THREADS))

    @contextmanager
    def sweep(
        self, every_seconds: float = SWEEP_SECONDS, tell: Callable[[str], object] = warnings.warn
    ) -> Iterator[None]:
        """Purge in a thread while a `with` block runs: at once, then every `every_seconds`.

        If the store fails, `tell` gets one line, and the next purge tries again.
        """
        ended = threading.Event()

        def run() -> None:
            while True:
                try:
                    self.purge()
                except (MonocontextError, OSError) as error:
                    tell(f"{self.url}: not swept: {error}")
                if ended.wait(every_seconds):
                    return

        thread = threading.Thread(target=run, name="monocontext-sweep", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    # -- more than text --------------------------------------------------------------------------------------------

    def checkpoint(self, name: str, state: Any, ttl: float | None = None) -> str:
        """Store the state of a run under the key `checkpoint:NAME`; returns its ETag (1 PUT).

        Raises `InvalidEntry` for a state that JSON has no form for.
        """
        try:
            text = json.dumps(state, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidEntry(f"the state of checkpoint {name!r} is not JSON: {error}") from None
        return self.put(_CHECKPOINTS + name, text, ttl)

    def resume(self, name: str, default: Any = None) -> Any:
        """The state of the last checkpoint of that name, or `default` (1 GET)."""
        text = self.get(_CHECKPOINTS + name)
        return default if text is None else json.loads(text)

    @validate_options(TextOptions)
    def context(self, prefix: str = "", *, documents: bool = False, **options: Unpack[TextOptions]) -> Monocontext:
        """The values as one lazy text, in the order of their keys, each below a line `=== KEY: key ===`; with
        `documents` each is a document named by its key, without that line.

        The text has the entries of now; no value is read yet (cost as of `entries`). `options` are those of
        `Monocontext.open` that need no place. Reading a value that was replaced meanwhile raises `ContextChanged`.
        """
        from monocontext.memory.context import context_of

        results = [
            (entry, header) for entry, header in self._entries.list_all(prefix_of(prefix)) if not entry.is_expired
        ]
        pieces = [(self._object_name(entry.key), entry, header) for entry, header in results]
        return context_of(self.store, pieces, documents, **options)

    # -- conditions ------------------------------------------------------------------------------------------------

    def _create(self, name: str, header: EntryHeader, data: bytes) -> str:
        """Store an entry if there is none, or an expired one; returns its ETag."""
        etag: str | None = None
        while True:
            try:
                return put_own(self.store, name, data, if_match=etag)
            except (AlreadyExists, NotFound) as error:
                offset = self._entries.find(name)
                if offset is None and etag is None and isinstance(error, NotFound):
                    raise  # no bucket
                if offset is not None and not offset[0].is_expired:
                    raise self._exists(offset[0]) from None
                etag = offset[0].etag if offset else None

    def _swap(self, name: str, header: EntryHeader, data: bytes, etag: str) -> str:
        """Store an entry over the version with this ETag; returns the new ETag."""
        try:
            return put_own(self.store, name, data, if_match=etag)
        except (AlreadyExists, NotFound):
            offset = self._entries.find(name)
            if offset is None:
                raise self._missing_key(header.key) from None
            raise self._exists(offset[0]) from None

    def _check_match(self, key: str, name: str, etag: str) -> None:
        """Refuse updates that the store would accept: of an expired entry, and with an ETag that cannot be one."""

        if not (isinstance(etag, str) and etag.isascii() and etag.isprintable() and '"' not in etag):
            raise AlreadyExists(f"{key!r} has another ETag than {etag!r:.80}, which is not a valid one")
        header = self._entries.recall(name, etag)
        if header is None or header.ttl_seconds is not None:
            offset = self._entries.find(name)
            if offset is not None and offset[0].is_expired:
                raise self._missing_key(offset[0].key)

    def _remove_now(self, name: str, create: bool, if_match: str | None) -> None:
        """Carry out a put with a lifetime of 0: remove the key under its conditions."""
        if create or if_match is not None:
            offset = self._entries.find(name)
            live = offset[0] if offset and not offset[0].is_expired else None
            if live and live.etag != if_match:
                raise self._exists(live)
            if live is None and if_match is not None:
                raise NotFound(f"nothing at {self._entries.location(name)}")
            if live is None:
                return
            self.store.delete(name, if_match=live.etag)
            return
        self.store.delete(name)

    def _object_name(self, key: str) -> str:
        return name_of(key, self._name_bytes)

    def _exists(self, entry: Entry) -> AlreadyExists:
        return AlreadyExists(f"{entry.key!r} is there already: ETag {entry.etag}")

    def _missing_key(self, key: str) -> NotFound:
        return NotFound(f"no key {key!r} in {self.url}")
