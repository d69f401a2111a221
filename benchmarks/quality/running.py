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
from typing import Any

from benchmarks.options import head_line, machine_line, row_line
from benchmarks.quality import arms, families
from benchmarks.quality.haystack import Sources, prepare
from benchmarks.quality.questions import Question, score
from monocontext import Monocontext
from rlm import RLM
from rlm.calls.usage import cost_of
from rlm.models.lm import LM, Reply

ORACLE = "oracle"
FREE = ("max_dollars", "arms", "sizes_bytes", "runner")  # what another plan in the same folder may change
Row = dict[str, Any]


class BadPlan(ValueError):
    """A plan that cannot be run; the message is one line."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The models, arms and questions to run."""

    model: str = ORACLE
    base_url: str | None = None
    arms: tuple[str, ...] = tuple(arms.ARMS)
    sizes_bytes: tuple[int, ...] = (1_000_000,)
    families: tuple[str, ...] = tuple(families.FAMILIES)
    each: int = 6  # questions of each family
    seed: int = 0
    max_dollars: float | None = None  # the cap on the cost of all runs in the folder
    max_iterations: int = 12
    window_tokens: int = 128_000
    runner: str = "subprocess"


def run(
    plan: Plan, out: Path, say: Callable[[str], object] = print, sources: Sources | None = None
) -> tuple[list[Row], int]:
    """Carry out the runs that the folder lacks; returns the rows of all, and how many the cap prevented.

    Raises `BadPlan`.
    """
    _check(plan)
    rows = _open(plan, out)
    questions = families.make(plan.families, plan.each, plan.seed)
    waiting, unasked = _waiting(plan, questions, rows), 0
    for size, arm in product(plan.sizes_bytes, plan.arms):
        if arms.is_left_out(arm, size):
            say(f"{size:,} {arm}: left out, since the text is larger than {arms.STR_BYTES:,} bytes")
    say(f"{len(waiting)} runs")
    with _model(plan, questions) as lm, (out / "runs.jsonl").open("a") as file:
        for size, arm, question in waiting:
            spent = sum(row["dollars"] or 0.0 for row in rows)
            left = None if plan.max_dollars is None else plan.max_dollars - spent
            if left is not None and left <= 0:
                unasked += 1
                continue
            location = prepare(out / "texts", size, questions, sources or Sources())
            row = {"size_bytes": size, "arm": arm, **_ask(plan, arm, question, location, lm, left)}
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            say(f"{size:,} {arm} {question.id}: {'right' if row['right'] else 'wrong'}, {row['reason']}")
    return rows, unasked


def _waiting(plan: Plan, questions: Sequence[Question], rows: Sequence[Row]) -> list[tuple[int, str, Question]]:
    """The size, the arm and the question of each run that has no row yet."""
    done = {(row["size_bytes"], row["arm"], row["question"]) for row in rows}
    return [
        (size, arm, question)
        for size, question, arm in product(plan.sizes_bytes, questions, plan.arms)
        if (size, arm, question.id) not in done and not arms.is_left_out(arm, size)
    ]


def _ask(plan: Plan, arm: str, question: Question, location: Path, lm: LM, left: float | None) -> Row:
    def make_rlm(dollars: float | None) -> RLM:
        return RLM(lm=lm, max_dollars=dollars, max_iterations=plan.max_iterations, runner=plan.runner)

    with Monocontext.open(location, materialize_limit=1 << 40) as context:  # a new one has no cache of another run
        text = str(context) if arm == arms.IN_MEMORY else None
        done = arms.answer(arm, question, arms.Setting(make_rlm, context, text, plan.window_tokens), left)
    result = score(question, done.answer)
    about = {"question": question.id, "family": question.family, "query": question.query, "expected": question.answer}
    return {**about, "score": result, "right": result == 1.0, **asdict(done)}


def report(rows: Sequence[Row], unasked: int = 0) -> str:
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
    if unasked:
        lines.append(f"\n{unasked} runs are left out: the cap on dollars was reached.")
    return "\n".join(lines) + "\n"


def share(right: int, total: int) -> str:
    """`17 of 20 (85 %)`, without the percentage for less than 10."""
    return f"{right} of {total}" + (f" ({100 * right / total:.0f} %)" if total >= 10 else "")


@contextmanager
def _model(plan: Plan, questions: Sequence[Question]) -> Iterator[LM]:
    if plan.model == ORACLE:
        yield families.make_oracle(questions)
    else:
        with RLM(plan.model, base_url=plan.base_url, sampling={"temperature": 0}) as rlm:
            yield rlm.lms[0]


def _check(plan: Plan) -> None:
    for kind, given, known in (("arm", plan.arms, arms.ARMS), ("family", plan.families, families.FAMILIES)):
        if unknown := [name for name in given if name not in known]:
            raise BadPlan(f"unknown {kind} {unknown[0]!r}; known are {', '.join(known)}")
    if plan.max_dollars is not None and plan.model != ORACLE and not plan.base_url:
        name = plan.model.partition(":")[2] or plan.model  # a provider and a colon may stand before it
        if cost_of(Reply("", 1, 1, name), {}) is None:
            raise BadPlan(f"no price is known for {plan.model}, so --max-dollars would have no effect")


def _open(plan: Plan, out: Path) -> list[Row]:
    """The rows of the folder, which is begun if it is new. Raises `BadPlan` if it holds another plan."""
    path, ours = out / "runs.jsonl", json.loads(json.dumps(asdict(plan)))
    data = path.read_bytes() if path.exists() else b""
    whole_bytes = data.rfind(b"\n") + 1  # a kill may have cut the last line
    if not whole_bytes:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": machine_line(), "plan": ours}) + "\n")
        return []
    os.truncate(path, whole_bytes)  # in place: a kill loses no run
    about, *rows = map(json.loads, data[:whole_bytes].splitlines())
    theirs = about["plan"]
    if differing := [name for name in ours if name not in FREE and ours[name] != theirs.get(name)]:
        raise BadPlan(f"{out} holds runs of another plan, whose {differing[0]} is {theirs.get(differing[0])!r}")
    return rows
