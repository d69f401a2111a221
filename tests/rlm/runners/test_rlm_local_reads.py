"""The local runner over a stored text: a cell whose time is up in the middle of a read costs the next cell nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from monocontext import Monocontext, publish
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import SlowStore
from rlm.runners.local import LocalRunner

TEXT = "".join(f"line {number}\n" for number in range(20_000))


@pytest.mark.slow
def test_cells_after_one_whose_time_was_up_in_a_read(runner_of: Callable[..., LocalRunner]) -> None:
    store = MemoryStore("local-reads", "ctx")
    publish(TEXT, store, codec="raw", frame_bytes=2_000, segment_bytes=8_000)
    try:
        with Monocontext.open(SlowStore(store, 0.001), cache_bytes=20_000) as context:
            runner = runner_of(context, cell_timeout=0.2)
            for _ in range(5):
                stopped = runner.run(
                    "while True:\n    for piece in context.chunks(5_000): pass\n    context.find('nothing')"
                )
                assert "CellTimeout" in stopped.stderr
                assert runner.run("context[50_000:50_010]").stdout == repr(TEXT[50_000:50_010]) + "\n"
    finally:
        forget("local-reads")
