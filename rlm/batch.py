"""Answer many questions over one context, several at once, within one budget. After a kill, the same call resumes.

Each question that ends appends one line to `OUT`. The folder `OUT.runs` has a lock against a second batch. For each
question that was interrupted or failed it has a trajectory, from which the next try continues without paying for calls
again, and a lock, since a thread or worker that outlived its batch may still be answering the question.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from filelock import FileLock, Timeout

from rlm.calls.budget import Budget
from rlm.calls.usage import Usage
from rlm.errors import LLMError, RLMError, RunnerUnavailable, TrajectoryError
from rlm.rlm import RLM
from rlm.trajectory.recording import Recording

Result = dict[str, Any]
"""A line of `OUT`: `id`, `question`, the fields of a `Completion` or an `error`, `continued`, and `spent`: its calls,
tokens and known dollars, which include those of earlier tries if `continued` is true."""
Answerer = Callable[[str, Path, Budget], Result]
"""Answers a question within a budget and records its run at a path, as `answer_question` does for one context."""

_SHARED = ("calls", "tokens", "dollars")  # limits of the whole batch; those of iterations and seconds are per question


class BadQuestions(RLMError, ValueError):
    """A file of questions, or of their results, cannot be used."""


def read_questions(path: Path) -> dict[str, str]:
    """The questions of a file, by id. A line is a JSON string, or an object with `question` (or `query`) and perhaps an
    `id`, by default the number of the line; empty lines are skipped. Raises OSError, and BadQuestions."""
    questions: dict[str, str] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            fields = value if isinstance(value, dict) else {"question": value}
            question = fields.get("question", fields.get("query"))
            id_ = fields.get("id", number)
            if not isinstance(question, str) or not question.strip():
                raise ValueError(f"expected text, or an object whose 'question' is text, not {str(value)[:80]!r}")
            if isinstance(id_, bool) or not isinstance(id_, (str, int)) or str(id_) in questions:
                raise ValueError(f"an id must be a string or a whole number that no other question has, not {id_!r}")
        except (ValueError, RecursionError) as exc:
            raise BadQuestions(f"{path}, line {number}: {exc}") from None
        questions[str(id_)] = question
    return questions


def run_batch(
    questions: Mapping[str, str], out: Path, rlm: RLM, context: object, *, budget: Budget | None = None,
    at_once: int = 8, answer_elsewhere: Answerer | None = None,
) -> tuple[list[Result], dict[str, float]]:  # fmt: skip
    """Answer each question and append its result to `out`. Questions that have an answer there are skipped; those that
    failed continue where they ended; those that a limit of the whole batch ended start over.

    - `questions`: by id, as `read_questions` returns them
    - `out`: a file of JSON lines; the folder `OUT.runs` beside it has the trajectories of failed questions
    - `budget`: its calls, tokens and dollars limit all questions and earlier runs; iterations and seconds limit each
    - `at_once`: the most questions in progress at the same time
    - `answer_elsewhere`: calls `answer_question` in another process, with its own RLM and context; called in threads

    Returns the results in the order of the questions, without those that the budget did not allow, and the calls,
    tokens and known dollars spent, earlier runs included. Raises RunnerUnavailable, and BadQuestions if `out` has
    results of other questions or another batch is writing it.
    """
    batch = _Batch(questions, out, answer_elsewhere or partial(answer_question, rlm, context), budget or Budget())
    try:
        lock = FileLock(batch.runs / "lock").acquire(timeout=1)
    except Timeout:
        raise BadQuestions(f"another batch is writing {out}: wait until it ends, or give another file") from None
    with lock:
        batch.run(at_once)
    return [batch.results[id_] for id_ in questions if id_ in batch.results], batch.spent


def answer_question(rlm: RLM, context: object, question: str, path: Path, budget: Budget) -> Result:
    """Answer a question, or continue its run that is recorded at `path`. Returns the result, which may be a failure.
    Waits while another thread or process answers the question. Raises RunnerUnavailable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        is_continued = path.exists()
        try:
            result = rlm.completion(question, context, budget=budget, trajectory=path)
            row, usage = result.to_dict(), result.usage
        except RunnerUnavailable:
            raise
        except RLMError as exc:
            row, usage = {"answer": None, "error": str(exc)}, Usage()
            with suppress(TrajectoryError):  # the run failed before its first call
                Recording.load(path).count_into(usage)
            if not isinstance(exc, LLMError):  # it would end in the same way if it continued
                path.unlink(missing_ok=True)
    spent = {"calls": usage.calls, "tokens": usage.tokens, "dollars": usage.known_dollars}
    return row | {"spent": spent, "continued": is_continued}


class _Batch:
    """The state of one `run_batch`, used only by its thread. Threads that answer put their results into `_ended`."""

    def __init__(self, questions: Mapping[str, str], out: Path, answer: Answerer, limits: Budget) -> None:
        self.runs = out.with_name(out.name + ".runs")  # the folder of the lock and of the trajectories
        self.runs.mkdir(parents=True, exist_ok=True)
        self.results: dict[str, Result] = {}  # the last result of each question, by id
        self.spent: dict[str, float] = dict.fromkeys(_SHARED, 0)  # by all tries so far
        self._questions, self._out = questions, out
        self._answer, self._limits = answer, limits
        self._shares: dict[str, Budget] = {}  # id of a question in progress -> its part of the limits
        self._ended: SimpleQueue[tuple[str, Result | BaseException]] = SimpleQueue()

    def run(self, at_once: int) -> None:
        """Answer the unanswered questions until none is left or the budget is spent. The caller holds the lock."""
        with self._out.open("ab") as file:
            for row in _read_results(self._out, self._questions):
                self._keep(row)
            remaining = deque(id_ for id_ in self._questions if _may_improve(self.results.get(id_)))
            while True:
                while remaining and len(self._shares) < at_once and (share := self._next_share(at_once)):
                    self._start(remaining.popleft(), share)
                if not self._shares:
                    return
                id_, result = self._ended.get()
                if isinstance(result, BaseException):
                    raise result
                del self._shares[id_]
                row = {"id": id_, "question": self._questions[id_], **result}
                file.write(json.dumps(row).encode() + b"\n")
                file.flush()
                self._keep(row)
                if not row.get("error"):  # after a limit too, which may have refused calls of its code
                    for path in self.runs.glob(f"{self._trajectory_of(id_).stem}.*"):
                        path.unlink(missing_ok=True)

    def _keep(self, row: Result) -> None:
        """Keep a result as the newest of its question, and add its cost beyond that of the try that it continued."""
        counted = self.results.get(row["id"], {}).get("spent", {}) if row.get("continued") else {}
        self.spent = {key: self.spent[key] + row["spent"][key] - counted.get(key, 0) for key in _SHARED}
        self.results[row["id"]] = row

    def _start(self, id_: str, share: Budget) -> None:
        """Answer a question on a thread of its own. A run that continues may spend `share` beyond what it has cost."""
        path = self._trajectory_of(id_)
        spent = self.results[id_]["spent"] if id_ in self.results and path.exists() else {}
        limits = ((key, getattr(share, key)) for key in _SHARED)
        budget = replace(share, **{key: limit + spent.get(key, 0) for key, limit in limits if limit is not None})

        def answer() -> None:
            try:
                self._ended.put((id_, self._answer(self._questions[id_], path, budget)))
            except BaseException as exc:  # `run` raises it
                self._ended.put((id_, exc))

        self._shares[id_] = share
        # A daemon: a question that is still open when the process ends goes on from its trajectory.
        threading.Thread(target=answer, name="rlm-batch", daemon=True).start()

    def _trajectory_of(self, id_: str) -> Path:
        """The path of a question's trajectory, named by a hash of id and text, since an id may have any characters."""
        key = json.dumps((id_, self._questions[id_])).encode()
        return self.runs / f"{hashlib.sha256(key).hexdigest()[:24]}.jsonl"

    def _next_share(self, at_once: int) -> Budget | None:
        """The budget of the next question: an equal part of what is left of each shared limit, at least half of the
        first question's part. None if a limit is spent."""
        parts: dict[str, Any] = {}
        shares = self._shares.values()
        for key in _SHARED:
            limit = getattr(self._limits, key)
            if limit is None:
                continue
            remaining = limit - self.spent[key] - sum(getattr(share, key) for share in shares)
            if remaining <= 0:
                return None
            part = max(remaining / max(1, at_once - len(shares)), limit / (2 * at_once))
            parts[key] = min(remaining, part if key == "dollars" else max(1, int(part)))
        return replace(self._limits, **parts)


def _read_results(out: Path, questions: Mapping[str, str]) -> list[Result]:
    """The lines of earlier runs. Cuts an incomplete last line off the file. Raises BadQuestions."""
    data = out.read_bytes()
    whole_bytes = data.rfind(b"\n") + 1
    rows: list[Result] = []
    for number, line in enumerate(data[:whole_bytes].splitlines(), 1):
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            if questions[row["id"]] == row["question"] and all(key in row["spent"] for key in _SHARED):
                rows.append(row)
        if len(rows) < number:
            raise BadQuestions(f"line {number} of {out} is not a result of these questions: give another file")
    if whole_bytes < len(data):
        os.truncate(out, whole_bytes)
    return rows


def _may_improve(row: Result | None) -> bool:
    """Whether another try may help: the question has no result, it failed, or a limit of the batch ended it."""
    return row is None or bool(row.get("error")) or row.get("reason") in ("max_calls", "max_tokens", "max_dollars")
