"""How far a hinted search is read ahead: to every place, to the first, or not at all from where only data says."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.counted import wait_until_idle
from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.testing import CountingStore

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
        assert 0 < read <= most_bytes


def test_a_search_for_every_place_is_read_to_the_end(folder: Path) -> None:
    store = CountingStore(open_store(folder))
    with Monocontext.open(store) as context:
        with context.thinking():
            context.hint(f"```repl\nprint(context.count({HEADER!r}))\n```\n")
            wait_until_idle(context)
        read = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
        assert read >= len(TEXT) * 0.9
