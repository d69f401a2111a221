"""Measure how much of an endpoint's throughput a batch of questions gets, and the processor time of a question.

Each question takes two calls and one sandbox. The endpoint answers `slots` calls at once and takes `seconds` for each:
it allows slots / (2 * seconds) questions a second. A client on this machine can keep up as long as that rate times the
processor time of a question stays below the cores that are free. A low share with all questions in flight that may be
is a processor that is short; with fewer in flight the client waits.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.model_endpoint import TURNS, serve_model
from monocontext import Monocontext, publish
from rlm import RLM, OpenAILM
from rlm.batch import Question, run_batch

_TEXT = "some text with a needle\n" * 200_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of whom."""

    questions: int = 1000
    slots: int = 8
    """Calls that the endpoint answers at once."""
    seconds: float = 1.0
    """Of each call."""
    workers: int = 0
    """Processes of a Dask cluster; 0 for this process alone."""
    runner: str = "subprocess"


def main(plan: Plan, path: Path | None) -> None:
    """Run the batch and print its rate beside that of the endpoint."""
    result = measure(plan)
    if path:
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(
        f"{plan.questions} questions, {plan.workers or 'no'} Dask workers: {result['per_second']:.2f} a second, "
        f"{result['share']:.2f} of the {result['allowed_per_second']:.2f} that the endpoint allows; "
        f"{result['in_flight']:.1f} of {2 * plan.slots} in flight; processor time of a question "
        f"{result['own_ms']:.0f} ms here and {result['children_ms']:.0f} ms in processes of its own; "
        f"load {result['load']:.1f}"
    )


def measure(plan: Plan) -> dict[str, Any]:
    """The figures of one batch."""
    allowed = plan.slots / (len(TURNS) * plan.seconds)
    with tempfile.TemporaryDirectory() as folder, serve_model(plan.slots, plan.seconds) as base_url:
        text = Path(folder) / "text"
        publish(_TEXT, text)
        make_rlm, open_context = partial(_make_rlm, base_url, plan.runner), partial(Monocontext.open, text)
        own, children = _processor_ms(resource.RUSAGE_SELF), _processor_ms(resource.RUSAGE_CHILDREN)
        with _executor(plan) as executor:
            warm = [Question(f"warm {i}", "warm", i) for i in range(plan.slots)]
            run_batch(warm, Path(folder) / "warm.jsonl", make_rlm, open_context, executor=executor)
            questions = [Question(str(i), f"what is {i}", i) for i in range(plan.questions)]
            began = time.monotonic()
            result = run_batch(
                questions, Path(folder) / "out.jsonl", make_rlm, open_context,
                at_once=2 * plan.slots, executor=executor,
            )  # fmt: skip
            seconds = time.monotonic() - began
    wrong = [row for row in result.rows if row["answer"] != _TEXT[:4]]
    if wrong or len(result.rows) < plan.questions:
        raise RuntimeError(f"{len(result.rows)} of {plan.questions} answered, {len(wrong)} wrong: {wrong[:1]}")
    asked = plan.questions + plan.slots
    return {
        "benchmark": "batch", "machine": describe_machine(), "plan": asdict(plan), "seconds": seconds,
        "per_second": plan.questions / seconds, "allowed_per_second": allowed,
        "share": plan.questions / seconds / allowed, "load": os.getloadavg()[0],
        "in_flight": sum(row["seconds"] for row in result.rows) / seconds,
        "own_ms": (_processor_ms(resource.RUSAGE_SELF) - own) / asked,
        "children_ms": (_processor_ms(resource.RUSAGE_CHILDREN) - children) / asked,
    }  # fmt: skip


def _make_rlm(base_url: str, runner: str) -> RLM:
    return RLM(lm=OpenAILM("stand-in", base_url=base_url, api_key="none"), runner=runner)


@contextmanager
def _executor(plan: Plan) -> Iterator[Executor | None]:
    if not plan.workers:
        yield None
        return
    import distributed

    threads = -(-2 * plan.slots // plan.workers)
    cluster: Any = distributed.LocalCluster  # has no types
    client: Any = distributed.Client
    with (
        cluster(n_workers=plan.workers, threads_per_worker=threads, dashboard_address="127.0.0.1:0") as made,
        client(made) as c,
    ):
        yield c.get_executor(pure=False)


def _processor_ms(who: int) -> float:
    used = resource.getrusage(who)
    return 1000 * (used.ru_utime + used.ru_stime)
