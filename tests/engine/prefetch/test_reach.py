"""How far a hinted search is read ahead: to every place, to the first, or not at all from where only data says."""

from __future__ import annotations

import builtins
from functools import cache
from pathlib import Path
from random import Random

import pytest

from engine.counted import wait_until_idle
from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from tests.simulated import SimulatedWorkers

FRAME_BYTES = 16 << 10
HEADER = "=== FILE: "
TEXT = "".join(f"{HEADER}{number:06d}.py ===\n{'x = 1 # ' * 64}\n" for number in range(12_000))
RARE = "class TarFile("
TEXT = TEXT[: len(TEXT) // 2] + RARE + TEXT[len(TEXT) // 2 :]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reach") / "context"
    publish(TEXT, path, frame_bytes=FRAME_BYTES, codec="raw")
    return path


@pytest.mark.parametrize(
    ("code", "most_bytes"),
    [
        (f"at = context.find({RARE!r})\nstart = context.rfind({HEADER!r}, 0, at)", 12 * FRAME_BYTES),
        (f"at = context.find({HEADER!r})", 2 << 20),
        (f"at = context.rfind({HEADER!r})", 2 << 20),
        (f"has = {HEADER!r} in context", 2 << 20),
        (f"import re\nfound = re.search({HEADER!r}, context)", 2 << 20),
    ],
)
def test_a_search_that_ends_early_is_not_read_to_the_end(folder: Path, code: str, most_bytes: int) -> None:
    store = CountingStore(open_store(folder))
    with Monocontext.open(store) as context:
        with context.thinking():
            context.hint(f"```repl\n{code}\n```\n")
            wait_until_idle(context)
        read = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
        assert 0 < read <= most_bytes + 4 * FRAME_BYTES  # and the head and the tail


def test_a_search_for_every_place_is_read_to_the_end(folder: Path) -> None:
    store = CountingStore(open_store(folder))
    with Monocontext.open(store) as context:
        with context.thinking():
            context.hint(f"```repl\nprint(context.count({HEADER!r}))\n```\n")
            wait_until_idle(context)
        read = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
        assert read >= len(TEXT) * 0.9


CJK = "".join(map(chr, Random("characters").choices(range(0x4E00, 0x9000), k=4_000_000)))
PLACES = range(200_000, len(CJK), 200_000)
TOWER = "燈塔🗼"
JUMPS = {
    "a window": [
        f"at = context.find({TOWER!r})\n",
        "for i in range(at - 9000, at + 9000, 3000):\n    _ = context[i : i + 3200]\n",
    ],
    "a loop": [
        f"at = -1\nfor _ in range(4):\n    at = context.find({TOWER!r}, at + 1)\n    _ = context[at - 500 : at + 500]\n"
    ],
    "backward": [f"at = context.rfind({TOWER!r})\n_ = context[at - 500 : at + 500]\n"],
    "the first three": [
        f"import re\nhits = []\nfor m in re.finditer({TOWER!r}, context):\n    hits.append(m.start())\n"
        "    if len(hits) == 3:\n        break\n",
        "for h in hits:\n    _ = context[h - 500 : h + 500]\n",
    ],
}


@cache
def jumping(filters: bool) -> MemoryStore:
    """11 MB of Chinese with 19 hits."""
    text, store = list(CJK), MemoryStore(f"jumping {filters}", "text")
    for place in PLACES:
        text[place : place + len(TOWER)] = TOWER
    publish("".join(text), store, codec="raw", filters=filters)
    return store


@pytest.mark.slow
@pytest.mark.parametrize("filters", [True, False])
@pytest.mark.parametrize("name", JUMPS)
def test_a_search_that_jumps_moves_at_most_twice_what_it_uses(name: str, filters: bool) -> None:
    """Beside the head and the tail, which are fetched once. Whole texts were fetched, and 13 % of them used."""
    store = CountingStore(jumping(filters))
    workers = SimulatedWorkers(lambda _: 0.15)
    with Monocontext.open(store, workers=workers) as context:
        kit = context.repl_namespace()
        names = {"context": context, "__builtins__": vars(builtins) | kit.names}
        for code in JUMPS[name]:
            with context.thinking():
                context.hint(f"```repl\n{code}```\n")
                workers.pass_time(1.0)
            exec(compile(code, "<cell>", "exec"), names)
        moved = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
        assert context.stats.bytes_used > 0
        assert moved <= 2 * context.stats.bytes_used + 2 * (256 << 10)
