"""`python -m benchmarks rollouts` and `batch`: small runs, whose counts are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks import batch, rollouts
from monocontext import Monocontext, publish
from rlm.runners.template import warm_workers


def test_rollouts_over_one_text_read_it_once(tmp_path: Path) -> None:
    text = rollouts.make_text(6, 3_000_000)
    publish(text, tmp_path / "text")
    with warm_workers(), Monocontext.open(tmp_path / "text") as context:
        assert rollouts.measure(6, context)["memory_bytes"] > 0
        assert context.stats.bytes_fetched < len(text)
        assert rollouts.measure(6, text)["memory_bytes"] > 6 * len(text)


def test_memory_of_children_counts() -> None:
    before = rollouts.memory_bytes()
    code = "held = b'x' * 50_000_000\nprint(len(held), flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        assert rollouts.memory_bytes() - before > 50_000_000
        child.stdin.close()


def test_a_small_batch_against_the_stand_in() -> None:
    found = batch.measure(batch.Plan(questions=6, slots=4, seconds=0.01, runner="local"))
    assert found["allowed_per_second"] == 200
    assert 0 < found["share"] <= 1
    assert found["own_ms"] > 0
