"""Run all questions on all arms at all sizes, up to a cap on dollars, and write the report.

OUT/runs.jsonl has the plan in its first line, then a line for each run. The same command continues after a kill.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.options import head_line, machine_line, row_line
from benchmarks.quality import arms
from benchmarks.quality.families import FAMILIES, make_oracle, make_questions
from benchmarks.quality.haystack import Sources, prepare
from benchmarks.quality.questions import Question, score
from monocontext import Monocontext
from rlm import RLM
from rlm.calls.usage import cost_of
from rlm.models.lm import LM, Reply

ORACLE = "oracle"  # the name of the scripted model, which needs no key
CHANGEABLE_FIELDS = ("max_dollars", "arms", "sizes_bytes", "runner")  # in which plans in one folder may differ
Row = dict[str, Any]  # a line of OUT/runs.jsonl: what was asked, and the fields of `arms.Run`


class BadPlan(ValueError):
    """A plan cannot be run; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The models, arms and questions to run."""

    model: str = ORACLE
    base_url: str | None = None
    arms: tuple[str, ...] = tuple(arms.ARMS)
    sizes_bytes: tuple[int, ...] = (1_000_000,)
    families: tuple[str, ...] = tuple(FAMILIES)
    questions_per_family: int = 6
    seed: int = 0
    max_dollars: float | None = None  # the cap on the cost of all runs in the folder
    max_iterations: int = 12
    window_tokens: int = 128_000
    runner: str = "subprocess"


class Job(NamedTuple):
    """A run to make: one question on one arm, over a haystack of one size."""

    size_bytes: int
    arm: str
    question: Question


def run(
    plan: Plan, out: Path, say: Callable[[str], object] = print, sources: Sources | None = None
) -> tuple[list[Row], int]:
    """Make the runs that the folder `out` lacks. Returns all rows, and how many runs the cap on dollars left out.

    `sources`: what haystacks are made of. Raises `BadPlan`.
    """
    _check(plan)
    rows = _read_or_begin(plan, out)
    questions = make_questions(plan.families, plan.questions_per_family, plan.seed)
    jobs, left_out = _jobs_to_do(plan, questions, rows), 0
    for size, arm in product(plan.sizes_bytes, plan.arms):
        if arms.is_left_out(arm, size):
            say(f"{size:,} {arm}: left out, since the text is larger than {arms.STR_BYTES:,} bytes")
    say(f"runs to make: {len(jobs)}")
    with _model(plan, questions) as lm, (out / "runs.jsonl").open("a") as file:
        for job in jobs:
            spent = sum(row["dollars"] or 0.0 for row in rows)
            dollars = None if plan.max_dollars is None else plan.max_dollars - spent
            if dollars is not None and dollars <= 0:
                left_out += 1
                continue
            location = prepare(out / "texts", job.size_bytes, questions, sources or Sources())
            row = {"size_bytes": job.size_bytes, "arm": job.arm, **_ask(plan, job, location, lm, dollars)}
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            verdict = "right" if row["right"] else "wrong"
            say(f"{job.size_bytes:,} {job.arm} {job.question.id}: {verdict}, {row['reason']}")
    return rows, left_out


def _jobs_to_do(plan: Plan, questions: Sequence[Question], rows: Sequence[Row]) -> list[Job]:
    """The runs that have no row yet, except those over a text that is too large for their arm."""
    done = {(row["size_bytes"], row["arm"], row["question"]) for row in rows}
    return [
        Job(size, arm, question)
        for size, question, arm in product(plan.sizes_bytes, questions, plan.arms)
        if (size, arm, question.id) not in done and not arms.is_left_out(arm, size)
    ]


def _ask(plan: Plan, job: Job, location: Path, lm: LM, dollars: float | None) -> Row:
    """Ask the question of a job, for at most `dollars`. Returns the question, its score and the run, for a row."""

    def make_rlm(dollars: float | None) -> RLM:
        return RLM(lm=lm, max_dollars=dollars, max_iterations=plan.max_iterations, runner=plan.runner)

    question = job.question
    with Monocontext.open(location, materialize_limit=1 << 40) as context:  # a new one has no cache of another run
        text = str(context) if job.arm == arms.IN_MEMORY else None
        outcome = arms.answer(job.arm, question, arms.Setting(make_rlm, context, text, plan.window_tokens), dollars)
    points = score(question, outcome.answer)
    asked = {"question": question.id, "family": question.family, "query": question.query, "expected": question.answer}
    return {**asked, "score": points, "right": points == 1.0, **asdict(outcome)}


def report(rows: Sequence[Row], left_out: int = 0) -> str:
    """The tables of these runs in Markdown."""
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["size_bytes"], row["arm"])):
        groups.setdefault(f"{row['arm']}, {row['size_bytes'] / 1e6:g} MB", []).append(row)
    names = sorted({row["family"] for row in rows})
    lines = [head_line("arm, size", "right", "turns", "tokens", "dollars in all", "seconds", "MB read", *names)]
    for name, group in groups.items():
        costs = [row["dollars"] for row in group]
        read = [row["bytes_read"] for row in group if row["bytes_read"] is not None]
        right = {family: [row["right"] for row in group if row["family"] == family] for family in names}
        lines.append(row_line(
            name,
            share(sum(row["right"] for row in group), len(group)),
            f"{median(row['turns'] for row in group):g}",
            f"{median(row['tokens'] for row in group):,.0f}",
            "-" if None in costs else f"{sum(costs):.4f}",
            f"{median(row['seconds'] for row in group):.2f}",
            f"{median(read) / 1e6:.2f}" if read else "-",
            *(share(sum(results), len(results)) for results in right.values()),
        ))  # fmt: skip
    if left_out:
        lines.append(f"\nRuns left out by the cap on dollars: {left_out}. Raise --max-dollars to make them.")
    return "\n".join(lines) + "\n"


def share(right: int, total: int) -> str:
    """`17 of 20 (85 %)`, without the percentage for less than 10."""
    return f"{right} of {total}" + (f" ({100 * right / total:.0f} %)" if total >= 10 else "")


@contextmanager
def _model(plan: Plan, questions: Sequence[Question]) -> Iterator[LM]:
    """The model that the plan names."""
    if plan.model == ORACLE:
        yield make_oracle(questions)
    else:
        with RLM(plan.model, base_url=plan.base_url, sampling={"temperature": 0}) as rlm:
            yield rlm.lms[0]


def _check(plan: Plan) -> None:
    """Raise `BadPlan` for an unknown name, or a cap on dollars that would have no effect."""
    for kind, named, known in (("arm", plan.arms, arms.ARMS), ("family", plan.families, FAMILIES)):
        if unknown := [name for name in named if name not in known]:
            raise BadPlan(f"no {kind} {unknown[0]!r}: choose from {', '.join(known)}")
    if plan.max_dollars is not None and plan.model != ORACLE and not plan.base_url:
        name = plan.model.partition(":")[2] or plan.model  # without its provider
        if cost_of(Reply("", 1, 1, name), {}) is None:
            raise BadPlan(f"no price is known for {plan.model}, so --max-dollars has no effect: leave it out")


def _read_or_begin(plan: Plan, out: Path) -> list[Row]:
    """The rows in the folder `out`, which gets the plan if it is new. Raises `BadPlan` if it holds another plan."""
    path, new_plan = out / "runs.jsonl", json.loads(json.dumps(asdict(plan)))
    data = path.read_bytes() if path.exists() else b""
    whole_bytes = data.rfind(b"\n") + 1  # a kill may have cut the last line
    if not whole_bytes:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": machine_line(), "plan": new_plan}) + "\n")
        return []
    os.truncate(path, whole_bytes)  # in place, so that a kill loses no run
    first_line, *rows = map(json.loads, data[:whole_bytes].splitlines())
    stored = first_line["plan"]
    if differing := [name for name in new_plan if name not in CHANGEABLE_FIELDS and new_plan[name] != stored.get(name)]:
        name = differing[0]
        raise BadPlan(f"{out} holds runs of another plan, whose {name} is {stored.get(name)!r}: give another --out")
    return rows
