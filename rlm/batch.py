"""Answer many questions over one context, several at once, within one budget; the same call resumes after a kill.

Each finished question appends one line to `OUT`; questions with a line there are done. The folder `OUT.runs` contains a
trajectory of each question in progress, from which an interrupted question continues without paying twice. A lock next
to it keeps a worker that has outlived its driver from answering the same question. Each question begins with a share of
the remaining budget, and returns what it did not spend.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rlm.calls.budget import Budget
from rlm.calls.usage import Usage
from rlm.errors import RLMError, RunnerUnavailable, TrajectoryError
from rlm.rlm import RLM
from rlm.trajectory.recording import Recording

_SHARED = ("calls", "tokens", "dollars")
"""Limits that hold over the whole batch; the others hold for each question."""


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
    """The result of a batch."""

    rows: list[dict[str, Any]]
    """The result of each finished question, in the order of the questions; the budget did not allow the others."""
    spent: dict[str, float]
    """`calls`, `tokens` and known `dollars` of all runs of the batch, earlier ones included."""


@dataclass(frozen=True, slots=True)
class _Job:
    """The settings of all workers; pickled for workers in other processes."""

    key: str
    make_rlm: Callable[[], RLM]
    open_context: Callable[[], AbstractContextManager[object]]
    runs: Path


def read_questions(path: Path) -> tuple[list[Question], list[str]]:
    """The questions of a file of JSON lines, and a line about each that is broken.

    A line is a text, or an object with `question` (or `query`) and perhaps `id`. Raises OSError.
    """
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
    make_rlm: Callable[[], RLM],
    open_context: Callable[[], AbstractContextManager[object]],
    *,
    budget: Budget | None = None,
    at_once: int = 8,
    again: bool = False,
    executor: Executor | None = None,
    on_progress: Callable[[int, int, Mapping[str, float]], object] = lambda done, of, spent: None,
) -> BatchResult:
    """Answer each question once and append its result to `out`; questions with a result there are skipped.

    - `make_rlm`, `open_context`: called once a process; all its questions share both
    - `budget`: calls, tokens and dollars hold for the whole batch with its earlier runs, iterations and seconds for
      each question
    - `at_once`: the most questions under way
    - `again`: also repeat the questions that failed or that a limit ended in an earlier run
    - `executor`: its workers answer, for which the two functions are pickled; by default threads of this process
    - `on_progress`: called with the questions done, the questions in all, and the cost so far

    Raises BadQuestions if `out` is about other questions, RunnerUnavailable.
    """
    limits, rows = budget or Budget(), _read_results(out, questions)
    spent: dict[str, float] = {name: sum(row["spent"][name] for row in rows) for name in _SHARED}
    done = {row["id"]: row for row in rows if not (again and _may_improve(row))}
    job = _Job(os.urandom(8).hex(), make_rlm, open_context, out.with_name(out.name + ".runs"))
    job.runs.mkdir(parents=True, exist_ok=True)
    remaining = deque(question for question in questions if question.id not in done)
    under_way: dict[Future[dict[str, Any]], tuple[Question, Budget]] = {}
    pool = executor or _Threads(min(at_once, max(1, len(remaining))))
    with out.open("ab") as file:
        while True:
            while remaining and len(under_way) < at_once:
                share = _share(limits, spent, [value for _, value in under_way.values()], at_once)
                if share is None:
                    break
                question = remaining.popleft()
                under_way[pool.submit(_answer, job, question, share)] = (question, share)
            if not under_way:
                break  # all are answered, or the budget is spent
            for future in wait(under_way, timeout=1.0, return_when=FIRST_COMPLETED).done:
                question, _ = under_way.pop(future)
                row = done[question.id] = future.result()
                file.write(json.dumps(row).encode() + b"\n")
                file.flush()
                spent = {name: spent[name] + row["spent"][name] for name in _SHARED}
                for path in job.runs.glob(f"{_name(question)}.*"):
                    path.unlink(missing_ok=True)
            on_progress(len(done), len(questions), spent)
    if executor is None:
        pool.shutdown()
        _leave(job)
    return BatchResult([done[question.id] for question in questions if question.id in done], spent)


def _answer(job: _Job, question: Question, budget: Budget) -> dict[str, Any]:
    """The result of a question, in a worker. A failure is a result too."""
    from filelock import FileLock  # a dead process holds no lock

    path = job.runs / f"{_name(question)}.jsonl"
    row: dict[str, Any] = {"id": question.id, "line": question.line, "question": question.query}
    job.runs.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        try:
            rlm, context = _enter(job)
            result = rlm.completion(question.query, context, budget=budget, trajectory=path)
        except RunnerUnavailable:
            raise
        except RLMError as exc:
            usage = Usage()
            try:
                Recording.load(path)[0].count_into(usage)
            except TrajectoryError:
                pass  # the run failed before its first call
            return {**row, "answer": None, "error": str(exc), "spent": _count(usage)}
    return {**row, **result.to_dict(), "spent": _count(result.usage)}


class _Threads(Executor):
    """Threads that do not keep the process alive: what they leave resumes from its trajectory."""

    def __init__(self, count: int) -> None:
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._count = count
        for _ in range(count):
            threading.Thread(target=self._run, name="rlm-batch", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._work.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads once they have done the submitted work; never waits."""
        for _ in range(self._count):
            self._work.put(None)

    def _run(self) -> None:
        while work := self._work.get():
            future, call = work
            try:
                future.set_result(call())
            except BaseException as exc:
                future.set_exception(exc)


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
        try:
            rows.append(json.loads(line))
            row = rows[-1]
            is_ours = asked[row["id"]] == row["question"] and all(name in row["spent"] for name in _SHARED)
        except (ValueError, KeyError, TypeError):
            is_ours = False
        if not is_ours:
            raise BadQuestions(
                f"{out} already exists, and its line {number} is not a result of these questions: give another output "
                "file"
            )
    if whole < len(data):
        os.truncate(out, whole)
    return rows


def _may_improve(row: Mapping[str, Any]) -> bool:
    """Whether a result is a failure, or ended at a limit that the next try may not meet."""
    return bool(row.get("error")) or row.get("reason") in ("max_calls", "max_tokens", "max_dollars", "max_seconds")


def _share(limits: Budget, spent: Mapping[str, float], given: Sequence[Budget], at_once: int) -> Budget | None:
    """The budget of the next question; None if a limit is spent.

    It is an equal part of the remaining budget, but at least half of the part that a first question gets.
    """
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


def _name(question: Question) -> str:
    return hashlib.sha256(json.dumps([question.id, question.query]).encode()).hexdigest()[:24]


_here: dict[str, tuple[RLM, object, ExitStack]] = {}
"""The RLM and the open context of each job in this process."""
_entering = threading.Lock()


def _enter(job: _Job) -> tuple[RLM, object]:
    """The RLM and the context of this process; made by the first question, shared by all."""
    with _entering:
        if job.key not in _here:
            stack = ExitStack()
            _here[job.key] = stack.enter_context(job.make_rlm()), stack.enter_context(job.open_context()), stack
        rlm, context, _ = _here[job.key]
        return rlm, context


def _leave(job: _Job) -> None:
    with _entering:
        *_, stack = _here.pop(job.key, (None, None, ExitStack()))
    stack.close()
