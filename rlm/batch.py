"""Answer many questions over one context, several at once, here or on the workers of an executor; resumes after a kill.

Each finished question appends one line to `OUT`; questions with a line there are done. The folder `OUT.runs` contains
a trajectory of each question in progress, from which an interrupted question continues without paying twice. A lock
next to each trajectory keeps two workers from answering the same question, when one has outlived its driver. Each
question begins with a share of the remaining budget, and returns what it did not spend.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from rlm.calls.budget import Budget
from rlm.calls.usage import Usage
from rlm.errors import LLMError, RLMError, RunnerUnavailable, TrajectoryError
from rlm.models.log import INFO, log
from rlm.rlm import RLM
from rlm.trajectory.recording import Recording

_SHARED = ("calls", "tokens", "dollars")
"""Limits that hold over the whole batch; the others hold for each question."""
_EARLY = frozenset(f"max_{name}" for name in (*_SHARED, "seconds"))


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


class OnProgress(Protocol):
    """A callback for the progress of a batch: questions done, questions in all, and the cost so far."""

    def __call__(self, done: int, of: int, spent: BatchCost) -> object: ...


@dataclass(frozen=True, slots=True)
class BatchCost:
    """The total cost of a batch's questions."""

    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0

    def plus(self, row: Mapping[str, Any]) -> BatchCost:
        """The sum of this cost and that of a result."""
        used = row["spent"]
        return BatchCost(self.calls + used["calls"], self.tokens + used["tokens"], self.dollars + used["dollars"])


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a batch."""

    rows: list[dict[str, Any]]
    """The result of each finished question, in the order of the questions; the budget did not allow the others."""
    spent: BatchCost
    """The cost of all runs of the batch, earlier ones included."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """The settings of all workers of a batch; pickled for workers in other processes."""

    key: str
    """A random key, by which a worker finds its RLM and open context again."""
    make_rlm: Callable[[], RLM]
    open_context: Callable[[], AbstractContextManager[object]]
    runs: str
    """The folder of trajectories."""


def read_questions(path: Path) -> tuple[list[Question], list[str]]:
    """The questions of a file of JSON lines, and a line about each that is broken.

    A line is a text, or an object with `question` (or `query`) and perhaps `id`. Raises OSError.
    """
    found: dict[str, Question] = {}
    broken: list[str] = []
    for number, data in enumerate(path.read_bytes().splitlines(), 1):
        if not data.strip():
            continue
        try:
            question = _parse_question(json.loads(data), number)
        except (ValueError, RecursionError) as exc:
            broken.append(f"{path}, line {number}: {exc}")
            continue
        if question.id in found:
            broken.append(
                f"{path}, line {number}: the id {question.id!r} is that of line {found[question.id].line} too"
            )
        else:
            found[question.id] = question
    return list(found.values()), broken


def run_batch(
    questions: Sequence[Question],
    out: Path,
    make_rlm: Callable[[], RLM],
    open_context: Callable[[], AbstractContextManager[object]],
    *,
    budget: Budget | None = None,
    at_once: int = 8,
    tries: int = 3,
    again: bool = False,
    executor: Executor | None = None,
    on_progress: OnProgress | None = None,
) -> BatchResult:
    """Answer each question once and append its result to `out`; questions with a result there are skipped.

    Calls, tokens and dollars of `budget` hold for the whole batch with its earlier runs, iterations and seconds for
    each question. A question with a temporary failure is tried `tries` times; `again` repeats the questions that failed
    or that a budget ended in an earlier run. With an `executor`, `make_rlm` and `open_context` are pickled for its
    workers, which keep one RLM and one open context each. Raises BadQuestions if `out` is about other questions.
    """
    limits = budget or Budget()
    rows = _read_results(out, questions)
    spent = BatchCost()
    for row in rows:
        spent = spent.plus(row)
    done = {row["id"]: row for row in rows if not (again and _is_open(row))}
    runs = out.with_name(out.name + ".runs")
    runs.mkdir(parents=True, exist_ok=True)
    batch = BatchJob(os.urandom(8).hex(), make_rlm, open_context, str(runs))
    left = deque((question, 1) for question in questions if question.id not in done)
    under_way: dict[Future[dict[str, Any]], tuple[Question, int, Budget]] = {}
    pool = executor or _Threads(min(at_once, max(1, len(left))))
    with out.open("ab") as file:
        while left or under_way:
            while left and len(under_way) < at_once:
                share = _share(limits, spent, [given for *_, given in under_way.values()], at_once)
                if share is None:
                    break
                question, number = left.popleft()
                under_way[pool.submit(answer, batch, question, share, number < tries)] = (question, number, share)
            if not under_way:
                break  # the budget is spent
            ended, _ = wait(under_way, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in ended:
                question, number, _ = under_way.pop(future)
                row = future.result()
                if row.get("retry"):
                    left.append((question, number + 1))
                    log(INFO, "question %s failed for a while; try %d comes last", question.id, number + 1)
                    continue
                file.write(json.dumps(row).encode() + b"\n")
                file.flush()
                spent, done[question.id] = spent.plus(row), row
                _forget(runs, question)
            if on_progress:
                on_progress(len(done), len(questions), spent)
    if executor is None:
        pool.shutdown()
        _leave(batch)
    return BatchResult([done[question.id] for question in questions if question.id in done], spent)


def answer(batch: BatchJob, question: Question, budget: Budget, may_retry: bool) -> dict[str, Any]:
    """The result of a question, in a worker. A failure is a result too, or asks for another try."""
    path = Path(batch.runs) / f"{_name(question)}.jsonl"
    about = {"id": question.id, "line": question.line, "question": question.query}
    with _locked(path.with_suffix(".lock")):
        try:
            rlm, context = _enter(batch)
            completion = rlm.completion_at(path, question.query, context, budget=budget)
        except RunnerUnavailable:
            raise
        except RLMError as exc:
            if may_retry and isinstance(exc, LLMError) and exc.transient:
                return {**about, "retry": True}
            return {**about, "answer": None, "error": str(exc), "spent": _count(_usage_of(path))}
    usage = completion.usage
    return {
        **about, "answer": completion.answer, "finished": completion.finished, "reason": completion.reason,
        "iterations": completion.iterations, "seconds": round(completion.seconds, 3), "cost": completion.cost,
        "io": completion.io, "notes": list(completion.notes), "usage": usage.to_dict(), "spent": _count(usage),
    }  # fmt: skip


class _Threads(Executor):
    """Threads of this process that do not keep it alive: their work resumes from its trajectory."""

    def __init__(self, count: int) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._count = count
        for number in range(count):
            threading.Thread(target=self._run, name=f"rlm-batch_{number}", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as exc:
                future.set_exception(exc)

        self._work.put(work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads once they have done the submitted work; never waits."""
        for _ in range(self._count):
            self._work.put(None)

    def _run(self) -> None:
        while work := self._work.get():
            work()


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
    rows = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
        row = None
        try:
            row = json.loads(line)
            BatchCost().plus(row)
            about = asked[row["id"]] == row["question"]
        except (ValueError, KeyError, TypeError):
            about = False
        if row is None or not about:
            raise BadQuestions(
                f"{out} already exists, and its line {number} is not a result of these questions: give another output "
                "file"
            )
        rows.append(row)
    if whole < len(data):
        os.truncate(out, whole)
    return rows


def _is_open(row: Mapping[str, Any]) -> bool:
    """Whether a result is a failure, or ended at a limit."""
    return bool(row.get("error")) or row.get("reason") in _EARLY


def _share(limits: Budget, spent: BatchCost, given: Sequence[Budget], at_once: int) -> Budget | None:
    """The budget of the next question; None if a limit is spent.

    It is an equal part of the remaining budget, but at least half of the part that a first question gets.
    """
    parts: dict[str, Any] = {}
    for name in _SHARED:
        limit = getattr(limits, name)
        if limit is None:
            continue
        left = limit - getattr(spent, name) - sum(getattr(each, name) for each in given)
        part = max(left / max(1, at_once - len(given)), limit / (2 * at_once))
        part = min(left, part if name == "dollars" else max(1, int(part)))
        if part <= 0:
            return None
        parts[name] = part
    return replace(limits, **parts)


def _count(usage: Usage) -> dict[str, Any]:
    return {"calls": usage.calls, "tokens": usage.tokens, "dollars": usage.known_dollars}


def _usage_of(path: Path) -> Usage:
    usage = Usage()
    try:
        Recording.load(path)[0].count_into(usage)
    except TrajectoryError:
        pass  # the run failed before its first call
    return usage


def _name(question: Question) -> str:
    return hashlib.sha256(json.dumps([question.id, question.query]).encode()).hexdigest()[:24]


def _forget(runs: Path, question: Question) -> None:
    for path in runs.glob(f"{_name(question)}.*"):
        path.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a question inside the block; the lock of a dead process is free."""
    from filelock import FileLock  # by the process that runs the batch

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path):
        yield


_here: dict[str, tuple[RLM, object, ExitStack]] = {}
_entering = threading.Lock()
_KEPT = 4
"""The most batches whose RLM and context a worker keeps."""


def _enter(batch: BatchJob) -> tuple[RLM, object]:
    """The RLM and the context of this process; made by the first question, shared by all."""
    with _entering:
        if batch.key not in _here:
            while len(_here) >= _KEPT:
                _here.pop(next(iter(_here)))  # of an earlier batch; contexts in use live on
            stack = ExitStack()
            _here[batch.key] = stack.enter_context(batch.make_rlm()), stack.enter_context(batch.open_context()), stack
        rlm, context, _ = _here[batch.key]
        return rlm, context


def _leave(batch: BatchJob) -> None:
    with _entering:
        *_, stack = _here.pop(batch.key, (None, None, ExitStack()))
    stack.close()
