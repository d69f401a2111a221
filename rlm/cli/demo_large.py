"""Ask about a log of 10 GB, the first act of `rlm demo`. The bytes of the log are computed when they are read.

Nothing is uploaded or on the disk: `virtual_context` repeats one frame of log lines, and plants two others. The engine,
the filters and the script's code are real, with the latency of a bucket.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from monocontext import Monocontext
from monocontext.testing import CountingStore, SlowStore, VirtualStore, virtual_context
from rlm.rlm import RLM
from rlm.trajectory.completion import Completion

SIZE_BYTES = 10 * 10**9
SIZE_BYTES_OF_32_BITS = 2 * 10**9
"""The size for a 32-bit Python, whose `len()` is limited to 2 Gi."""
_FRAME_BYTES = 256 << 10
_LINE_BYTES = 128
QUESTION = "The log ends with a FATAL error of a transaction. Which disk had failed in that transaction before?"
DISK = "sdq7"
"""The right answer."""
TURNS = (
    """The last lines say what the transaction is.
```repl
print(f"{len(context):,} characters")
print(context[-300:])
```""",
    """I look for where that transaction stands first.
```repl
at = context.find("txn=ab12cd34")
print(at, context[at - 60:at + 200])
answer["content"] = context[at - 60:at + 200].split("disk ")[1].split()[0]
answer["ready"] = True
```""",
)


class Cost(NamedTuple):
    """The cost of one way to read."""

    way: str
    gets: int
    bytes_read: int
    seconds: float


def large_log(size_bytes: int = SIZE_BYTES) -> VirtualStore:
    """Make a log of about this size. A disk fails after a third of it, and its transaction fails in the last line."""
    dice = Random(4711)
    frames = size_bytes // _FRAME_BYTES
    lines = [_line(dice) for _ in range(_FRAME_BYTES // _LINE_BYTES)]
    failed = _padded("2026-11-22T03:14:15 ERROR host-17 disk sdq7 failed txn=ab12cd34 retrying on a mirror")
    fatal = _padded("2026-11-22T09:26:53 FATAL host-17 giving up on txn=ab12cd34")
    planted = {frames // 3: "".join([*lines[:999], failed, *lines[1000:]]), frames - 1: "".join([*lines[:-1], fatal])}
    return virtual_context(frames, "".join(lines), planted, filters=True, distinct=True)


def ask(rlm: RLM, store: VirtualStore, slow: SlowStore, bytes_per_second: float) -> tuple[Completion, list[Cost]]:
    """Answer the question. Returns the cost too, and the computed cost of a full download, which takes two minutes."""
    counted = CountingStore(slow)
    with Monocontext.open(counted) as context:
        completion = rlm.completion(QUESTION, context)
        lazy = Cost("monocontext", counted.gets, counted.bytes_read, context.stats.wait_seconds)
    sizes = [info.size_bytes for info in store.list("segments/")]
    seconds = sum(sizes) / bytes_per_second
    return completion, [lazy, Cost("a download of everything (computed)", len(sizes), sum(sizes), seconds)]


def _line(dice: Random) -> str:
    clock = f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"
    level = dice.choice(("INFO", "INFO", "DEBUG", "WARN"))
    return _padded(
        f"2026-11-22T{clock} {level} host-{dice.randrange(40)} txn={dice.getrandbits(32):08x} "
        f"served {dice.randrange(10**6)} bytes in {dice.randrange(900)} ms"
    )


def _padded(line: str) -> str:
    return line.ljust(_LINE_BYTES - 1) + "\n"
