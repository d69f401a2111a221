"""A `session_store` for the Claude Agent SDK: sessions in a bucket, an object for each append. See docs/sessions.md.

    options = ClaudeAgentOptions(session_store=BucketSessions("s3://team/agents"))

Entries are stored without redaction: a resumed session must find what it wrote. `make test-sdk` runs the SDK's own
conformance suite over it.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any
from urllib.parse import quote

from monocontext.stores import open_store


class BucketSessions:
    """The methods that the SDK requires, and those that list and delete sessions."""

    def __init__(self, place: Any) -> None:
        self.store = open_store(place) if isinstance(place, str) else place
        self._last = 0

    def _folder(self, key: dict[str, str]) -> str:
        parts = [key["project_key"], key["session_id"], *filter(None, [key.get("subpath")])]
        return "sdk/" + "".join(quote(part, safe="") + "/" for part in parts)

    async def append(self, key: dict[str, str], entries: list[Any]) -> None:
        self._last = max(self._last + 1, time.time_ns() // 1_000_000)
        body = "".join(json.dumps(entry) + "\n" for entry in entries)
        if body:
            self.store.put(f"{self._folder(key)}{self._last:013d}-{secrets.token_hex(3)}.jsonl", body.encode())

    async def load(self, key: dict[str, str]) -> list[Any] | None:
        keys = [info.key for info in self.store.list(self._folder(key)) if info.key.count("/") == len(key) + 1]
        found = {}
        for at, line in enumerate(line for key in sorted(keys) for line in self.store.get(key).data.splitlines()):
            entry = json.loads(line)
            found.setdefault(entry.get("uuid") or at, entry)
        return list(found.values()) if keys else None

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        root, found = f"sdk/{quote(project_key, safe='')}/", dict[str, int]()
        for info in self.store.list(root):
            session, _, name = info.key.removeprefix(root).partition("/")
            if "/" not in name:
                found[session] = int(name[:13])
        return [{"session_id": session, "mtime": ms} for session, ms in found.items()]

    async def delete(self, key: dict[str, str]) -> None:
        for info in list(self.store.list(self._folder(key))):
            self.store.delete(info.key)
