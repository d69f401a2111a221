"""A text of 10 GB that takes a few megabytes, and what an operation on it fetches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from typing import Any

from engine.counted import wait_until_idle

from monocontext import Monocontext
from monocontext.testing import CountingStore
from tests.virtual import virtual_context

FRAMES = 40_960
FRAME_BYTES = 256 << 10
LINES = [f"2026-03-{day:02} INFO host-{day} served in {day * 7} ms\tok\n" for day in range(1, 29)]


def _frame(first: str = "", last: str = "") -> str:
    """A frame of lines, with its beginning and end as given."""
    lines = "".join(islice(cycle(LINES), FRAME_BYTES // 35))
    return first + lines[: FRAME_BYTES - len(first) - len(last)] + last


PLANTED = {
    0: _frame(first="  \n# Log of 2026\n"),
    30: _frame(first="NEEDLE one\n"),
    FRAMES - 40: _frame(first="NEEDLE two\n"),
    FRAMES - 1: _frame(last="\nthe end\n \n"),
}
MIB = 1 << 20


@cache
def _store() -> Any:
    return virtual_context(FRAMES, _frame(), PLANTED)


@dataclass
class Cost:
    """What one operation fetched of the text itself; pages of the index are not counted."""

    result: Any
    gets: int
    """GETs of segments."""
    bytes_read: int
    """Of segments, ahead of need too."""


class Big:
    """The text, opened over a counting store with every option at its default."""

    def __init__(self) -> None:
        self.store = CountingStore(_store())
        self.context = Monocontext.open(self.store)

    def cost(self, operation: Callable[[Any], Any]) -> Cost:
        """Of an operation on the text as if nothing had been read."""
        self.context.close()
        self.context = Monocontext.open(self.store)
        self.store.reset()
        result = operation(self.context)
        wait_until_idle(self.context)
        requests = [request for request in self.store.log if request.key.startswith("segments/")]
        return Cost(result, len(requests), sum(request.length or 0 for request in requests))
