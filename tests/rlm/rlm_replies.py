"""What models say in many tests, what answers code, and a lazy text."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from monocontext.text import lazy_kinds
from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage

ASK = [{"role": "user", "content": "hi"}]


def repl(code: str) -> str:
    return f"```repl\n{code}\n```"


def calls(script: Any = str.upper) -> SubCalls:
    return SubCalls(ScriptedLM(script), Usage())


@contextmanager
def serving(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class LazyText(lazy_kinds.LazyContext, lazy_kinds.LazyText):
    """A lazy context: counts what is read of it, and refuses to become a str."""

    url = "memory://double"
    is_large = True

    def __init__(self, text: str) -> None:
        self._text = text
        ahead = SimpleNamespace(gets=0, bytes_fetched=0)
        self.stats: Any = SimpleNamespace(gets=1, bytes_fetched=100, hits=0, wait_seconds=0.5, prefetch=ahead)
        self.events: list[str] = []
        self.hinted = ""

    def __len__(self) -> int:
        return len(self._text)

    def __getitem__(self, key: Any) -> str:
        self.stats.gets += 1
        self.stats.bytes_fetched += 10
        self.stats.wait_seconds += 0.25
        return self._text[key]

    @property
    def lines(self) -> list[str]:
        return self._text.splitlines(keepends=True)

    def __str__(self) -> str:
        raise MemoryError("too large: write context[a:b]")

    __format__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<LazyText {len(self)} chars>"

    def __reduce__(self) -> Any:
        raise TypeError("handed over by reference, never serialised")

    @contextmanager
    def thinking(self) -> Iterator[None]:
        self.events.append("think")
        try:
            yield
        finally:
            self.events.append("thought")

    def hint(self, delta: str) -> None:
        self.events.append("hint")
        self.hinted += delta

    def repl_namespace(self) -> Any:
        is_text = lambda value: value is self or type(value) is str  # noqa: E731 - a name for the namespace
        return SimpleNamespace(names={"magic": 7, "open": lambda *args: "shimmed open", "is_text": is_text})

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        return 0, []

    handed_since = reads_since
