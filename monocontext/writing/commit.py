"""Commit a change of a context as its next generation. All writers use `commit`.

`generations/<N>.json` is written once, create-only: the writer that creates it has committed generation N.
`manifest.json` is a copy of the newest root. It may be older after a crash; the next writer updates it.
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from monocontext.errors import (
    AlreadyExists,
    ContextChanged,
    ContextTooLarge,
    DamagedData,
    MonocontextError,
    NotFound,
    StoreFailure,
    Unsupported,
    UnsupportedFormat,
)
from monocontext.format import directories
from monocontext.format.manifest import (
    MOST_ROOT_BYTES,
    ROOT_KEY,
    Manifest,
    generation_key,
    read_newest,
    read_newest_after,
)
from monocontext.format.refs import id_in
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores import Place, log, open_store_at
from monocontext.stores.protocol import Store, StoreWrapper, innermost, put_own, uniform
from monocontext.writing.pages import named_objects

_T = TypeVar("_T")

ATTEMPTS = 100  # times that a change is made, each time on a newer root because another writer was faster
_COPY_ATTEMPTS = 20  # times that `manifest.json` is read and written
_MOST_REFUSALS = 3  # times that a server may refuse a write although nobody else has written
_LONGEST_PAUSE_SECONDS = 0.2  # writers that lost pause for a random time up to this
_proven: set[str] = set()  # servers that have refused a create-only write over an object, as they must

_Change = Callable[[Manifest | None, "Staged"], Manifest | None]
"""Takes the newest root (None: no context), puts objects, and returns a root that names them (None: no change)."""


def commit(store: Store, change: _Change) -> Manifest | None:
    """Commit the root that `change` makes from the newest one, and return it (the newest if `change` returns None).

    If another writer commits first, or `gc` removes objects of the root, `change` is called again with the newest
    root; `Staged.once` keeps what need not be stored again. At the end, objects that no root names are removed.

    Raises `StoreFailure` after `ATTEMPTS` lost attempts, `Unsupported` for a server that ignores conditions, and
    `ContextChanged` if later roots were removed, so that nobody knows whether the root was committed. Cost: 5
    requests and those of `change`.
    """
    base = read_newest(store)
    staged = Staged(store, base.history.fence if base else 0)
    for attempt in range(ATTEMPTS):
        if attempt:
            staged.begin_again(base, attempt)
        try:
            root = change(base, staged)
            if staged.fenced and root is not None:
                staged.check(root)
        except Exception as error:
            newest = read_newest(store) if base is not None and isinstance(error, NotFound) else None
            others_committed = newest is not None and base is not None and newest.generation > base.generation
            if not others_committed:
                staged.discard(None)
                raise
            base = newest  # the object that `change` missed may have been removed because of this commit
            continue
        if root is None:
            staged.discard(None)
            return base
        root, data = _next_root(staged, root, base)
        winner = _put_root(staged, root, data)
        if winner is None:
            filters = {key for ref in root.filters for key in ref.keys}
            has_unnamed_filters = any(key.startswith("filters/") and key not in filters for key in staged.keys)
            if staged.may_have_unnamed or has_unnamed_filters:
                staged.discard(root)
            return root
        event = "%s: another writer committed generation %d first; starting again from %d"
        log.note(log.INFO, event, store.url, root.generation, winner.generation)
        base = winner
    staged.discard(None)
    newest_number = base.generation if base else 0
    raise StoreFailure(
        f"{store.url}: nothing was changed: other writers committed first {ATTEMPTS} times (the newest generation is "
        f"{newest_number}): try again"
    )


def commit_at(
    url: Place, options: StoreOptions | None, verb: str, change: Callable[[Manifest, Staged], Manifest | None]
) -> Manifest:
    """Open a context and commit a change. Raises `NotFound` if there is none: `no context at <url> to <verb>`."""

    def checked(base: Manifest | None, staged: Staged) -> Manifest | None:
        if base is None:
            raise NotFound(f"no context at {staged.url} to {verb}: `monocontext upload` creates one")
        return change(base, staged)

    with open_store_at(url, options) as store:
        root = commit(store, checked)
    assert root is not None  # `checked` refuses an empty prefix
    return root


class Staged(StoreWrapper):
    """A store that remembers the objects that a writer puts before its commit, while no root names them. `gc` without a
    grace period commits a root as a fence, then removes such objects. A writer finds the fence when it tries again: all
    objects that it put before are `fenced` then, and no root may name them."""

    def __init__(self, store: Store, fence: int):
        super().__init__(store)
        self.keys: set[str] = set()
        self.fenced: set[str] = set()  # the keys among them that `gc` may have removed
        self.may_have_unnamed = False  # set once a writer may have put objects that its final root does not name
        self.fence = fence  # the generation of the newest fence
        self._results: dict[Hashable, tuple[Any, set[str]]] = {}  # of `once`, each with the keys that were put for it

    def once(self, name: Hashable, make: Callable[[], _T], *, repeatable: bool) -> _T:
        """The result of `make`, called now or in an earlier attempt under the same name. If the objects that it put
        have been fenced since, it is called again, or, unless `repeatable`, `AlreadyExists` is raised."""
        if name in self._results:
            result, keys = self._results[name]
            if not keys & self.fenced:
                return cast("_T", result)
            if not repeatable:
                raise self._fence_error()
        before = set(self.keys)
        created = make()
        self._results[name] = created, self.keys - before
        return created

    def begin_again(self, base: Manifest | None, attempt: int) -> None:
        """Pause before another attempt, on the newest root `base`, and fence the keys if there is a new fence."""
        self.may_have_unnamed = True
        time.sleep(uniform(0, min(0.005 * 2**attempt, _LONGEST_PAUSE_SECONDS)))
        fence = base.history.fence if base else 0
        if fence > self.fence:
            self.fenced |= self.keys
        self.fence = fence

    def check(self, root: Manifest) -> None:
        """Raise `AlreadyExists` if a root names a fenced object (1 GET per index page)."""
        if {id_in(key) for key in self.fenced} & named_objects(self, root):
            raise self._fence_error()

    def _fence_error(self) -> AlreadyExists:
        return AlreadyExists(
            f"{self.url}: nothing was changed: `gc` (generation {self.fence}) may have removed objects of this "
            f"write: try again"
        )

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        self.keys.add(key)
        return self.store.put(key, data, if_absent=if_absent, if_match=if_match)

    def discard(self, root: Manifest | None) -> None:
        """Remove the objects that `root` does not name (1 DELETE each, 1 GET per index page), or leave them to `gc`."""
        with suppress(MonocontextError):
            named = named_objects(self.store, root) if root is not None else set()
            for key in sorted(self.keys):
                if id_in(key) not in named:
                    self.store.delete(key)
                    self.keys.remove(key)


def _put_root(staged: Staged, root: Manifest, data: bytes) -> Manifest | None:
    """Write a root, and copy it to `manifest.json`. Returns None if it is committed, else the newest root of others."""
    store, key, etag = staged.store, generation_key(root.generation), None
    for _ in range(_MOST_REFUSALS):
        try:
            etag = put_own(store, key, data)
            break
        except AlreadyExists:
            newest = read_newest(store)
            if newest is not None and newest.generation >= root.generation:
                return newest
    if etag is None:
        staged.discard(None)
        raise Unsupported(
            f"{store.url} was not changed: the server refuses a create-only write (If-None-Match: *) of {key}, "
            f"which does not exist: choose another server"
        )
    server = innermost(store).unproven_server
    if server and server not in _proven:
        _check_conditions(staged, server, key, data)
    try:
        newer = _update_copy(store, data, root.generation)
    except MonocontextError as error:
        # The commit succeeded: an error here would make the caller write twice.
        warnings.warn(
            f"{store.url}: generation {root.generation} is committed, but {ROOT_KEY} could not be updated, so readers "
            f"open an earlier one until the next write: {error}",
            stacklevel=4,
        )
        return None
    if newer is None or newer.write_id == root.write_id:
        return None
    return _withdraw(store, root, etag, newer)


def _withdraw(store: Store, root: Manifest, etag: str, newer: Manifest) -> Manifest | None:
    """Remove a root whose number other writers had passed before it was written, and return the newest root. Returns
    None, and removes nothing, if `newer` descends from the root: then it is committed. Raises `ContextChanged` if the
    history of `newer` is too short to tell."""
    descends: bool | None = False  # None: unknown
    if newer.generation > root.generation:
        descends = newer.history.descends_from(root.generation, root.write_id, newer.generation)
    if descends:
        return None
    with suppress(AlreadyExists, NotFound):
        store.delete(generation_key(root.generation), if_match=etag)  # `gc` removes it too, even if it was committed
    if descends is None:
        raise ContextChanged(
            f"{store.url}: generation {root.generation} was written, but the newest is {newer.generation}, and the "
            f"roots between were removed: check whether the newest text includes the change"
        )
    return read_newest_after(store, newer)


def _next_root(store: Store, root: Manifest, base: Manifest | None) -> tuple[Manifest, bytes]:
    """The root as the generation after `base`, with directories if large, and its JSON. Raises `ContextTooLarge`."""
    root = replace(
        root,
        generation=base.generation + 1 if base else 1,
        write_id=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        history=root.history.after(base.write_id, base.history) if base else root.history,
        extra={},
    )
    root.check()
    data = root.to_bytes()
    if len(data) > directories.MOST_NAMED_BYTES:
        root = directories.use_directories(root, store.put, lambda ref: store.get(ref.key).data)
        data = root.to_bytes()
    if len(data) > MOST_ROOT_BYTES:
        raise ContextTooLarge(
            f"{store.url}: the next root would have {len(data):,} bytes, at most {MOST_ROOT_BYTES:,} are allowed"
        )
    return root, data


def _check_conditions(staged: Staged, server: str, key: str, data: bytes) -> None:
    """Check, once per server, that it refuses to create a root that exists. Raises `Unsupported` if it does not."""
    try:
        staged.store.put(key, data, if_absent=True)
    except AlreadyExists:
        _proven.add(server)
        return
    staged.store.delete(key)
    staged.discard(None)
    raise Unsupported(
        f"{server} ignores conditional writes (If-None-Match: *), so two writers could lose text: {staged.url} was not "
        f"changed: choose another server"
    )


def _update_copy(store: Store, data: bytes, generation: int) -> Manifest | None:
    """Write a root, given as JSON, to `manifest.json`. Returns the root that is there if it is not older; None if it
    was replaced, or has a newer format."""
    refused_etags: list[str | None] = []  # the versions that the server did not replace
    for _ in range(_COPY_ATTEMPTS):
        etag = None
        try:
            blob = store.get(ROOT_KEY, most_bytes=MOST_ROOT_BYTES)
            etag = blob.etag
            current = Manifest.from_bytes(blob.data)
            if current.generation >= generation:
                return current
        except UnsupportedFormat:
            return None
        except NotFound:
            pass
        except DamagedData:
            etag = etag or store.head(ROOT_KEY).etag  # a damaged copy is replaced here
        if etag is not None and refused_etags.count(etag) >= _MOST_REFUSALS:
            raise Unsupported(f"the server refuses to replace its own version {etag} (If-Match): choose another server")
        try:
            put_own(store, ROOT_KEY, data, if_match=etag)
            return None
        except (AlreadyExists, NotFound):
            refused_etags.append(etag)  # another writer replaced the copy, or the server errs
    raise StoreFailure(f"other writers replaced it first {_COPY_ATTEMPTS} times")
