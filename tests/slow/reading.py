"""One way of reading a text, in a process with few other modules: `python reading.py JSON` prints its most bytes."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from monocontext import Monocontext
from slow.big_text import ABSENT, BigText, memory_bytes

CACHE_BYTES = 64 << 20


def by_lines(ctx: Monocontext, text: BigText) -> None:
    digest, count = hashlib.sha256(), 0
    for line in ctx.lines:
        digest.update(line.encode())
        count += 1
    assert (digest.hexdigest(), count) == (text.sha256, text.lines)


def by_splitlines(ctx: Monocontext, text: BigText) -> None:
    assert sum(len(line) + 1 for line in ctx.splitlines()) == text.characters


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
    digest = hashlib.sha256()
    for piece in ctx.chunks():
        digest.update(piece.encode())
    assert digest.hexdigest() == text.sha256
    by_slices(ctx, text)
    assert (ctx.find(ABSENT), ctx.rfind(ABSENT), ctx.count(" ["), ABSENT in ctx) == (-1, -1, text.lines, False)


WAYS: dict[str, Callable[[Monocontext, BigText], None]] = {
    "lines": by_lines,
    "splitlines": by_splitlines,
    "all": by_all,
}


def main(url: str, text: str, way: str, options: dict[str, str]) -> None:
    described = BigText.load(Path(text))
    with Monocontext.open(url, cache_bytes=CACHE_BYTES, **options) as ctx:
        assert len(ctx) == described.characters
        WAYS[way](ctx, described)
        print(memory_bytes())


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
