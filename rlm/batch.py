"""Answer many questions over one context, several at once, within one budget; the same call resumes after a kill.

Each finished question appends one line to `OUT`; questions with a line there are done. The folder `OUT.runs` has a lock
against a second batch and, for each question in progress, a trajectory, from which it continues without paying twice,
and a lock: a thread or a worker that has outlived its batch may still answer it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from filelock import FileLock, Timeout

from rlm.calls.budget import Budget
from rlm.calls.usage import Usage
from rlm.errors import RLMError, RunnerUnavailable, TrajectoryError
from rlm.rlm import RLM
from rlm.trajectory.recording import Recording

_SHARED = ("calls", "tokens", "dollars")  # limits that hold over the whole batch; the others hold for each question


class BadQuestions(RLMError, ValueError):
    """A file of questions, or its results, cannot be used as a whole."""


@dataclass(frozen=True, slots=True)
class Question:
    """One line of a file of questions."""

    id: str
    """The id in the file, else the number of the line."""
    query: str
    line: int
    """From 1."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    rows: list[dict[str, Any]]
    """The result of each finished question, in the order of the questions; the budget did not allow the others."""
    spent: dict[str, float]
    """`calls`, `tokens` and known `dollars` of all runs of the batch, earlier ones included."""


def read_questions(path: Path) -> tuple[list[Question], list[str]]:
    """The questions of a file, each line a text or an object with `question` (or `query`) and maybe `id`; and a
    message about each broken line. Raises OSError."""
    results: dict[str, Question] = {}
    broken: list[str] = []
    for number, data in enumerate(path.read_bytes().splitlines(), 1):
        if not data.strip():
            continue
        try:
            question = _parse_question(json.loads(data), number)
            if question.id in results:
                raise ValueError(f"the id {question.id!r} is that of line {results[question.id].line} too")
            results[question.id] = question
        except (ValueError, RecursionError) as exc:
            broken.append(f"{path}, line {number}: {exc}")
    return list(results.values()), broken


def run_batch(
    questions: Sequence[Question],
    out: Path,
    rlm: RLM,
    context: object,
    *,
    budget: Budget | None = None,
    at_once: int = 8,
    again: bool = False,
    answer_elsewhere: Callable[[Question, Budget, Path], dict[str, Any]] | None = None,
) -> BatchResult:
    """Answer each question once and append its result to `out`; questions with a result there are skipped.

    - `budget`: calls, tokens and dollars hold for the whole batch with its earlier runs, iterations and seconds for
      each question
    - `at_once`: the most questions under way
    - `again`: also repeat the questions that failed or that a limit ended in an earlier run
    - `answer_elsewhere`: returns what `answer_question` does, in another process with an RLM and a context of its own;
      called in threads

    Raises BadQuestions if `out` is about other questions or another batch writes it, RunnerUnavailable.
    """

    runs = out.with_name(out.name + ".runs")
    runs.mkdir(parents=True, exist_ok=True)
    ended: SimpleQueue[tuple[Question, dict[str, Any] | BaseException]] = SimpleQueue()

    def answer(question: Question, share: Budget) -> None:
        there = answer_elsewhere or partial(answer_question, rlm, context)
        try:
            ended.put((question, there(question, share, _path(runs, question))))
        except BaseException as exc:  # raised where the results are read
            ended.put((question, exc))

    try:
        lock = FileLock(runs / "lock").acquire(timeout=1)
    except Timeout:
        raise BadQuestions(f"another batch is writing {out}") from None
    with lock, out.open("ab") as file:
        limits, rows = budget or Budget(), _read_results(out, questions)
        spent: dict[str, float] = {name: sum(row["spent"][name] for row in rows) for name in _SHARED}
        done = {row["id"]: row for row in rows if not (again and _may_improve(row))}
        remaining = deque(question for question in questions if question.id not in done)
        under_way: dict[str, Budget] = {}
        while True:
            while remaining and len(under_way) < at_once:
                share = _share(limits, spent, list(under_way.values()), at_once)
                if share is None:
                    break
                question = remaining.popleft()
                under_way[question.id] = share
                # A daemon: what it leaves at the end of the process goes on from its trajectory.
                threading.Thread(target=answer, args=(question, share), name="rlm-batch", daemon=True).start()
            if not under_way:
                break  # all are answered, or the budget is spent
            question, row = ended.get()
            if isinstance(row, BaseException):
                raise row
            del under_way[question.id]
            done[question.id] = row
            file.write(json.dumps(row).encode() + b"\n")
            file.flush()
            spent = {name: spent[name] + row["spent"][name] for name in _SHARED}
            for path in runs.glob(f"{_path(runs, question).stem}.*"):
                path.unlink(missing_ok=True)
    return BatchResult([done[question.id] for question in questions if question.id in done], spent)


def answer_question(rlm: RLM, context: object, question: Question, budget: Budget, path: Path) -> dict[str, Any]:
    """The result of a question, recorded at `path` until it is there. A failure is a result too.

    Waits for another that still answers it, and takes over what that one left.
    """

    row: dict[str, Any] = {"id": question.id, "line": question.line, "question": question.query}
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        try:
            result = rlm.completion(question.query, context, budget=budget, trajectory=path)
        except RunnerUnavailable:
            raise
        except RLMError as exc:
            usage = Usage()
            with suppress(TrajectoryError):  # the run failed before its first call
                Recording.load(path)[0].count_into(usage)
            return {**row, "answer": None, "error": str(exc), "spent": _count(usage)}
    return {**row, **result.to_dict(), "spent": _count(result.usage)}


def _parse_question(value: object, line: int) -> Question:
    fields = {"question": value} if isinstance(value, str) else value
    if not isinstance(fields, dict):
        raise ValueError(f"a question must be a text or an object, not {type(value).__name__}")
    query, name = fields.get("question", fields.get("query")), fields.get("id", line)
    if not isinstance(query, str) or not query.strip():
        raise ValueError("the field 'question' is missing, empty, or not a str")
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise ValueError(f"an id must be a text or a number, not {name!r}")
    return Question(str(name), query, line)


def _read_results(out: Path, questions: Sequence[Question]) -> list[dict[str, Any]]:
    """The lines of earlier runs; a torn last one is cut off. Raises BadQuestions."""
    if not out.exists():
        return []
    data = out.read_bytes()
    whole = data.rfind(b"\n") + 1
    asked = {question.id: question.query for question in questions}
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
        row: dict[str, Any] = {}
        try:
            row = json.loads(line)
            is_ours = asked[row["id"]] == row["question"] and all(name in row["spent"] for name in _SHARED)
        except (ValueError, KeyError, TypeError):
            is_ours = False
        if not is_ours:
            raise BadQuestions(
                f"{out} already exists, and its line {number} is not a result of these questions: give another file"
            )
        rows.append(row)
    if whole < len(data):
        os.truncate(out, whole)
    return rows


def _may_improve(row: Mapping[str, Any]) -> bool:
    """Whether a result is a failure, or ended at a limit that the next try may not meet."""
    return bool(row.get("error")) or row.get("reason") in ("max_calls", "max_tokens", "max_dollars", "max_seconds")


def _share(limits: Budget, spent: Mapping[str, float], given: Sequence[Budget], at_once: int) -> Budget | None:
    """The next question's equal part of what remains, at least half of a first one's part; None if a limit is spent."""
    parts: dict[str, Any] = {}
    for name in _SHARED:
        limit = getattr(limits, name)
        if limit is None:
            continue
        remaining = limit - spent[name] - sum(getattr(budget, name) for budget in given)
        part = max(remaining / max(1, at_once - len(given)), limit / (2 * at_once))
        part = min(remaining, part if name == "dollars" else max(1, int(part)))
        if part <= 0:
            return None
        parts[name] = part
    return replace(limits, **parts)


def _count(usage: Usage) -> dict[str, Any]:
    return {"calls": usage.calls, "tokens": usage.tokens, "dollars": usage.known_dollars}


def _path(runs: Path, question: Question) -> Path:
    name = hashlib.sha256(json.dumps([question.id, question.query]).encode()).hexdigest()[:24]
    return runs / f"{name}.jsonl"
