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
    ("code", "least_bytes", "most_bytes"),
    [
        (f"at = context.find({RARE!r})\nstart = context.rfind({HEADER!r}, 0, at)", 1, 12 * FRAME_BYTES),
        (f"at = context.find({HEADER!r})", 1, 2 << 20),
        (f"at = context.rfind({HEADER!r})", 1, 2 << 20),
        (f"has = {HEADER!r} in context", 1, 2 << 20),
        (f"import re\nfound = re.search({HEADER!r}, context)", 1, 2 << 20),
        (f"print(context.count({HEADER!r}))", len(TEXT) * 0.9, float("inf")),
    ],
)
def test_a_search_is_read_as_far_as_it_goes(folder: Path, code: str, least_bytes: float, most_bytes: float) -> None:
    store = CountingStore(open_store(folder))
    with Monocontext.open(store) as context:
        with context.thinking():
            context.hint(f"```repl\n{code}\n```\n")
            wait_until_idle(context)
        read = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
        assert least_bytes <= read <= most_bytes
