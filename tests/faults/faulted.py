"""A context behind a stand-in that errs, what is done with it, and what came of it: the right text, or which error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from monocontext import Monocontext, publish, regex
from monocontext.errors import MonocontextError
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import S3StandIn

NEEDLE = "ταχιά needle 417"
_PLAIN = "".join(
    f"line {number} of é漢😀 {number * 7919 % 100_003:x}\r\n" if number % 3 else f"plain {number * 104_729 % 99_991}\n"
    for number in range(60_000)
)
TEXT = _PLAIN[:900_000] + NEEDLE + _PLAIN[900_000:]
PATTERN = r"needle (\d+) ?\w*"
Operation = Callable[[Any], Any]
"""From a context, or from the `str` that it stands for, to a result that can be compared."""
WHERE = ("*/segments/*", "*/filters/*")
"""What is read after a context was opened."""


def _lines(text: Any) -> list[str]:
    lines = text.splitlines(keepends=True) if isinstance(text, str) else text.lines
    return [lines[0], lines[50_001], "".join(lines[12_345:12_360])]


OPERATIONS: dict[str, Operation] = {
    "slice": lambda text: text[256_789:956_789],
    "scan": lambda text: text if isinstance(text, str) else "".join(text.chunks(50_000)),
    "find": lambda text: text.find(NEEDLE, 1000),
    "count": lambda text: text.count("needle"),
    "regex": lambda text: [result.span(1) for result in regex.finditer(PATTERN, text)],
    "lines": _lines,
}


@cache
def objects() -> dict[str, bytes]:
    """The context's objects by key, as a bucket holds them."""
    store = MemoryStore("faulted-template", "ctx")
    publish(TEXT, store, codec="raw", frame_bytes=16 << 10, segment_bytes=640 << 10)
    result = {f"ctx/{info.key}": store.get(info.key).data for info in store.list()}
    forget("faulted-template")
    return result


def serve(**distance: Any) -> S3StandIn:
    """A server of its own, with the context at `ctx`."""
    return S3StandIn(objects(), **distance)


def opened(server: S3StandIn, **options: Any) -> Monocontext:
    context = Monocontext.open(server.url("ctx"), endpoint=server.endpoint, **options)
    assert isinstance(context, Monocontext)
    return context


@dataclass(slots=True)
class Outcome:
    """What came of something that was tried."""

    kind: str = "hang"
    """`right`, `WRONG TEXT`, `hang`, or the name of the error."""
    seconds: float = 0.0
    error: BaseException | None = field(default=None, repr=False)

    @property
    def is_error_of_ours(self) -> bool:
        return isinstance(self.error, MonocontextError)


def attempt(work: Callable[[], Any], expected: Any, deadline_seconds: float) -> Outcome:
    """Do some work in a thread that is left behind if it does not end in time."""
    outcome = Outcome()

    def run() -> None:
        try:
            outcome.kind = "right" if work() == expected else "WRONG TEXT"
        except BaseException as error:
            outcome.kind, outcome.error = type(error).__name__, error

    thread = threading.Thread(target=run, daemon=True)
    began = time.monotonic()
    thread.start()
    thread.join(deadline_seconds)
    seconds = time.monotonic() - began
    return Outcome("hang", seconds) if thread.is_alive() else replace(outcome, seconds=seconds)
