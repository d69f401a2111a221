"""Read a recorded run, to resume or replay it: its turns, the replies that it paid for, and its open question."""

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
from rlm.trajectory import decoding, fields
from rlm.trajectory.step import Step
from rlm.trajectory.trajectory import VERSION, partial_of

_REQUIRED_FIELDS: Mapping[str, Any] = {  # of a resumable run's metadata, with their types; `a.b` is the field b of a
    "query": str, "context": dict, "context.length": int | None, "context.type": str, "budget": dict, "max_depth": int,
    "environment_type": str, "environment_kwargs.cell_timeout": float | int | None,
    "environment_kwargs.output_limit": int, "backend": str, "backend_kwargs.model_name": str, "sub_model": str | None,
    "sub_backend": str | None, "sub_base_url": str | None, "sampling": dict | None, "sub_sampling": dict | None,
    "models": list | None, "source": str | None,
}  # fmt: skip


class Recording:
    """A recorded run. It gives each reply to a sub-call once. Safe for use by many threads."""

    def __init__(self, lines: list[dict[str, Any]], partial: Sequence[dict[str, Any]] = ()) -> None:
        """`lines`: of a trajectory. `partial`: the records of a turn that was in progress. Raises TrajectoryError."""
        try:
            _check_metadata(lines)
            self.metadata, *self.iterations = lines
            last_question = self._last_question()
            has_answer = bool(last_question) and last_question[-1]["final_answer"] is not None
            self.open_lines = [] if has_answer else last_question  # the lines of the question that has no answer yet
            turn_in_progress = len(self.iterations) + 1
            self._partial = [record for record in partial if record["iteration"] == turn_in_progress]
            replies = [record for record in self._partial if record["type"] == "reply" and "error" not in record]
            self._root_replies = {line["iteration"]: decoding.root_reply(line) for line in self.iterations}
            self._root_replies |= {record["turn"]: decoding.call_reply(record) for record in replies}
            self._children = [record for record in self._partial if record["type"] == "child"]
            calls = decoding.sub_calls(self.iterations)
            calls += [record for record in self._partial if record["type"] != "reply"]
            self.sub_models = tuple(dict.fromkeys(str(call["root_model"]) for call in calls))  # in order of first use
            self._lock = threading.Lock()  # guards `_calls`
            self._calls = _by_key(calls)
        except TrajectoryError:
            raise
        except decoding.SHAPE_ERRORS as exc:
            raise TrajectoryError(f"this is not a trajectory: {decoding.describe_error(exc)}") from exc

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """The recording of a file. Raises TrajectoryError."""
        file = Path(path)  # the file that is being read, which an error names
        try:
            lines = _read_lines(file)
            recording = cls(lines)
            if partial_of(file).exists():
                file = partial_of(file)
                recording = cls(lines, _read_lines(file))
            return recording
        except FileNotFoundError:
            raise TrajectoryError(f"there is no trajectory at {path}") from None
        except TrajectoryError as exc:
            raise TrajectoryError(f"{file}: {exc}") from exc.__cause__
        except (OSError, *decoding.SHAPE_ERRORS) as exc:
            raise TrajectoryError(f"{file} is not a trajectory: {decoding.describe_error(exc)}") from exc

    def root_reply(self, turn: int) -> Reply | None:
        """The reply of the root in this turn; None if there is none."""
        return self._root_replies.get(turn)

    def take_reply(self, key: str) -> Reply | None:
        """The next reply to a call with this key; None if none is left. Raises LLMError if the call failed."""
        call = self._take_call(key)
        if call and call.get("error"):
            error = LLMError(call["error"])
            error.reply = decoding.call_reply(call) if decoding.was_paid(call) else None
            raise error
        return decoding.call_reply(call) if call else None

    def take_child(self, key: str) -> ChildRun | None:
        """The next child run with this key; None if none is left."""
        call = self._take_call(key)
        return decoding.child_run(call) if call else None

    def _take_call(self, key: str) -> dict[str, Any] | None:
        with self._lock:
            return self._calls[key].popleft() if self._calls.get(key) else None

    def count_into(self, usage: Usage) -> None:
        """Add the cost of the open question so far to `usage`."""
        decoding.count_lines(self.open_lines, usage)
        for record in self._partial:
            if record["type"] != "child" and decoding.was_paid(record):  # calls of a child run have their own records
                reply = decoding.call_reply(record)
                usage.count(reply.model, ModelUsage.of_call(reply, cost_of(reply, usage.prices)))

    def reopen_if_allowed(self, budget: Budget) -> None:
        """Open the last question again if a limit ended it, unless it has spent that limit of `budget` too."""
        reason = str(self.iterations[-1].get("reason")) if self.iterations else ""
        if self.open_lines or not reason.startswith("max_"):
            return
        self.open_lines, usage = self._last_question(), Usage()
        self.count_into(usage)
        spent_and_limits: dict[str, tuple[float, float | None]] = {
            "max_iterations": (self.turns, budget.iterations), "max_calls": (usage.calls, budget.calls),
            "max_tokens": (usage.tokens, budget.tokens), "max_dollars": (usage.known_dollars, budget.dollars),
            "max_seconds": (self.seconds, budget.seconds),
        }  # fmt: skip
        spent, limit = spent_and_limits.get(reason, (0, None))
        if limit is not None and spent >= limit:
            self.open_lines = []  # it would end at once

    def _last_question(self) -> list[dict[str, Any]]:
        """The lines of the last question."""
        begin = max((index for index, line in enumerate(self.iterations) if line.get("question")), default=0)
        return self.iterations[begin:]

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
        # The sum is for files of rlms, which record no start of a turn.
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


def load_resumable(path: str | os.PathLike[str]) -> Recording:
    """The recording of a run that can be resumed. Raises TrajectoryError, also for a file of another program."""
    recording = Recording.load(path)
    metadata = dict(recording.metadata)
    for name in ("context", "environment_kwargs", "backend_kwargs"):
        if isinstance(inner := metadata.get(name), dict):
            metadata |= {f"{name}.{key}": value for key, value in inner.items()}
    for name, type_ in _REQUIRED_FIELDS.items():
        if not isinstance(metadata.get(name), type_):
            reason = f"its metadata has no valid field {name!r}, as if another program had written it"
            raise TrajectoryError(f"{path} cannot be resumed: {reason}")
    try:
        Budget(**metadata["budget"])
        if metadata["max_depth"] < 1:
            raise ValueError(f"max_depth must be at least 1, not {metadata['max_depth']}")
        recording.check_turns()
    except (TypeError, ValueError) as exc:
        raise TrajectoryError(f"{path} cannot be resumed: {exc}") from None
    return recording


def _by_key(calls: list[dict[str, Any]]) -> dict[str, deque[dict[str, Any]]]:
    """The recorded calls by key, those of one key in order."""
    by_key: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for call in sorted(calls, key=lambda call: call.get("order") or 0):
        messages = [{"role": "user", "content": fields.text(call.get("prompt"))}]
        key = call.get("key") or call_key(call["root_model"], messages)  # other programs record no key
        by_key[key].append(call)
    return by_key


def _check_metadata(lines: Sequence[Mapping[str, Any]]) -> None:
    """Raise TrajectoryError unless the first line begins a trajectory that this version reads."""
    if not lines or lines[0].get("type") != "metadata" or "root_model" not in lines[0]:
        raise TrajectoryError("this is not a trajectory: its first line is not of type 'metadata' with a `root_model`")
    version = lines[0].get("trajectory_version", VERSION)
    if version > VERSION:
        raise TrajectoryError(f"trajectory version {version} is newer than {VERSION}: upgrade monocontext-rlm")


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file, decoded, without an incomplete last line."""
    data = path.read_bytes()
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines() if line.strip()]
