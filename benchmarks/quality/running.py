"""Run all questions on all arms at all sizes, up to a cap on dollars.

OUT/<bytes>/<arm>/<question>.json holds one run and is written atomically. A run that has its file is not repeated, so
the same command continues after a kill. OUT/plan.json keeps a command with another plan from mixing in its results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.quality import arms, families
from benchmarks.quality.haystack import Sources, prepare
from benchmarks.quality.questions import Question, score
from monocontext import Monocontext
from rlm import RLM
from rlm.calls.prices import dollars as price
from rlm.models.lm import LM, Reply

ORACLE = "oracle"


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
    each: int = 6
    """Questions of each family."""
    seed: int = 0
    max_dollars: float | None = None
    """The cap on the cost of all runs in the folder."""
    max_iterations: int = 12
    window_tokens: int = 128_000
    runner: str = "subprocess"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The content of the folder after a run."""

    rows: list[dict[str, Any]]
    left_out: list[str]
    """Arms that cannot hold the text in memory, with the size."""
    unasked: int
    """Runs that the cap prevented."""


def run(plan: Plan, out: Path, say: Callable[[str], object] = print, sources: Sources | None = None) -> Outcome:
    """Carry out the runs that the folder lacks. Raises `BadPlan`."""
    _check(plan)
    sources = sources or Sources()
    questions = families.make(plan.families, plan.each, plan.seed, sources)
    _claim(plan, out)
    pairs = [(size, arm) for size in plan.sizes_bytes for arm in plan.arms]
    left_out = [f"{arm} at {size:,} bytes" for size, arm in pairs if arms.is_left_out(arm, size)]
    asked = [(size, arm) for size, arm in pairs if not arms.is_left_out(arm, size)]
    say(f"{len(asked) * len(questions)} runs")
    unasked = 0
    with _model(plan, questions) as lm:
        for size in plan.sizes_bytes:
            waiting = [
                (arm, question)
                for question in questions
                for of, arm in asked
                if of == size and not _path(out, size, arm, question).exists()
            ]
            if waiting:
                place = prepare(out / "texts", size, questions, sources)
                unasked += _run_size(plan, out, size, place, waiting, lm, say)
    return Outcome(read_rows(out), left_out, unasked)


def read_rows(out: Path) -> list[dict[str, Any]]:
    """The runs in a folder, by size, arm and question."""
    rows = [json.loads(path.read_text()) for path in sorted(out.glob("[0-9]*/*/*.json"))]
    return sorted(rows, key=lambda row: (row["size_bytes"], row["arm"]))


def _run_size(
    plan: Plan,
    out: Path,
    size: int,
    place: Path,
    waiting: Sequence[tuple[str, Question]],
    lm: LM,
    say: Callable[[str], object],
) -> int:
    """Run the waiting questions; returns the number of runs that the cap prevented."""
    text = None
    if any(arm == arms.IN_MEMORY for arm, _ in waiting):
        with Monocontext.open(place, materialize_limit=1 << 40) as context:
            text = str(context)

    def make_rlm(dollars: float | None, **options: Any) -> RLM:
        return RLM(lm=lm, max_dollars=dollars, max_iterations=plan.max_iterations, runner=plan.runner, **options)

    for done, (arm, question) in enumerate(waiting):
        spent = sum(row["dollars"] or 0.0 for row in read_rows(out)) if plan.max_dollars is not None else 0.0
        left = None if plan.max_dollars is None else plan.max_dollars - spent
        if left is not None and left <= 0:
            say(f"the cap of ${plan.max_dollars:.2f} is reached: {len(waiting) - done} runs of {size:,} bytes are left")
            return len(waiting) - done
        with Monocontext.open(place) as context:  # a new one, so that no run profits from the cache of another
            run = arms.answer(arm, question, arms.Setting(make_rlm, context, text, plan.window_tokens), left)
        about = {"size_bytes": size, "arm": arm, "question": question.id, "family": question.family,
                 "query": question.query, "expected": question.answer}  # fmt: skip
        result = score(question, run.answer)
        is_right = result == 1.0
        _write(_path(out, size, arm, question), {**about, "score": result, "right": is_right, **asdict(run)})
        say(f"{size:,} {arm} {question.id}: {'right' if is_right else 'wrong'}, {run.reason}")
    return 0


@contextmanager
def _model(plan: Plan, questions: Sequence[Question]) -> Iterator[LM]:
    if plan.model == ORACLE:
        yield families.make_oracle(questions)
    else:
        with RLM(plan.model, base_url=plan.base_url, sampling={"temperature": 0}) as rlm:
            yield rlm._setup.root


def _check(plan: Plan) -> None:
    for kind, given, known in (("arm", plan.arms, arms.ARMS), ("family", plan.families, families.FAMILIES)):
        if unknown := [name for name in given if name not in known]:
            raise BadPlan(f"unknown {kind} {unknown[0]!r}; known are {', '.join(known)}")
    is_paid = plan.model != ORACLE and not plan.base_url
    if plan.max_dollars is not None and is_paid and _price(plan, 1, 1) is None:
        raise BadPlan(f"no price is known for {plan.model}, so --max-dollars would have no effect")


def _price(plan: Plan, into: int, out: int) -> float | None:
    """The price of these tokens in dollars. The name of a model may follow a provider and a colon."""
    return price(Reply("", into, out, plan.model.partition(":")[2] or plan.model), {})


def _claim(plan: Plan, out: Path) -> None:
    """Write the plan into the folder. Raises `BadPlan` if it holds another plan; caps may differ."""
    path = out / "plan.json"
    ours = json.loads(json.dumps(asdict(plan)))
    if path.exists():
        theirs = json.loads(path.read_text())["plan"]
        free = ("max_dollars", "arms", "sizes_bytes", "runner")
        if differing := [name for name in ours if name not in free and ours[name] != theirs.get(name)]:
            raise BadPlan(f"{out} holds runs of another plan, whose {differing[0]} is {theirs.get(differing[0])!r}")
        return
    out.mkdir(parents=True, exist_ok=True)
    _write(path, {"machine": describe_machine(), "plan": ours})


def _path(out: Path, size: int, arm: str, question: Question) -> Path:
    return out / str(size) / arm / f"{question.id}.json"


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".draft-{os.getpid()}")
    draft.write_text(json.dumps(value, indent=1) + "\n")
    draft.replace(path)
