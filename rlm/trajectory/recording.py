"""Read a recorded run, to resume or replay it: its turns, and each call that was paid for."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm.calls.budget import Budget
from rlm.calls.records import ChildRun
from rlm.calls.usage import ModelUsage, Usage, cost_of
from rlm.errors import LLMError, TrajectoryError
from rlm.models.lm import Reply, call_key
from rlm.trajectory import decoding
from rlm.trajectory.step import Step
from rlm.trajectory.trajectory import VERSION, partial_of


class Recording:
    """The recorded turns and replies of a run. Each reply is taken once. Safe for use by many threads."""

    def __init__(self, lines: list[dict[str, Any]], partial: Sequence[dict[str, Any]] = ()) -> None:
        """`lines`: of a trajectory. `partial`: the records of a turn that was in progress. Raises TrajectoryError."""
        try:
            _check_metadata(lines)
            self._index(lines, partial)
        except TrajectoryError:
            raise
        except decoding.SHAPE_ERRORS as exc:
            raise TrajectoryError(f"this is not a trajectory: {decoding.describe_error(exc)}") from exc

    def _index(self, lines: list[dict[str, Any]], partial: Sequence[dict[str, Any]]) -> None:
        """Index the turns of the run by number, and its calls by key."""
        self.metadata, *self.iterations = lines
        self.open_lines = self._open_question()  # the lines of the question that has no answer yet
        turn_in_progress = len(self.iterations) + 1
        self._partial = [record for record in partial if record["iteration"] == turn_in_progress]
        self._lock = threading.Lock()  # guards `_calls`
        replies = [record for record in self._partial if record["type"] == "reply" and "error" not in record]
        self._turns = {line["iteration"]: decoding.root_reply(line) for line in self.iterations}
        self._turns |= {record["turn"]: decoding.call_reply(record) for record in replies}
        self._children = [record for record in self._partial if record["type"] == "child"]
        sub_calls = [record for record in self._partial if record["type"] == "call"]
        calls = decoding.sub_calls(self.iterations) + self._children + sub_calls
        self.sub_models = tuple(dict.fromkeys(str(record["root_model"]) for record in calls))  # in order of first use
        self._calls: dict[str, deque[dict[str, Any]]] = defaultdict(deque)  # key -> its calls, in order
        for record in sorted(calls, key=lambda record: record.get("order") or 0):
            prompt = record.get("prompt")
            messages = [{"role": "user", "content": prompt if isinstance(prompt, str) else ""}]
            key = record.get("key") or call_key(record["root_model"], messages)  # other writers record no key
            self._calls[key].append(record)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> tuple[Recording, int]:
        """The recording of a file, and the length of the file's complete lines in bytes. Raises TrajectoryError."""
        file = Path(path)  # the file that is being read, which an error names
        try:
            lines, whole_bytes = _read_lines(file)
            recording = cls(lines)
            if partial_of(file).exists():
                file = partial_of(file)
                recording = cls(lines, _read_lines(file)[0])
            return recording, whole_bytes
        except FileNotFoundError:
            raise TrajectoryError(f"there is no trajectory at {path}") from None
        except TrajectoryError as exc:
            raise TrajectoryError(f"{file}: {exc}") from exc.__cause__
        except (OSError, *decoding.SHAPE_ERRORS) as exc:
            raise TrajectoryError(f"{file} is not a trajectory: {decoding.describe_error(exc)}") from exc

    def take(self, key: str) -> Reply | None:
        """The next recorded reply to a call with this key; None if none is left. Raises LLMError if it failed."""
        record = self._take_record(key)
        if record and record.get("error"):
            error = LLMError(record["error"])
            error.reply = decoding.call_reply(record) if _was_paid(record) else None
            raise error
        return decoding.call_reply(record) if record else None

    def take_child(self, key: str) -> ChildRun | None:
        """The next recorded child run with this key; None if none is left."""
        record = self._take_record(key)
        return decoding.child_run(record) if record else None

    def _take_record(self, key: str) -> dict[str, Any] | None:
        with self._lock:
            return self._calls[key].popleft() if self._calls.get(key) else None

    def take_turn(self, turn: int) -> Reply | None:
        """The reply of the root in this turn; None if there is none."""
        return self._turns.get(turn)

    def count_into(self, usage: Usage) -> None:
        """Add the cost of the open question so far to `usage`."""
        decoding.count_lines(self.open_lines, usage)
        for record in self._partial:
            if record["type"] != "child" and _was_paid(record):
                reply = decoding.call_reply(record)
                usage.count(reply.model, ModelUsage.of_call(reply, cost_of(reply, usage.prices)))

    def reopen(self, budget: Budget) -> None:
        """Open the last question again if a limit ended it and `budget` now allows more."""
        reason = str(self.iterations[-1].get("reason")) if self.iterations else ""
        if self.open_lines or not reason.startswith("max_"):
            return
        self.open_lines, usage = self._open_question(counts_forced=False), Usage()
        self.count_into(usage)
        spent = {"calls": usage.calls, "tokens": usage.tokens, "dollars": usage.known_dollars,
                 "seconds": self.seconds, "iterations": self.turns}  # fmt: skip
        name = reason.removeprefix("max_")
        limit = getattr(budget, name, None)
        if limit is not None and spent.get(name, 0) >= limit:
            self.open_lines = []  # it would end at once

    def _open_question(self, *, counts_forced: bool = True) -> list[dict[str, Any]]:
        """The lines of the last question; empty if it has an answer. `counts_forced`: whether the answer that a run
        gives when a limit ends it counts as one."""
        begin = max((index for index, line in enumerate(self.iterations) if line.get("question")), default=0)
        lines = self.iterations[begin:]
        if not lines or lines[-1]["final_answer"] is None:
            return lines
        is_forced = str(lines[-1].get("reason")).startswith("max_")
        return lines if is_forced and not counts_forced else []

    @property
    def turns(self) -> int:
        """The number of turns of the open question, with child runs at any depth."""
        # In the turn in progress, each child run at any depth has a record of its own.
        in_progress = sum(decoding.own_turns(record.get("iterations", ())) for record in self._children)
        return decoding.count_turns(self.open_lines) + in_progress

    @property
    def seconds(self) -> float:
        """The seconds from the start of the open question to the end of its last recorded turn."""
        steps = [decoding.read_step(line) for line in self.open_lines]
        return max([sum(step.seconds for step in steps), *(step.start_seconds + step.seconds for step in steps)])

    def steps(self) -> list[Step]:
        """All recorded turns, with the fields that the loop needs to continue."""
        return [decoding.read_step(line) for line in self.iterations]

    def check_turns(self) -> None:
        """Raise TrajectoryError if a turn lacks a field that a resumed run needs, or has another type in it."""
        turn = 1
        try:
            for line in self.iterations:
                decoding.read_step(line)
                decoding.count_lines([line], Usage())
                decoding.count_turns([line])
                turn += 1  # after the last line: the turn that was in progress
            self.count_into(Usage())
            for record in self._children:
                decoding.child_run(record)
        except decoding.SHAPE_ERRORS as exc:
            raise TrajectoryError(f"turn {turn} is damaged: {decoding.describe_error(exc)}") from exc


def _was_paid(record: Mapping[str, Any]) -> bool:
    """Whether a call was answered, or failed after it was charged."""
    return "error" not in record or bool(record.get("prompt_tokens"))


def _check_metadata(lines: Sequence[Mapping[str, Any]]) -> None:
    """Raise TrajectoryError unless the first line begins a trajectory that this version reads."""
    if not lines or lines[0].get("type") != "metadata":
        raise TrajectoryError("this is not a trajectory: its first line is not of type 'metadata'")
    if lines[0].get("trajectory_version", VERSION) > VERSION:
        version = lines[0]["trajectory_version"]
        raise TrajectoryError(f"trajectory version {version} is newer than {VERSION}: upgrade monocontext-rlm")


def _read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The complete lines of a file, decoded, and their length in bytes. An incomplete last line is left out."""
    data = path.read_bytes()
    whole_bytes = data.rfind(b"\n") + 1
    return [json.loads(line) for line in data[:whole_bytes].splitlines() if line.strip()], whole_bytes
