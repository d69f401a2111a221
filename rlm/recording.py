"""What a trajectory holds of a run: its turns, and everything that was paid for. Read back to resume or to replay."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlm.errors import LLMError, TrajectoryError
from rlm.lm import Reply
from rlm.runner import CellResult
from rlm.step import Cell, Step
from rlm.sub_cache import call_key
from rlm.trajectory import VERSION, partial_of
from rlm.usage import Usage

_OF_OTHER_SHAPE = (KeyError, TypeError, AttributeError, RecursionError)
"""What reading raises for JSON that is no trajectory."""


class Recording:
    """The replies of a run, each given out once. Safe for use by many threads."""

    def __init__(self, lines: list[dict[str, Any]], partial: list[dict[str, Any]] | None = None) -> None:
        """`lines` of a trajectory, and the `partial` records of a turn that was under way."""
        if not lines or lines[0].get("type") != "metadata":
            raise TrajectoryError("a trajectory begins with a line of type 'metadata'")
        if lines[0].get("trajectory_version", VERSION) > VERSION:
            raise TrajectoryError(f"this trajectory has version {lines[0]['trajectory_version']}, known is {VERSION}")
        self.metadata = lines[0]
        """The first line."""
        self.iterations = lines[1:]
        """The turns that were taken to their end."""
        ends = [i for i, line in enumerate(self.iterations, 1) if line["final_answer"] is not None]
        self.open = self.iterations[ends[-1] if ends else 0 :]
        """Of these, the ones of a question that has no answer yet."""
        self._partial = [record for record in partial or () if record["iteration"] == len(lines)]
        self._lock = threading.Lock()
        self._turns = {line["iteration"]: _reply_of_turn(line) for line in self.iterations}
        self._calls: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        records = [
            call
            for line in self.iterations
            for block in line["code_blocks"]
            for call in block["result"].get("rlm_calls", ())
        ]
        for record in self._partial:
            if record["type"] == "reply" and "error" not in record:
                self._turns[record["turn"]] = _reply(record)
            elif record["type"] != "reply":
                records.append(record)
        self.sub_models = tuple(dict.fromkeys(str(record["root_model"]) for record in records))
        """Models that cells asked, in the order in which they are first met."""
        for record in sorted(records, key=lambda record: record.get("order") or 0):
            self._calls[record.get("key") or _key(record)].append(record)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> tuple[Recording, int]:
        """The recording of a file, and how many of its bytes are whole lines. Raises TrajectoryError."""
        try:
            lines, whole = _lines(Path(path))
            beside = partial_of(Path(path))
            return cls(lines, _lines(beside)[0] if beside.exists() else None), whole
        except TrajectoryError:
            raise
        except FileNotFoundError:
            raise TrajectoryError(f"there is no trajectory at {path}") from None
        except (OSError, ValueError, *_OF_OTHER_SHAPE) as exc:
            raise TrajectoryError(f"{path} is no trajectory: {_why(exc)}") from exc

    def take(self, key: str) -> Reply | None:
        """The next recorded reply to this call, once each; None when there is none left. Raises what was raised."""
        with self._lock:
            record = self._calls[key].popleft() if self._calls.get(key) else None
        if record is None:
            return None
        if record.get("error"):
            raise LLMError(record["error"])
        return _reply(record)

    def take_turn(self, turn: int) -> Reply | None:
        """What the root replied in this turn; None when it was not asked."""
        return self._turns.get(turn)

    def count_into(self, usage: Usage) -> None:
        """Add everything that was paid for the open question."""
        count_lines(self.open, usage)
        for record in self._partial:
            if record["type"] != "child" and "error" not in record:
                usage.add(_reply(record))

    @property
    def seconds(self) -> float:
        """What the turns of the open question took."""
        return sum(line.get("iteration_time") or 0.0 for line in self.open)

    @property
    def turns(self) -> int:
        """Turns of the open question, those of its child runs included."""
        calls = [c for line in self.open for block in line["code_blocks"] for c in block["result"].get("rlm_calls", ())]
        return len(self.open) + sum(len(call.get("iterations", ())) for call in calls)

    def steps(self) -> list[Step]:
        """All recorded turns, as far as the loop needs them to go on. Raises TrajectoryError."""
        try:
            return [_step(line) for line in self.iterations]
        except _OF_OTHER_SHAPE as exc:
            raise TrajectoryError(f"a turn of this trajectory is not as it should be: {_why(exc)}") from exc


def count_lines(lines: Iterable[Mapping[str, Any]], usage: Usage) -> None:
    """Add what the turns in `lines` cost, root and sub-calls."""
    for line in lines:
        reply = _reply_of_turn(line)
        if reply.model:
            usage.count(reply.model, 1, reply.input_tokens, reply.output_tokens, line.get("dollars"))
        for call in (call for block in line["code_blocks"] for call in block["result"].get("rlm_calls", ())):
            if call.get("error") or call.get("cached"):
                continue
            for model, sums in call["usage_summary"]["model_usage_summaries"].items():
                cost = sums.get("total_cost") if call.get("iterations") else call.get("dollars")
                usage.count(model, sums["total_calls"], sums["total_input_tokens"], sums["total_output_tokens"], cost)


def _why(exc: Exception) -> str:
    return f"{exc} is missing" if isinstance(exc, KeyError) else str(exc)


def _lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The whole lines of a file; a last one without its end was being written when the process ended."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    return [json.loads(line) for line in data[:whole].splitlines() if line.strip()], whole


def _reply(record: Mapping[str, Any]) -> Reply:
    return Reply(
        record["response"], record.get("prompt_tokens") or 0, record.get("completion_tokens") or 0,
        record.get("model") or record["root_model"], record.get("dollars"),
    )  # fmt: skip


def _reply_of_turn(line: Mapping[str, Any]) -> Reply:
    return Reply(
        line["response"], line.get("prompt_tokens") or 0, line.get("completion_tokens") or 0, line.get("model") or ""
    )


def _key(record: Mapping[str, Any]) -> str:
    """Of a call in the trajectory of another writer."""
    prompt = record["prompt"]
    return call_key(record["root_model"], [{"role": "user", "content": prompt if isinstance(prompt, str) else ""}])


def _step(line: Mapping[str, Any]) -> Step:
    cells = tuple(_cell(block) for block in line["code_blocks"])
    seconds = line.get("iteration_time") or 0.0
    return Step(
        line["iteration"], tuple(line["prompt"]), _reply_of_turn(line), cells, line["final_answer"],
        line.get("notice"), line.get("thinking_seconds") or 0.0, seconds, line.get("reason"),
    )  # fmt: skip


def _cell(block: Mapping[str, Any]) -> Cell:
    result = block["result"]
    return Cell(
        block["code"],
        CellResult(
            result["stdout"], result["stderr"], result["locals"], (), result.get("final_answer"),
            result.get("execution_time") or 0.0,
        ),
    )  # fmt: skip
