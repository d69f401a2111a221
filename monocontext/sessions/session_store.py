"""Store the sessions of the Claude Agent SDK: an implementation of its `SessionStore`.

    from monocontext.sessions import SessionStore
    options = ClaudeAgentOptions(session_store=SessionStore("s3://team/agents"))

It fits by duck typing: only `fold_session_summary` is imported from the SDK, at the first append. Keys are those of the
SDK's own example (`{prefix}{project_key}/{session_id}[/{subpath}]/part-{ms}-{hex}.jsonl`). Summaries are in another
folder, because that example's `load` concatenates all objects in the folder of the parts.

Entries are stored **without redaction**: a resumed session must find what it wrote.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Unpack, cast

from monocontext.errors import AlreadyExists, DamagedData, InvalidUrl, NotFound, StoreFailure
from monocontext.options import StoreOptions, validate_options
from monocontext.sessions import names
from monocontext.sessions.read_records import read_records
from monocontext.sessions.records import dumps
from monocontext.stores import open_store
from monocontext.stores.protocol import Store, get_bounded, put_own

Key = dict[str, str]
"""`project_key`, `session_id`, and for the stream of a subagent `subpath`."""
Entry = dict[str, Any]
Fold = Callable[[Any, Any, list[Any]], Any]
"""Makes the next summary from the previous one, the key and the new entries."""
_ATTEMPTS = 50
_MOST_SUMMARY_BYTES = 1 << 20
"""The largest summary that is read."""


class SessionStore:
    """The SDK's sessions in a store. Safe for use by many tasks, threads and machines. The costs below are requests to
    the store."""

    @validate_options(StoreOptions)
    def __init__(
        self,
        store: str | os.PathLike[str] | Store,
        *,
        prefix: str = names.SESSIONS,
        fold: Fold | None = None,
        **store_options: Unpack[StoreOptions],
    ) -> None:
        """`fold` makes summaries, by default the SDK's own `fold_session_summary`."""
        self.store = open_store(store, **store_options) if isinstance(store, str | os.PathLike) else store
        self._prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self._fold = fold
        self._last_ms = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<SessionStore {self.store.url}/{self._prefix}>"

    # -- required by the SDK -------------------------------------------------------------------------------------------

    async def append(self, key: Key, entries: list[Entry]) -> None:
        """Add entries at the end (1 PUT, and for a main session 1 GET and 1 PUT of its summary).

        `load` returns entries with the same `uuid` once. Raises `StoreFailure` and its subclasses.
        """
        if not entries:
            return
        at = self._next_ms()  # taken before the thread starts, so that parts sort in the order of the calls
        await asyncio.to_thread(self._append, key, entries, at)

    async def load(self, key: Key) -> list[Entry] | None:
        """All entries in the order in which they were added; None if there are none (1 LIST, 1 GET a part)."""
        return await asyncio.to_thread(self._load, key)

    # -- optional ------------------------------------------------------------------------------------------------------

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """`session_id` and `mtime`, in milliseconds since 1970, of each main session (1 LIST a thousand parts)."""
        return await asyncio.to_thread(self._list_sessions, project_key)

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """`session_id`, `mtime`, `data` of each main session (1 LIST, 1 GET a session)."""
        return await asyncio.to_thread(self._list_summaries, project_key)

    async def list_subkeys(self, key: Key) -> list[str]:
        """Subpaths below a session, such as `subagents/agent-x` (1 LIST)."""
        return await asyncio.to_thread(self._list_subkeys, key)

    async def delete(self, key: Key) -> None:
        """Remove a session and its subagents, or with a `subpath` only that stream (1 LIST, 1 request a part)."""
        await asyncio.to_thread(self._delete, key)

    # -- the same, blocking --------------------------------------------------------------------------------------------

    def _append(self, key: Key, entries: list[Entry], at: int) -> None:
        folder = self._folder(key)
        body = b"\n".join([*(dumps(entry) for entry in entries), b""])
        put_own(self.store, f"{folder}part-{at:013d}-{secrets.token_hex(3)}.jsonl", body)
        if "subpath" not in key:
            self._update_summary(key, entries, at)

    def _update_summary(self, key: Key, entries: list[Entry], at: int) -> None:
        fold = self._fold or _import_fold()
        summary_key = self._summary_key(key["project_key"], key["session_id"])
        for _ in range(_ATTEMPTS):
            before, etag = self._read_summary(summary_key)
            previous = {name: before[name] for name in ("session_id", "mtime", "data")} if before else None
            after = dict(fold(previous, key, entries))
            # The time of the part's name, so that both listings agree; never earlier than another machine's.
            after["mtime"] = max(at, int(before["mtime"]) if before else 0)
            token = {"write_id": secrets.token_hex(8)}  # equal contents would have equal ETags
            try:
                put_own(self.store, summary_key, json.dumps({**after, **token}).encode(), if_match=etag)
                return
            except (AlreadyExists, NotFound):
                continue
        raise StoreFailure(f"{self.store.url}/{summary_key}: others kept writing it, {_ATTEMPTS} times in a row")

    def _read_summary(self, summary_key: str) -> tuple[dict[str, Any] | None, str | None]:
        """A summary and its ETag; None for both if there is none yet."""
        try:
            blob = get_bounded(self.store, summary_key, _MOST_SUMMARY_BYTES)
            return json.loads(blob.data), blob.etag
        except NotFound:
            return None, None
        except ValueError as error:
            raise DamagedData(f"{self.store.url}/{summary_key} is not a summary: {error}") from None

    def _load(self, key: Key) -> list[Entry] | None:
        folder = self._folder(key)
        keys = [info.key for info in self.store.list(folder) if names.is_part(info.key.removeprefix(folder))]
        return read_records(self.store, keys) if keys else None

    def _list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        root = f"{self._prefix}{names.key_part(project_key, 'project key')}/"
        found: dict[str, int] = {}
        for info in self.store.list(root):
            session, _, name = info.key.removeprefix(root).partition("/")
            if names.is_part(name):
                found[session] = max(found.get(session, 0), names.part_ms(name))
        return [{"session_id": names.name_of(session), "mtime": ms} for session, ms in found.items()]

    def _list_summaries(self, project_key: str) -> list[dict[str, Any]]:
        root = f"{names.SUMMARIES}/{self._prefix}{names.key_part(project_key, 'project key')}/"
        found = []
        for info in self.store.list(root):
            summary = json.loads(get_bounded(self.store, info.key, _MOST_SUMMARY_BYTES).data)
            found.append({name: summary[name] for name in ("session_id", "mtime", "data")})
        return found

    def _list_subkeys(self, key: Key) -> list[str]:
        root = self._folder({name: key[name] for name in ("project_key", "session_id")})
        paths = {info.key.removeprefix(root).rpartition("/")[::2] for info in self.store.list(root)}
        found = {path for path, name in paths if path and names.is_part(name)}
        return sorted("/".join(names.name_of(part) for part in path.split("/")) for path in found)

    def _delete(self, key: Key) -> None:
        folder = self._folder(key)
        if "subpath" not in key:
            self.store.delete(self._summary_key(key["project_key"], key["session_id"]))
        for info in list(self.store.list(folder)):
            if "subpath" not in key or names.is_part(info.key.removeprefix(folder)):
                self.store.delete(info.key)

    def _folder(self, key: Key) -> str:
        """The folder of the parts of a key. Raises `InvalidUrl` for a name that is empty or too long."""
        parts = [names.key_part(key["project_key"], "project key"), names.key_part(key["session_id"], "session id")]
        if "subpath" in key:
            if not key["subpath"]:
                raise InvalidUrl("a subpath has at least one character; leave it out for the main session")
            parts += [names.key_part(part, "part of a subpath") for part in key["subpath"].split("/")]
        return f"{self._prefix}{'/'.join(parts)}/"

    def _summary_key(self, project_key: str, session_id: str) -> str:
        project, session = names.key_part(project_key, "project key"), names.key_part(session_id, "session id")
        return f"{names.SUMMARIES}/{self._prefix}{project}/{session}.json"

    def _next_ms(self) -> int:
        with self._lock:
            self._last_ms = max(self._last_ms + 1, time.time_ns() // 1_000_000)
            return self._last_ms


def _import_fold() -> Fold:
    from claude_agent_sdk import fold_session_summary

    return cast(Fold, fold_session_summary)
