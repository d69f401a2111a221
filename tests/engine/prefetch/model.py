"""A model that writes code about a context, on a virtual clock: each round trip takes 150 ms, the link 100 MB/s."""

from __future__ import annotations

import builtins
import re
import uuid
from functools import lru_cache
from typing import Any

from monocontext import Monocontext
from monocontext.engine.fetch.requests import FetchRequest
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND, SimulatedLink
from monocontext.writing.publish import publish
from tests.simulated import SimulatedWorkers

FRAME = 16 << 10
LATENCY_SECONDS = 0.15
LINE = 32
CHARACTERS = 8 << 20


@lru_cache
def text() -> str:
    """8 MiB in 512 frames of 16 KiB, each line of 32 characters another one."""
    return "".join(f"line {i:08d} of {i * 7919 % 1000003:07d} -- end\n" for i in range(CHARACTERS // LINE))


@lru_cache
def stored(filters: bool = True) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex, "prefix")
    publish(text(), store, frame_bytes=FRAME, segment_bytes=64 * FRAME, codec="raw", filters=filters)
    return store


class Model:
    """Thinks, writes, and runs what it wrote. `waited` is what its code has waited for storage since it was opened."""

    def __init__(self, prefetch: str, *, filters: bool = True, **options: Any):
        link = SimulatedLink(CONNECTION_BYTES_PER_SECOND, 100e6)

        def seconds(request: FetchRequest) -> float:
            now = self.workers.now()
            return link.arrival(request.stored_bytes, now + LATENCY_SECONDS) - now

        self.workers = SimulatedWorkers(seconds)
        self.store = CountingStore(stored(filters))
        self.context: Monocontext = Monocontext.open(self.store, workers=self.workers, prefetch=prefetch, **options)
        assert len(self.store.log) == 1  # opening reads the root, and nothing else
        self.kit = self.context.repl_namespace()
        known = vars(builtins) | self.kit.names | {"print": lambda *_: None}
        self.names: dict[str, Any] = {"__builtins__": known, "context": self.context, "llm_query": self.ask}
        self._opening = self.context.stats.wait_seconds

    @property
    def reader(self) -> Any:
        return self.context._reader

    @property
    def waited(self) -> float:
        return self.context.stats.wait_seconds - self._opening

    @property
    def gets(self) -> int:
        """All GETs, whoever waited for them."""
        return len(self.store.log)

    @property
    def moved_bytes(self) -> int:
        """Of frames, all of them."""
        return sum(request.length for request in self.store.log if request.key.startswith("segments/"))

    def ask(self, prompt: str, seconds: float = 2.5) -> str:
        with self.context.thinking():
            self.workers.pass_time(seconds)
        return "yes"

    def writes(self, code: str, seconds: float = 3.5, *, runs: bool = True) -> float:
        """Stream a reply with this block; what running it waited, in seconds."""
        reply = f"I will look.\n\n```repl\n{code}\n```\nThat is all."
        tokens = re.findall(r"\w+|\s+|.", reply)
        with self.context.thinking():
            self.workers.pass_time(seconds / 2)
            for token in tokens:
                self.workers.pass_time(seconds / 2 / len(tokens))
                self.context.hint(token)
        return self.runs(code) if runs else 0.0

    def runs(self, code: str) -> float:
        before = self.context.stats.wait_seconds
        exec(compile(code, "<cell>", "exec"), self.names)
        return self.context.stats.wait_seconds - before
