"""Thoughts, hints, reads and time in any order: equal to the `str`, and the books balance at every step."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from monocontext.engine.fetch.requests import Priority
from monocontext.engine.fetch.workers import MAX_RUNNING
from tests.budget import examples

from .model import CHARACTERS, FRAME, LINE, Model, text

places = st.integers(0, CHARACTERS - 1)
widths = st.sampled_from([1, 300, FRAME, 5 * FRAME, 40 * FRAME])


class AnyOrder(RuleBasedStateMachine):
    model: Model

    @initialize(mode=st.sampled_from(["all", "code", "history"]), frames=st.sampled_from([0, 12, 100, 1000]))
    def open(self, mode: str, frames: int) -> None:
        self.model = Model(mode, cache_bytes=frames * FRAME)
        self.held: list[Any] = []

    @rule(start=places, width=widths)
    def read(self, start: int, width: int) -> None:
        assert self.model.context[start : start + width] == text()[start : start + width]

    @rule(
        start=places, width=st.sampled_from([300, 3 * FRAME]), step=st.sampled_from([1, -1, 3]), count=st.integers(2, 8)
    )
    def walk(self, start: int, width: int, step: int, count: int) -> None:
        for k in range(count):
            at = max(start + k * step * width, 0)
            assert self.model.context[at : at + width] == text()[at : at + width]

    @rule(line=st.integers(0, CHARACTERS // LINE - 1), backward=st.booleans())
    def find(self, line: int, backward: bool) -> None:
        needle = f"line {line:08d} "
        found = self.model.context.rfind(needle) if backward else self.model.context.find(needle)
        assert found == line * LINE

    @rule(start=places, width=widths, kind=st.integers(0, 4))
    def hint(self, start: int, width: int, kind: int) -> None:
        code = [
            f"context[{start}:{start + width}]",
            f"for at in range({start}, len(context), {width + 1}):\n    context[at : at + {width + 1}]",
            f"context.find('line {start % 1000:08d}')",
            "[line for line in context.splitlines() if 'end' in line]",
            "import re\nre.findall(r'line 0000\\d+ of', context)",
        ][kind]
        self.model.context.hint(f"Now:\n```repl\n{code}\n```\n")

    @rule(pairs=st.lists(st.tuples(places, widths), max_size=5))
    def prefetch(self, pairs: list[tuple[int, int]]) -> None:
        self.model.context.prefetch([(start, start + width) for start, width in pairs])

    @rule()
    def think(self) -> None:
        held = self.model.context.thinking()
        held.__enter__()
        self.held.append(held)

    @rule()
    def stop_thinking(self) -> None:
        if self.held:
            self.held.pop().__exit__(None, None, None)

    @rule(seconds=st.sampled_from([0.01, 0.2, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self.model.workers.pass_time(seconds)

    @invariant()
    def books_balance(self) -> None:
        if not hasattr(self, "model"):
            return
        ahead, cache, fetcher = self.model.reader.ahead, self.model.reader.cache, self.model.reader.fetcher
        size_bytes = sum(kept.size_bytes for kept in (cache._used | cache._expected).values())
        assert cache.used_bytes == size_bytes <= cache.capacity_bytes
        assert not set(cache._used) & set(cache._expected)
        assert cache.expected_bytes <= max(ahead._guessed_bytes, ahead._announced_bytes)
        assert sum(request.priority > Priority.DEMAND for request in fetcher._running) <= MAX_RUNNING // 2

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.model.workers.pass_time(60)
            assert "0 running, 0 queued" in repr(self.model.reader.fetcher)
            assert str(self.model.context) == text()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=examples(40), stateful_step_count=20)
