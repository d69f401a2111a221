"""Write the record of a run as it happens: JSON lines in the shape of rlms, which the visualizer of rlms opens.

The file has one `metadata` line, then one `iteration` line per call of the root model. It has no lines of other types,
since other readers take them for iterations. Calls within a turn are written at once to a second file, `NAME.partial`,
which is deleted when the line of the turn repeats them. So a process that is killed at any moment leaves a record of
all that it paid for. A loss of power may lose records, since there is no fsync. `docs/rlm.md` lists the fields.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rlm.calls.usage import ModelUsage, Usage, cost_of
from rlm.models.lm import reply_fields
from rlm.models.log import WARNING, log
from rlm.trajectory.source import Read, Source
from rlm.trajectory.step import Cell, Step

VERSION = 1  # of our fields, in the metadata line; readers refuse a higher one
_WORDS = ("metadata", "iteration", "reply", "call", "child", "system", "user", "assistant")  # types and roles
_DATA = ("context_value", "locals", "model_usage_summaries")  # fields whose objects have names of the run, not ours


class Trajectory:
    """Collects the lines of one run, and writes each to a file as soon as it is known. Safe for many threads."""

    def __init__(
        self, target: str | os.PathLike[str] | None = None, *, secrets: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`target`: a file whose name ends in `.jsonl` and which each run replaces, or a directory that gets a file per
        run. `secrets`: called before each line; the strings that it returns are written as `[secret]`."""
        self.records: list[dict[str, Any]] = []  # the lines so far
        self.path: Path | None = None if target is None else _path_for(Path(target))  # None if nothing is written
        self.warning = ""  # why the file is not complete; empty if it is
        self._secrets = secrets
        self._lock = threading.Lock()  # guards the files and `warning`
        self._ended = False  # whether the last question has its answer

    def begin(self, metadata: Mapping[str, Any]) -> None:
        """Write the metadata line to a new or emptied file. Raises OSError, before any call is paid."""
        now = datetime.now().isoformat()
        self.records.append({"type": "metadata", "timestamp": now, "trajectory_version": VERSION, **metadata})
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial_of(self.path).unlink(missing_ok=True)
            self.path.write_bytes(self._encode(self.records[-1]))

    def resume(self, records: Iterable[dict[str, Any]]) -> None:
        """Continue a file that has these lines. Cuts off an incomplete last line."""
        self.records = list(records)
        for path in (self.path, partial_of(self.path)) if self.path else ():
            if path.exists():
                os.truncate(path, path.read_bytes().rfind(b"\n") + 1)

    def add(
        self, step: Step, usage: Usage, question: str | None = None, sources: Sequence[Source] = (),
        reads: Sequence[Read] = (),
    ) -> None:  # fmt: skip
        """Write the line of one step, with the totals of `usage`. `question`: set if the step begins a question that is
        not in the metadata line. `sources`, `reads`: set if the step ends a question."""
        line = iteration_line(step, usage) | ({"question": question} if question else {})
        if sources:
            line["sources"] = [source.to_dict() for source in sources]
        if reads:
            line["reads"] = [read.to_dict() for read in reads]
        self.records.append(line)
        self._ended = step.reason is not None
        if self.path:
            self._append(self.path, line)
            self._change(partial(partial_of(self.path).unlink, missing_ok=True))

    def write_ahead(self, record: Mapping[str, Any]) -> None:
        """Write a call that has just ended to `NAME.partial`. A call that ends after its run is not recorded."""
        if self.path and not self._ended:
            self._append(partial_of(self.path), {**record, "iteration": len(self.records)})

    def reopen(self) -> None:
        """Begin another question. Drops the calls of an earlier one that was interrupted within a turn."""
        self._ended = False
        if self.path:
            self._change(partial(partial_of(self.path).unlink, missing_ok=True))

    def _append(self, path: Path, record: Mapping[str, Any]) -> None:
        data = self._encode(record)

        def append() -> None:
            with path.open("ab") as file:
                file.write(data)

        self._change(append)

    def _encode(self, record: Mapping[str, Any]) -> bytes:
        """The line of a record, without the secrets in it: the longest first, since one may contain another."""
        secrets = sorted(filter(None, self._secrets()), key=len, reverse=True)  # an empty one would match everywhere
        return json.dumps(_hide(record, secrets) if secrets else record).encode() + b"\n"

    def _change(self, change: Callable[[], object]) -> None:
        """Change a file, unless an earlier change failed, as on a full disk: lines after a gap are of no use."""
        with self._lock:
            if self.warning:
                return
            try:
                change()
            except OSError as exc:
                self.warning = f"the trajectory ends early: {self.path} cannot be written: {exc.strerror or exc}"
                log(WARNING, "%s", self.warning)


def _hide(value: Any, secrets: Sequence[str], *, is_data: bool = False) -> Any:
    """A JSON value with `[secret]` for each secret in its texts and, if `is_data`, in its names: no fields of ours."""
    if isinstance(value, str) and value not in _WORDS:
        for secret in secrets:
            value = value.replace(secret, "[secret]")
    elif isinstance(value, Mapping):
        hidden = {name: _hide(item, secrets, is_data=is_data or name in _DATA) for name, item in value.items()}
        return {_hide(name, secrets): item for name, item in hidden.items()} if is_data else hidden
    elif isinstance(value, (list, tuple)):
        return [_hide(item, secrets, is_data=is_data) for item in value]
    return value


def partial_of(path: Path) -> Path:
    """The file, next to a trajectory, with the calls of the turn in progress."""
    return path.with_name(path.name + ".partial")


def iteration_line(step: Step, usage: Usage) -> dict[str, Any]:
    """The record of one step. `usage`: the totals of the run, this step included."""
    return {
        "type": "iteration", "iteration": step.iteration, "prompt": [dict(message) for message in step.prompt],
        "code_blocks": [{"code": cell.code, "result": _result(cell)} for cell in step.cells],
        "final_answer": step.final_answer, "iteration_time": round(step.seconds, 6), "reason": step.reason,
        "notice": step.notice, "start_seconds": round(step.start_seconds, 6),
        "thinking_seconds": round(step.thinking_seconds, 6), "model": step.reply.model,
        "dollars": cost_of(step.reply, usage.prices), "compacted": step.compacted,
        **({"repeats": step.repeats} if step.repeats else {}), **({"refusal": step.refusal} if step.refusal else {}),
        "ahead": step.ahead and dict(step.ahead), **reply_fields(step.reply),
        "totals": {"calls": usage.calls, "prompt_tokens": usage.input_tokens,
                   "completion_tokens": usage.output_tokens, "dollars": usage.dollars},
        "timestamp": datetime.now().isoformat(),
    }  # fmt: skip


def _result(cell: Cell) -> dict[str, Any]:
    """The record of a cell. Calls have their usage twice: rlms writes the summary, its visualizer reads the fields."""
    result = cell.result
    calls: list[dict[str, Any]] = []
    for call in result.calls:
        reply = call.reply
        used = {"model_usage_summaries": {reply.model: ModelUsage.of_call(reply, None).to_dict()}}
        calls.append({
            "root_model": reply.model, "prompt": call.prompt, "execution_time": round(call.execution_seconds, 6),
            "usage_summary": used, "dollars": call.dollars, "start_seconds": round(call.start_seconds, 6),
            "cached": reply.cached, "key": call.key, "order": call.order, **reply_fields(reply),
            **(call.child.to_dict() if call.child else {}), **({"error": call.error} if call.error else {}),
        })  # fmt: skip
    costs = [call.dollars for call in result.calls if call.error is None or call.reply.input_tokens]  # of paid calls
    seconds = {
        "executing": round(result.execution_seconds, 6), "waiting_for_calls": round(cell.calls_seconds, 6),
        "waiting_for_storage": None if cell.io is None or "ms" not in cell.io else cell.io["ms"] / 1000,
    }  # fmt: skip
    return {
        "stdout": result.stdout, "stderr": result.stderr, "locals": dict(result.variables),
        "execution_time": round(result.execution_seconds, 6), "rlm_calls": calls,
        "final_answer": result.final_answer, "start_seconds": round(cell.start_seconds, 6),
        "prompt_tokens": sum([call.reply.input_tokens for call in result.calls]),
        "completion_tokens": sum([call.reply.output_tokens for call in result.calls]),
        "dollars": None if None in costs else sum(cost or 0.0 for cost in costs),
        "seconds": seconds, "ahead": cell.ahead and dict(cell.ahead),
        "ranges": None if cell.ranges is None else [list(pair) for pair in cell.ranges],
        "handed": None if cell.handed is None else [list(pair) for pair in cell.handed],
        **({} if cell.io is None else {"io": dict(cell.io)}),
    }  # fmt: skip


def _path_for(target: Path) -> Path:
    """The path of the trajectory for a target; a new name in a directory."""
    if target.suffix == ".jsonl" and not target.is_dir():
        return target
    return target / f"rlm_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.urandom(4).hex()}.jsonl"
