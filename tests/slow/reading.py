"""One way of reading a context, in a process of its own: `python reading.py JSON` prints what it took as JSON.

Imports nothing of the tests but the text's description, so that the memory measured is that of a plain user of the
package.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from monocontext import Monocontext
from slow.big_text import ABSENT, BigText
from slow.machine import memory_bytes

CACHE_BYTES = 64 << 20


def by_chunks(ctx: Monocontext, text: BigText) -> None:
    digest = hashlib.sha256()
    for piece in ctx.chunks():
        digest.update(piece.encode())
    assert digest.hexdigest() == text.sha256


def by_lines(ctx: Monocontext, text: BigText) -> None:
    digest, count = hashlib.sha256(), 0
    for line in ctx.lines:
        digest.update(line.encode())
        count += 1
    assert (digest.hexdigest(), count) == (text.sha256, text.lines)


def by_splitlines(ctx: Monocontext, text: BigText) -> None:
    assert sum(len(line) + 1 for line in ctx.splitlines()) == text.characters


def by_search(ctx: Monocontext, text: BigText) -> None:
    assert ctx.find(ABSENT) == -1
    assert ctx.rfind(ABSENT) == -1
    assert ctx.count(" [") == text.lines
    assert ABSENT not in ctx


def by_slices(ctx: Monocontext, text: BigText) -> None:
    """1000 slices as models write them, some of a megabyte, compared with the file piece by piece."""
    rng = random.Random(7)
    for number in range(1000):
        size = 1_000_000 if number % 50 == 0 else rng.choice((1, 200, 2_000, 5_000, 100_000))
        start = rng.randrange(text.characters)
        result = ctx[start : start + size]
        assert len(result) == min(size, text.characters - start)
        for offset in range(0, len(result), 100_000):
            piece = result[offset : offset + 100_000]
            assert piece == text.slice(start + offset, start + offset + len(piece))


def by_all(ctx: Monocontext, text: BigText) -> None:
    """One after another in one process: what one way leaves behind adds to what the next takes."""
    by_slices(ctx, text)
    by_chunks(ctx, text)
    by_slices(ctx, text)
    by_search(ctx, text)


WAYS: dict[str, Callable[[Monocontext, BigText], None]] = {
    "lines": by_lines,
    "splitlines": by_splitlines,
    "all": by_all,
}


def main(url: str, text: str, way: str, options: dict[str, str]) -> None:
    described = BigText.load(Path(text))
    before, began = memory_bytes(), time.perf_counter()
    with Monocontext.open(url, cache_bytes=CACHE_BYTES, **options) as ctx:
        assert len(ctx) == described.characters
        WAYS[way](ctx, described)
        took = time.perf_counter() - began
        print(
            json.dumps({"peak_bytes": memory_bytes(), "before_bytes": before, "seconds": took, "gets": ctx.stats.gets})
        )


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
