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
from collections.abc import Callable, Mapping, Sequence
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

_SHARED = ("calls", "tokens", "dollars")  # limits that hold over the whole batch; the others hold for each question


class BadQuestions(RLMError, ValueError):
    """A file of questions, or its results, cannot be used as a whole."""


def read_questions(path: Path) -> dict[str, str]:
    """The questions of a file by id. A line is a text, or an object with `question` (or `query`) and maybe `id`, which
    is the number of the line by default. Raises OSError, and BadQuestions for any other line."""
    results: dict[str, str] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            fields = value if isinstance(value, dict) else {"question": value}
            question, name = fields.get("question", fields.get("query")), fields.get("id", number)
            if not isinstance(question, str) or not question.strip():
                raise ValueError("a question must be a text, or an object with one in its field 'question'")
            if isinstance(name, bool) or not isinstance(name, (str, int)) or str(name) in results:
                raise ValueError(f"an id must be a text or a number that no other question has, not {name!r}")
        except (ValueError, RecursionError) as exc:
            raise BadQuestions(f"{path}, line {number}: {exc}") from None
        results[str(name)] = question
    return results


def run_batch(
    questions: Mapping[str, str],
    out: Path,
    rlm: RLM,
    context: object,
    *,
    budget: Budget | None = None,
    at_once: int = 8,
    answer_elsewhere: Callable[[str, Path, Budget], dict[str, Any]] | None = None,
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Answer each question once and append its result to `out`; those with a result there are skipped, unless they
    failed or a shared limit ended them.

    - `questions`: by id
    - `budget`: calls, tokens and dollars hold for the whole batch with its earlier runs, iterations and seconds for
      each question
    - `at_once`: the most questions under way
    - `answer_elsewhere`: `answer_question` in another process with an RLM and a context of its own; called in threads

    Returns the results in the order of the questions, without those that the budget did not allow; and the calls,
    tokens and known dollars spent, earlier runs included. Raises RunnerUnavailable, and BadQuestions if `out` is about
    other questions or another batch writes it.
    """
    runs = out.with_name(out.name + ".runs")
    runs.mkdir(parents=True, exist_ok=True)
    hashes = {item[0]: hashlib.sha256(json.dumps(item).encode()).hexdigest()[:24] for item in questions.items()}
    ended: SimpleQueue[tuple[str, dict[str, Any] | BaseException]] = SimpleQueue()
    there = answer_elsewhere or partial(answer_question, rlm, context)

    def answer(name: str, share: Budget) -> None:
        try:
            ended.put((name, there(questions[name], runs / f"{hashes[name]}.jsonl", share)))
        except BaseException as exc:  # raised where the results are read
            ended.put((name, exc))

    try:
        lock = FileLock(runs / "lock").acquire(timeout=1)
    except Timeout:
        raise BadQuestions(f"another batch is writing {out}: wait for its end, or give another file") from None
    with lock, out.open("ab") as file:
        limits, rows = budget or Budget(), _read_results(out, questions)
        spent: dict[str, float] = {key: sum(row["spent"][key] for row in rows) for key in _SHARED}
        done = {row["id"]: row for row in rows}
        remaining = deque(name for name in questions if _may_improve(done.get(name)))
        under_way: dict[str, Budget] = {}
        while True:
            while remaining and len(under_way) < at_once:
                share = _share(limits, spent, list(under_way.values()), at_once)
                if share is None:
                    break
                name = remaining.popleft()
                under_way[name] = share
                # A daemon: what it leaves at the end of the process goes on from its trajectory.
                threading.Thread(target=answer, args=(name, share), name="rlm-batch", daemon=True).start()
            if not under_way:
                break  # all are answered, or the budget is spent
            name, result = ended.get()
            if isinstance(result, BaseException):
                raise result
            del under_way[name]
            done[name] = row = {"id": name, "question": questions[name], **result}
            file.write(json.dumps(row).encode() + b"\n")
            file.flush()
            spent = {key: spent[key] + row["spent"][key] for key in _SHARED}
            for path in runs.glob(f"{hashes[name]}.*"):
                path.unlink(missing_ok=True)
    return [done[name] for name in questions if name in done], spent


def answer_question(rlm: RLM, context: object, question: str, path: Path, budget: Budget) -> dict[str, Any]:
    """The result of a question, recorded at `path` until it is there. A failure is a result too.

    Waits for another that still answers it, and takes over what that one left.
    """
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


def _read_results(out: Path, questions: Mapping[str, str]) -> list[dict[str, Any]]:
    """The lines of earlier runs; a torn last one is cut off. Raises BadQuestions."""
    data = out.read_bytes()
    whole = data.rfind(b"\n") + 1
    rows: list[dict[str, Any]] = []
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


def _may_improve(row: Mapping[str, Any] | None) -> bool:
    """Whether a result is missing, a failure, or ended at a limit of the batch that the next try may not meet."""
    return row is None or bool(row.get("error")) or row.get("reason") in ("max_calls", "max_tokens", "max_dollars")


def _share(limits: Budget, spent: Mapping[str, float], given: Sequence[Budget], at_once: int) -> Budget | None:
    """The next question's equal part of what remains, at least half of a first one's part; None if a limit is spent."""
    parts: dict[str, Any] = {}
    for key in _SHARED:
        limit = getattr(limits, key)
        if limit is None:
            continue
        remaining = limit - spent[key] - sum(getattr(budget, key) for budget in given)
        part = max(remaining / max(1, at_once - len(given)), limit / (2 * at_once))
        part = min(remaining, part if key == "dollars" else max(1, int(part)))
        if part <= 0:
            return None
        parts[key] = part
    return replace(limits, **parts)
