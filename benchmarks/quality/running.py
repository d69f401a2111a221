"""Run all questions on all arms at all sizes: an estimate first, a cap on dollars, a JSON file for each run.

OUT/<bytes>/<arm>/<question>.json holds a run, written whole or not at all. What is there is not asked again, so the
same command goes on after a kill; OUT/plan.json keeps another command from mixing its results in.
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
from benchmarks.quality.haystack import Sources, prepare, read_whole
from benchmarks.quality.oracle import make_oracle
from benchmarks.quality.questions import Question, is_right, score
from monocontext import Monocontext
from rlm import RLM
from rlm.calls.prices import dollars as price
from rlm.models.lm import LM, Reply
from rlm.runners.template import warm_workers

ORACLE = "oracle"
_OUTPUT_TOKENS, _TURN_TOKENS, _TURNS = 400, 2_500, 6
"""Guesses for the estimate: of a reply, of a prompt of the loop, turns of a run."""


class BadPlan(ValueError):
    """A plan that cannot be carried out; one line."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    model: str = ORACLE
    base_url: str | None = None
    arms: tuple[str, ...] = tuple(arms.ARMS)
    sizes_bytes: tuple[int, ...] = (1_000_000,)
    families: tuple[str, ...] = tuple(families.FAMILIES)
    each: int = 6
    """Questions of each family."""
    seed: int = 0
    max_dollars: float | None = None
    """Over all runs in the folder."""
    max_iterations: int = 12
    window_tokens: int = 128_000
    runner: str = "subprocess"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the folder holds in the end."""

    rows: list[dict[str, Any]]
    left_out: list[str]
    """Arms that copy their text, at sizes where that is too large."""
    unasked: int
    """Runs that the cap left."""


def run(plan: Plan, out: Path, told: Callable[[str], object] = print, sources: Sources | None = None) -> Outcome:
    """Carry out what the folder lacks. Raises BadPlan."""
    _check(plan)
    sources = sources or Sources()
    questions = families.make(plan.families, plan.each, plan.seed, sources)
    _claim(plan, out)
    pairs = [(size, arm) for size in plan.sizes_bytes for arm in plan.arms]
    left_out = [f"{arm} at {size:,} bytes" for size, arm in pairs if arms.is_left_out(arm, size)]
    asked = [(size, arm) for size, arm in pairs if not arms.is_left_out(arm, size)]
    told(estimate(plan, asked, len(questions)))
    unasked = 0
    with _model(plan, questions) as lm, warm_workers():
        for size in plan.sizes_bytes:
            waiting = [
                (arm, question)
                for question in questions
                for of, arm in asked
                if of == size and not _path(out, size, arm, question).exists()
            ]
            if waiting:
                unasked += _run_size(
                    plan, out, size, prepare(out / "texts", size, questions, sources), waiting, lm, told
                )
    return Outcome(read_rows(out), left_out, unasked)


def estimate(plan: Plan, asked: Sequence[tuple[int, str]], questions: int) -> str:
    """A line on what the runs may cost; guesses for the loops, the text's size for the prompts."""
    into = out = 0
    for size, arm in asked:
        whole = int(min(0.8 * plan.window_tokens, size / 4))
        into += questions * {"prompt": whole, "search": min(whole, 6_000)}.get(arm, _TURNS * _TURN_TOKENS)
        out += questions * _OUTPUT_TOKENS * (1 if arm in ("prompt", "search") else _TURNS)
    cost = _price(plan, into, out)
    said = "no price is known for this model" if cost is None else f"about ${cost:.2f}"
    cap = "no cap" if plan.max_dollars is None else f"a cap of ${plan.max_dollars:.2f}"
    return f"{len(asked) * questions} runs, about {into:,} tokens in and {out:,} out: {said}, {cap}"


def read_rows(out: Path) -> list[dict[str, Any]]:
    """The runs of a folder, by size, arm and question."""
    rows = [json.loads(path.read_text()) for path in sorted(out.glob("[0-9]*/*/*.json"))]
    return sorted(rows, key=lambda row: (row["size_bytes"], row["arm"]))


def _run_size(
    plan: Plan,
    out: Path,
    size: int,
    place: Path,
    waiting: Sequence[tuple[str, Question]],
    lm: LM,
    told: Callable[[str], object],
) -> int:
    """Ask what is waiting; how many the cap left."""
    text = read_whole(place) if any(arm == arms.IN_MEMORY for arm, _ in waiting) else None

    def make_rlm(dollars: float | None, **options: Any) -> RLM:
        return RLM(lm=lm, max_dollars=dollars, max_iterations=plan.max_iterations, runner=plan.runner, **options)

    for done, (arm, question) in enumerate(waiting):
        spent = sum(row["dollars"] or 0.0 for row in read_rows(out)) if plan.max_dollars is not None else 0.0
        left = None if plan.max_dollars is None else plan.max_dollars - spent
        if left is not None and left <= 0:
            told(
                f"the cap of ${plan.max_dollars:.2f} is reached: {len(waiting) - done} runs of {size:,} bytes are left"
            )
            return len(waiting) - done
        with Monocontext.open(place) as context:  # anew, so that no run finds what another has read
            run = arms.answer(arm, question, arms.Setting(make_rlm, context, text, plan.window_tokens), left)
        about = {"size_bytes": size, "arm": arm, "question": question.id, "family": question.family,
                 "query": question.query, "expected": question.answer}  # fmt: skip
        judged = {"score": score(question, run.answer), "right": is_right(question, run.answer)}
        _write(_path(out, size, arm, question), {**about, **judged, **asdict(run)})
        told(f"{size:,} {arm} {question.id}: {'right' if judged['right'] else 'wrong'}, {run.reason}")
    return 0


@contextmanager
def _model(plan: Plan, questions: Sequence[Question]) -> Iterator[LM]:
    if plan.model == ORACLE:
        yield make_oracle(questions)
    else:
        with RLM(plan.model, base_url=plan.base_url, sampling={"temperature": 0}) as rlm:
            yield rlm._setup.root


def _check(plan: Plan) -> None:
    for kind, given, known in (("arm", plan.arms, arms.ARMS), ("family", plan.families, families.FAMILIES)):
        if unknown := [name for name in given if name not in known]:
            raise BadPlan(f"no {kind} is called {unknown[0]!r}; there are {', '.join(known)}")
    is_paid = plan.model != ORACLE and not plan.base_url
    if plan.max_dollars is not None and is_paid and _price(plan, 1, 1) is None:
        raise BadPlan(f"no price is known for {plan.model}: --max-dollars would stop nothing")


def _price(plan: Plan, into: int, out: int) -> float | None:
    """Dollars of so many tokens; the name of a model may have its maker before it."""
    return price(Reply("", into, out, plan.model.partition(":")[2] or plan.model), {})


def _claim(plan: Plan, out: Path) -> None:
    """Write the plan into the folder. Raises BadPlan where another one is there; caps may change."""
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
