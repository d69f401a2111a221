"""Contexts over a store that counts, and a way to wait until nothing is under way."""

from __future__ import annotations

import time
import uuid
from typing import Any

from monocontext import Monocontext
from monocontext.engine.fetch.workers import LOCK
from monocontext.format.manifest import ROOT_KEY
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore, WrappedStore
from monocontext.writing.publish import publish


def memory() -> MemoryStore:
    """An empty store that nothing else knows."""
    return MemoryStore(uuid.uuid4().hex, "prefix")


class Slim(WrappedStore):
    """Hides the copy of the last page that a root may carry: pages are read from their objects."""

    def get(self, key: str, **limit):  # type: ignore[no-untyped-def]
        import dataclasses

        from monocontext.format.manifest import Manifest

        blob = super().get(key, **limit)
        if key != ROOT_KEY:
            return blob
        root = dataclasses.replace(Manifest.from_bytes(blob.data), last_page=None)
        return dataclasses.replace(blob, data=root.to_bytes())


def stored(
    text: str, *, frame_bytes: int = 100, frames_per_segment: int = 1, codec: str = "raw", filters: bool = False
) -> MemoryStore:
    """A text in frames of exactly `frame_bytes` (where it has no newlines), in segments of so many frames."""
    store = memory()
    segment_bytes = frame_bytes * frames_per_segment
    publish(text, store, frame_bytes=frame_bytes, segment_bytes=segment_bytes, codec=codec, filters=filters)
    return store


def counted(text: str, *, pages: bool = False, options: dict[str, Any] | None = None, **layout: Any) -> Counted:
    """The text, opened over a counting store; `pages` as if the root were too large to carry its last page."""
    store = stored(text, **layout)
    return Counted(Slim(store) if pages else store, options or {})


class Counted:
    """A context and what it asked for since it was opened, or since the last look."""

    def __init__(self, store: Any, options: dict[str, Any]):
        self.store = CountingStore(store)
        self.context = Monocontext.open(self.store, **options)
        self.opening = self.asked()

    def asked(self) -> list[str]:
        """The kinds of objects that were read since the last call, in order: `root`, `page`, `segment`, `filter`."""
        wait_until_idle(self.context)
        kinds = {
            "manifest.json": "root", "index": "page", "segments": "segment", "filters": "filter",
            "generations": "generation",
        }  # fmt: skip
        found = [kinds[request.key.split("/")[0]] for request in self.store.log]
        assert all(request.verb in ("get", "get_range") for request in self.store.log)
        self.store.reset()
        return found

    @property
    def gets(self) -> int:
        """GETs since the last look."""
        return len(self.asked())


def wait_until_idle(context: Monocontext) -> None:
    """Until no request of this context is under way; fails when something is left for good."""
    fetcher = context._reader.fetcher  # type: ignore[union-attr]
    end = time.monotonic() + 60
    while True:
        with LOCK:  # what has landed starts the next before it lets go
            if "0 running, 0 queued" in repr(fetcher):
                return
        assert time.monotonic() < end, f"still under way: {fetcher!r}"
        time.sleep(0.001)
