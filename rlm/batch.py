"""Answer many questions over one context, several at once, within one budget; the same call resumes after a kill.

Each finished question appends one line to `OUT`. The folder `OUT.runs` has a lock against a second batch and, for each
question in progress, a trajectory, from which it continues without paying twice, and a lock: a thread or a worker that
has outlived its batch may still answer it.
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
from rlm.errors import RLMError, RunnerUnavailable, TrajectoryError
from rlm.rlm import RLM
from rlm.trajectory.recording import Recording

Result = dict[str, Any]  # a line of `OUT`: `id`, `question`, `spent`, and the fields of a `Completion` or `error`
Answerer = Callable[[str, Path, Budget], Result]
"""Answers a question within a budget, and records its run at a path: `answer_question` about one context."""

_SHARED = ("calls", "tokens", "dollars")  # limits that hold over the whole batch; the others hold for each question


class BadQuestions(RLMError, ValueError):
    """A file of questions, or its results, cannot be used as a whole."""


def read_questions(path: Path) -> dict[str, str]:
    """The questions of a file by id. A line is a text, or an object with `question` (or `query`) and maybe `id`, which
    is the number of the line by default. Raises OSError, and BadQuestions for any other line."""
    questions: dict[str, str] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            fields = value if isinstance(value, dict) else {"question": value}
            question, name = fields.get("question", fields.get("query")), fields.get("id", number)
            if not isinstance(question, str) or not question.strip():
                raise ValueError("a question must be a text, or an object with one in its field 'question'")
            if isinstance(name, bool) or not isinstance(name, (str, int)) or str(name) in questions:
                raise ValueError(f"an id must be a text or a number that no other question has, not {name!r}")
        except (ValueError, RecursionError) as exc:
            raise BadQuestions(f"{path}, line {number}: {exc}") from None
        questions[str(name)] = question
    return questions


def run_batch(
    questions: Mapping[str, str], out: Path, rlm: RLM, context: object, *, budget: Budget | None = None,
    at_once: int = 8, answer_elsewhere: Answerer | None = None,
) -> tuple[list[Result], dict[str, float]]:  # fmt: skip
    """Answer each question once and append its result to `out`; those with a result there are skipped, unless they
    failed or a shared limit ended them.

    - `questions`: by id, as `read_questions` returns them
    - `out`: a file of JSON lines; the folder `OUT.runs` beside it has the questions in progress
    - `rlm`, `context`: what answers them, and about what
    - `budget`: calls, tokens and dollars hold for the whole batch with its earlier runs, iterations and seconds for
      each question
    - `at_once`: the most questions under way
    - `answer_elsewhere`: `answer_question` in another process with an RLM and a context of its own; called in threads

    Returns the results in the order of the questions, without those that the budget did not allow; and the calls,
    tokens and known dollars spent, earlier runs included. Raises RunnerUnavailable, and BadQuestions if `out` is about
    other questions or another batch writes it.
    """
    batch = _Batch(questions, out, answer_elsewhere or partial(answer_question, rlm, context), budget or Budget())
    try:
        lock = FileLock(batch.runs / "lock").acquire(timeout=1)
    except Timeout:
        raise BadQuestions(f"another batch is writing {out}: wait for its end, or give another file") from None
    with lock:
        batch.run(at_once)
    return [batch.results[name] for name in questions if name in batch.results], batch.spent


def answer_question(rlm: RLM, context: object, question: str, path: Path, budget: Budget) -> Result:
    """The result of a question, recorded at `path` until it is there. A failure is a result too. Waits for another that
    still answers it, and takes over what that one left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        try:
            result = rlm.completion(question, context, budget=budget, trajectory=path)
            row, usage = result.to_dict(), result.usage
        except RunnerUnavailable:
            raise
        except RLMError as exc:
            row, usage = {"answer": None, "error": str(exc)}, Usage()
            with suppress(TrajectoryError):  # the run failed before its first call
                Recording.load(path)[0].count_into(usage)
    return row | {"spent": {"calls": usage.calls, "tokens": usage.tokens, "dollars": usage.known_dollars}}


class _Batch:
    """The state of one `run_batch`, for its thread alone: threads that answer only put results into `_ended`."""

    def __init__(self, questions: Mapping[str, str], out: Path, answer: Answerer, limits: Budget) -> None:
        self.runs = out.with_name(out.name + ".runs")  # the folder of the lock and of the questions in progress
        self.runs.mkdir(parents=True, exist_ok=True)
        self.results: dict[str, Result] = {}  # the last result of each question, by id
        self.spent: dict[str, float] = dict.fromkeys(_SHARED, 0)
        """The calls, tokens and known dollars of all results, also of those that a later one replaced."""
        self._questions, self._out, self._answer, self._limits = questions, out, answer, limits
        self._shares: dict[str, Budget] = {}  # of the questions under way
        self._ended: SimpleQueue[tuple[str, Result | BaseException]] = SimpleQueue()

    def run(self, at_once: int) -> None:
        """Answer what has no result yet, until all is answered or the budget is spent. For the holder of the lock."""
        with self._out.open("ab") as file:
            for row in _read_results(self._out, self._questions):
                self._keep(row)
            remaining = deque(name for name in self._questions if _may_improve(self.results.get(name)))
            while True:
                while remaining and len(self._shares) < at_once and (share := self._next_share(at_once)):
                    self._start(remaining.popleft(), share)
                if not self._shares:
                    return
                row = self._wait()
                file.write(json.dumps(row).encode() + b"\n")
                file.flush()
                self._keep(row)
                for path in self.runs.glob(f"{self._file_name(row['id'])}.*"):
                    path.unlink(missing_ok=True)

    def _keep(self, row: Result) -> None:
        self.results[row["id"]] = row
        self.spent = {key: self.spent[key] + row["spent"][key] for key in _SHARED}

    def _start(self, name: str, share: Budget) -> None:
        """Answer a question on a thread of its own."""

        def answer() -> None:
            try:
                path = self.runs / f"{self._file_name(name)}.jsonl"
                self._ended.put((name, self._answer(self._questions[name], path, share)))
            except BaseException as exc:  # `_wait` raises it
                self._ended.put((name, exc))

        self._shares[name] = share
        # A daemon: a question that is still open when the process ends goes on from its trajectory.
        threading.Thread(target=answer, name="rlm-batch", daemon=True).start()

    def _wait(self) -> Result:
        """The next result, as a line of the file. Raises what ended its thread."""
        name, result = self._ended.get()
        if isinstance(result, BaseException):
            raise result
        del self._shares[name]
        return {"id": name, "question": self._questions[name], **result}

    def _file_name(self, name: str) -> str:
        """The stem of a question's files, of its id and text: an id may hold any characters."""
        return hashlib.sha256(json.dumps((name, self._questions[name])).encode()).hexdigest()[:24]

    def _next_share(self, at_once: int) -> Budget | None:
        """The next budget: an equal part of the rest, at least half a first one's part; None if a limit is spent."""
        parts: dict[str, Any] = {}
        shares = self._shares.values()  # of the questions under way
        for key in _SHARED:
            limit = getattr(self._limits, key)
            if limit is None:
                continue
            remaining = limit - self.spent[key] - sum(getattr(share, key) for share in shares)
            part = max(remaining / max(1, at_once - len(shares)), limit / (2 * at_once))
            part = min(remaining, part if key == "dollars" else max(1, int(part)))
            if part <= 0:
                return None
            parts[key] = part
        return replace(self._limits, **parts)


def _read_results(out: Path, questions: Mapping[str, str]) -> list[Result]:
    """The lines of earlier runs; a torn last one is cut off. Raises BadQuestions."""
    data = out.read_bytes()
    whole = data.rfind(b"\n") + 1
    rows: list[Result] = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            if questions[row["id"]] == row["question"] and all(key in row["spent"] for key in _SHARED):
                rows.append(row)
        if len(rows) < number:
            raise BadQuestions(f"line {number} of {out} is not a result of these questions: give another file")
    if whole < len(data):
        os.truncate(out, whole)
    return rows


def _may_improve(row: Result | None) -> bool:
    """Whether a result is missing, a failure, or ended at a limit of the batch that the next try may not meet."""
    return row is None or bool(row.get("error")) or row.get("reason") in ("max_calls", "max_tokens", "max_dollars")
