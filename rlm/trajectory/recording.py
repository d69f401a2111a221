"""Read a trajectory back, to resume or to replay a run: its turns, and every call that was paid for."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from rlm.calls.budget import Budget
from rlm.calls.usage import OWN_COUNTS, ModelUsage, Usage, cost_of
from rlm.errors import LLMError, ScriptExhausted, TrajectoryError
from rlm.models.lm import Message, Reply, TokenDetails, call_key, is_amount
from rlm.runners.runner import CellResult
from rlm.trajectory import fields
from rlm.trajectory.step import Cell, Step
from rlm.trajectory.trajectory import VERSION, partial_of

# Errors of reading JSON that is not a trajectory.
_SHAPE_ERRORS = (KeyError, ValueError, TypeError, AttributeError, RecursionError)


class Recording:
    """The replies of a run, each taken once. Safe for use by many threads."""

    def __init__(self, lines: list[dict[str, Any]], partial: Sequence[dict[str, Any]] = ()) -> None:
        """`lines` of a trajectory, and the `partial` records of a turn that was under way. Raises TrajectoryError."""
        try:
            _check_first_line(lines)
            self._index(lines, partial)
        except TrajectoryError:
            raise
        except _SHAPE_ERRORS as exc:
            raise TrajectoryError(f"this is not a trajectory: {_describe_error(exc)}") from exc

    def _index(self, lines: list[dict[str, Any]], partial: Sequence[dict[str, Any]]) -> None:
        """Find the turns and calls of the run."""
        self.metadata = lines[0]  # the first line
        self.iterations = lines[1:]  # the lines of the turns that ended
        self.open = self._open_lines()  # lines of a question without an answer; an earlier one may have been broken off
        self._partial = [record for record in partial if record["iteration"] == len(lines)]
        self._lock = threading.Lock()
        replies = [record for record in self._partial if record["type"] == "reply" and "error" not in record]
        self._turns = {line["iteration"]: _reply_of_turn(line) for line in self.iterations}
        self._turns |= {record["turn"]: _reply(record) for record in replies}
        calls = _sub_calls(self.iterations) + [record for record in self._partial if record["type"] != "reply"]
        self.sub_models = tuple(dict.fromkeys(str(record["root_model"]) for record in calls))
        """Models of the calls of cells, in the order of their first call."""
        self._calls: dict[str, deque[dict[str, Any]]] = defaultdict(deque)  # by key, in the order of the calls
        for record in sorted(calls, key=lambda record: record.get("order") or 0):
            prompt = record.get("prompt")
            messages = [{"role": "user", "content": prompt if isinstance(prompt, str) else ""}]
            key = record.get("key") or call_key(record["root_model"], messages)  # other writers record no key
            self._calls[key].append(record)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> tuple[Recording, int]:
        """The recording of a file, and how many of its bytes are whole lines. Raises TrajectoryError."""
        try:
            lines, whole = _read_lines(Path(path))
            partial_path = partial_of(Path(path))
            return cls(lines, _read_lines(partial_path)[0] if partial_path.exists() else ()), whole
        except TrajectoryError as exc:
            raise TrajectoryError(f"{path}: {exc}") from exc.__cause__
        except FileNotFoundError:
            raise TrajectoryError(f"there is no trajectory at {path}") from None
        except (OSError, *_SHAPE_ERRORS) as exc:
            raise TrajectoryError(f"{path} is not a trajectory: {_describe_error(exc)}") from exc

    def take(self, key: str) -> Reply | None:
        """The next recorded reply to the call with this key; None if none is left. Raises LLMError if it failed."""
        with self._lock:
            record = self._calls[key].popleft() if self._calls.get(key) else None
        if record is None:
            return None
        if record.get("error"):
            raise LLMError(record["error"])
        return _reply(record)

    def take_turn(self, turn: int) -> Reply | None:
        """The reply of the root in this turn; None if there is none."""
        return self._turns.get(turn)

    def count_into(self, usage: Usage) -> None:
        """Add the cost of the open question so far to `usage`."""
        count_lines(self.open, usage)
        for record in self._partial:
            if record["type"] != "child" and ("error" not in record or record.get("prompt_tokens")):
                reply = _reply(record)
                usage.count(reply.model, ModelUsage.of_call(reply, cost_of(reply, usage.prices)))

    def reopen(self, budget: Budget) -> None:
        """Take the last question as open again, if a limit ended it that `budget` raises."""
        if not self.iterations or self.open:
            return
        reason = str(self.iterations[-1].get("reason"))
        if not reason.startswith("max_"):
            return
        limit = reason.removeprefix("max_")
        now, then = getattr(budget, limit, None), (self.metadata.get("budget") or {}).get(limit)
        if now is None or (then is not None and now > then):
            self.open = self._open_lines(limits_end=False)

    def _open_lines(self, *, limits_end: bool = True) -> list[dict[str, Any]]:
        """The lines after the last answer, or from the last question on. `limits_end`: an answer at a limit counts."""
        begin = 0
        for i, line in enumerate(self.iterations):
            if line.get("question"):
                begin = max(begin, i)
            if line["final_answer"] is not None and (limits_end or not str(line.get("reason")).startswith("max_")):
                begin = i + 1
        return self.iterations[begin:]

    @property
    def seconds(self) -> float:
        """The duration of the turns of the open question."""
        return sum(line.get("iteration_time") or 0.0 for line in self.open)

    def steps(self) -> list[Step]:
        """All recorded turns, as far as the loop needs them to go on."""
        return [_step(line) for line in self.iterations]

    def check_turns(self) -> None:
        """Raise TrajectoryError if a turn lacks what a resumed run needs, or has it in another type."""
        turn = 1
        try:
            for line in self.iterations:
                _step(line)
                count_lines([line], Usage())
                turn += 1  # after the last line, the one that was under way
            self.count_into(Usage())
        except _SHAPE_ERRORS as exc:
            raise TrajectoryError(f"turn {turn} is damaged: {_describe_error(exc)}") from exc


def _check_first_line(lines: Sequence[Mapping[str, Any]]) -> None:
    """Raise TrajectoryError unless the first line begins a trajectory that this version reads."""
    if not lines or lines[0].get("type") != "metadata":
        raise TrajectoryError("this is not a trajectory: its first line is not of type 'metadata'")
    if lines[0].get("trajectory_version", VERSION) > VERSION:
        raise TrajectoryError(
            f"this trajectory has version {lines[0]['trajectory_version']}, and this version of rlm reads up to "
            f"{VERSION}: upgrade monocontext-rlm"
        )


def count_lines(lines: Iterable[Mapping[str, Any]], usage: Usage) -> None:
    """Add the costs of the turns in `lines`, root and sub-calls."""
    for line in lines:
        reply = _reply_of_turn(line)
        if reply.model:
            usage.count(reply.model, ModelUsage.of_call(reply, _amount(line.get("dollars"))))
        for call in _sub_calls([line]):
            if call.get("cached") or (call.get("error") and not call.get("prompt_tokens")):
                continue  # nothing was paid
            for model, sums in call["usage_summary"]["model_usage_summaries"].items():
                cost = _amount(sums.get("total_cost") if call.get("iterations") else call.get("dollars"))
                usage.count(model, _model_usage(sums, cost))


def count_turns(lines: Sequence[Mapping[str, Any]]) -> int:
    """The number of turns in `lines`, including child runs at any depth."""
    return len(lines) + sum(count_turns(call.get("iterations", ())) for call in _sub_calls(lines))


def _model_usage(sums: Mapping[str, Any], cost: float | None) -> ModelUsage:
    calls, into, out = (_count(sums.get(f"total_{kind}")) for kind in ("calls", "input_tokens", "output_tokens"))
    return ModelUsage(calls, into, out, cost, **{name: _count(sums.get(name)) for name in OWN_COUNTS})


def _sub_calls(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The recorded calls of the cells of some turns."""
    return [call for line in lines for block in line["code_blocks"] for call in block["result"].get("rlm_calls", ())]


def _count(recorded: object) -> int:
    """A number of calls or tokens, 0 if it is missing. Raises TrajectoryError for an invalid one."""
    if recorded is None or (type(recorded) is int and recorded >= 0):
        return recorded or 0
    raise TrajectoryError(f"expected a number of calls or tokens, found {recorded!r}")


def _amount(recorded: object) -> float | None:
    """Dollars or seconds, None where unknown. Raises TrajectoryError for an invalid amount."""
    if recorded is None or is_amount(recorded):
        return cast("float | None", recorded)
    raise TrajectoryError(f"expected an amount of dollars or seconds, found {recorded!r}")


def _text(recorded: object) -> str:
    if isinstance(recorded, str):
        return recorded
    raise TrajectoryError(f"expected a text, found {recorded!r}")


def _describe_error(exc: Exception) -> str:
    return f"{exc} is missing" if isinstance(exc, KeyError) else str(exc)


def _read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The complete lines of a file, and their bytes; an incomplete last line is left out."""
    data = path.read_bytes()
    complete = data.rfind(b"\n") + 1
    return [json.loads(line) for line in data[:complete].splitlines() if line.strip()], complete


def _reply(record: Mapping[str, Any]) -> Reply:
    """The reply of a recorded call."""
    reply = _reply_of_turn(record)
    return replace(reply, model=reply.model or record["root_model"], dollars=_amount(record.get("dollars")))


def _reply_of_turn(line: Mapping[str, Any]) -> Reply:
    """The reply of the root in a turn; without a model where no call was made, and without dollars."""
    counted = line.get("token_details") or {}
    counts = {kind: _count(counted.get(kind)) for kind in ("cache_read", "cache_write", "cache_write_1h", "reasoning")}
    details = TokenDetails(**counts, tier=str(counted.get("tier", "")), endpoint=str(counted.get("endpoint", "")))
    return Reply(
        _text(line["response"]), _count(line.get("prompt_tokens")), _count(line.get("completion_tokens")),
        _text(line.get("model") or ""), estimated=line.get("estimated") is True, details=details,
        cut=line.get("cut") is True, called=str(line.get("called") or ""), thinking=str(line.get("thinking") or ""),
        call_arguments=str(line.get("call_arguments") or ""),
    )  # fmt: skip


def _step(line: Mapping[str, Any]) -> Step:
    *before, last = [{"role": _text(item["role"]), "content": _text(item["content"])} for item in line["prompt"]]
    return Step(
        line["iteration"], (*before, last), _reply_of_turn(line), tuple(map(_cell, line["code_blocks"])),
        line["final_answer"], _text(line.get("notice") or "") or None,
        thinking_seconds=_amount(line.get("thinking_seconds")) or 0.0,
        seconds=_amount(line.get("iteration_time")) or 0.0, reason=line.get("reason"),
        repeats=_count(line.get("repeats")),
    )  # fmt: skip


def _cell(block: Mapping[str, Any]) -> Cell:
    recorded = block["result"]
    result = CellResult(
        _text(recorded["stdout"]), _text(recorded["stderr"]), dict(recorded["locals"]),
        final_answer=recorded.get("final_answer"), execution_seconds=recorded.get("execution_time") or 0.0,
    )  # fmt: skip
    return Cell(_text(block["code"]), result, ranges=fields.ranges(block), handed=fields.ranges(block, "handed"))


class ReplayLM:
    """Replays the replies of a trajectory, as root and as model of sub-calls: shows a run again without costs.

    A prompt of several messages gets the next reply of the recorded root; a single message gets the recorded reply to
    it. A call that was not recorded raises ScriptExhausted. A run with child runs, whose roots send such prompts too,
    cannot be replayed.
    """

    def __init__(self, trajectory: str | os.PathLike[str] | Iterable[dict[str, Any]]) -> None:
        """`trajectory`: a file, or the lines of one, as `Completion.trajectory` holds them. Raises TrajectoryError."""
        if isinstance(trajectory, (str, os.PathLike)):
            self._recording, _ = Recording.load(trajectory)
        else:
            self._recording = Recording(list(trajectory))
        if any(call.get("iterations") for call in _sub_calls(self._recording.iterations)):
            raise TrajectoryError("a run with child runs cannot be replayed")
        if "root_model" not in self._recording.metadata:
            raise TrajectoryError("this is not a trajectory: root_model is missing")
        self.model = str(self._recording.metadata["root_model"])
        """The root model of the recorded run."""
        self._lock = threading.Lock()
        self._turn = 0

    def complete(
        self, messages: Sequence[Message], *, model: str | None = None, on_delta: Callable[[str], object] | None = None
    ) -> Reply:
        """The recorded reply. Raises ScriptExhausted if there is none, LLMError if the recorded call failed."""
        if len(messages) > 1:
            with self._lock:
                self._turn += 1
                turn = self._turn
            reply = self._recording.take_turn(turn)
            missing = f"the trajectory holds no turn {turn}"
        else:
            names = self._recording.sub_models if model is None else (model,)
            replies = (self._recording.take(call_key(name, messages)) for name in names)
            reply = next((reply for reply in replies if reply), None)
            missing = f"the trajectory holds no answer to the prompt {messages[0]['content'][:80]!r}"
        if reply is None:
            raise ScriptExhausted(missing)
        if on_delta:
            for line in reply.text.splitlines(keepends=True):
                on_delta(line)
        return reply if reply.model else replace(reply, model=self.model)  # rlms does not write it
