"""The exact gates: what must hold on the virtual clock on any machine."""

from __future__ import annotations

import pytest

from benchmarks.virtual import suite
from benchmarks.virtual.suite import Plan, judge
from benchmarks.virtual.workers import Distance, LinkedWorkers
from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.testing import CountingStore


@pytest.mark.slow
def test_every_gate_holds() -> None:
    """At 0.2 GB; smaller texts are made whole by `splitlines()`, and denser than a filter can narrow.

    Over ten seeds: in few a single answer that is late decides, and one row of a filter more draws all anew.
    """
    plan = Plan(seeds=10)
    gates = judge(suite.run(plan))
    assert len(gates) > 20
    assert [str(gate) for gate in gates if not gate.holds] == []


@pytest.mark.usefixtures("stores_are_measured")
def test_fifty_segments_in_parallel_are_thirty_times_as_fast_as_one_after_another() -> None:
    size, count = 100_000, 50
    text = "".join(f"{number:099d}\n" for number in range(size * count // 100))
    store = CountingStore(open_store("memory://fifty-segments"))
    publish(text, store, frame_bytes=size, segment_bytes=size, codec="raw", replace=True)
    workers = LinkedWorkers(Distance("const_150", 600e6), seed=0)
    context = Monocontext.open(store, workers=workers, prefetch="off")
    began, before = workers.now(), store.gets
    assert context[:] == text
    assert store.gets - before == count
    assert count * (0.15 + size / 90e6) / (workers.now() - began) >= 30
