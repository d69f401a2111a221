"""Decode lines of a trajectory into turns, replies and costs. It is strict; for the page, `fields` reads leniently.

Every function here raises one of SHAPE_ERRORS, such as TrajectoryError, for a line that it cannot decode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rlm.calls.records import ChildRun
from rlm.calls.usage import OWN_COUNTS, ModelUsage, Usage, is_amount
from rlm.errors import LLMError, TrajectoryError
from rlm.models.lm import Reply, TokenDetails
from rlm.runners.runner import CellResult
from rlm.trajectory import fields
from rlm.trajectory.step import Cell, Refusal, Step

SHAPE_ERRORS = (KeyError, ValueError, TypeError, AttributeError, RecursionError)
"""What indexing JSON of an unexpected shape raises; TrajectoryError is a ValueError."""


def read_step(line: Mapping[str, Any]) -> Step:
    """The turn that a line records, with the fields that the loop needs to continue."""
    prompt = tuple({"role": _text(item["role"]), "content": _text(item["content"])} for item in line["prompt"])
    if not prompt:
        raise TrajectoryError("the prompt is empty")
    return Step(
        line["iteration"], prompt, root_reply(line), tuple(map(_read_cell, line["code_blocks"])),
        line["final_answer"], _text(line.get("notice") or "") or None,
        thinking_seconds=_amount(line.get("thinking_seconds")) or 0.0,
        start_seconds=_amount(line.get("start_seconds")) or 0.0,
        seconds=_amount(line.get("iteration_time")) or 0.0, reason=line.get("reason"),
        refusal=cast("Refusal", _text(line.get("refusal") or "")), repeats=_count(line.get("repeats")),
    )  # fmt: skip


def _read_cell(block: Mapping[str, Any]) -> Cell:
    recorded = block["result"]
    result = CellResult(
        _text(recorded["stdout"]), _text(recorded["stderr"]), dict(recorded["locals"]),
        final_answer=recorded.get("final_answer"), execution_seconds=recorded.get("execution_time") or 0.0,
    )  # fmt: skip
    return Cell(_text(block["code"]), result, ranges=fields.ranges(block), handed=fields.ranges(block, "handed"))


def root_reply(line: Mapping[str, Any]) -> Reply:
    """The root's reply in a turn, without its cost. Its model is empty if no call was made."""
    counted = line.get("token_details") or {}
    counts = {kind: _count(counted.get(kind)) for kind in ("cache_read", "cache_write", "cache_write_1h", "reasoning")}
    details = TokenDetails(**counts, tier=str(counted.get("tier", "")), endpoint=str(counted.get("endpoint", "")))
    return Reply(
        _text(line["response"]), _count(line.get("prompt_tokens")), _count(line.get("completion_tokens")),
        _text(line.get("model") or ""), estimated=line.get("estimated") is True, details=details,
        cut=line.get("cut") is True, called=str(line.get("called") or ""), thinking=str(line.get("thinking") or ""),
        call_arguments=str(line.get("call_arguments") or ""),
    )  # fmt: skip


def call_reply(record: Mapping[str, Any]) -> Reply:
    """The reply of a recorded call, with its model and cost."""
    reply = root_reply(record)
    return replace(reply, model=reply.model or record["root_model"], dollars=_amount(record.get("dollars")))


def child_run(record: Mapping[str, Any]) -> ChildRun:
    """The child run of a recorded call."""
    usage = Usage()
    _count_call(record, usage)
    error = LLMError(record["error"]) if record.get("error") else None
    return ChildRun(_text(record["response"]), usage, record.get("iterations", ()), record.get("reason"), error)


def sub_calls(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records of the calls that the cells of some turns made."""
    return [call for line in lines for block in line["code_blocks"] for call in block["result"].get("rlm_calls", ())]


def count_lines(lines: Iterable[Mapping[str, Any]], usage: Usage) -> None:
    """Add the costs of the turns in `lines`, root and sub-calls."""
    for line in lines:
        reply = root_reply(line)
        if reply.model:
            usage.count(reply.model, ModelUsage.of_call(reply, _amount(line.get("dollars"))))
        for call in sub_calls([line]):
            _count_call(call, usage)


def _count_call(call: Mapping[str, Any], usage: Usage) -> None:
    """Add the costs of a recorded call, with those of its child run."""
    if call.get("cached") or not was_paid(call):
        return
    for model, sums in call["usage_summary"]["model_usage_summaries"].items():
        cost = _amount(sums.get("total_cost") if call.get("iterations") else call.get("dollars"))
        own_counts = {name: _count(sums.get(name)) for name in OWN_COUNTS}
        counts = {name: _count(sums.get(f"total_{name}")) for name in ("calls", "input_tokens", "output_tokens")}
        usage.count(model, ModelUsage(**counts, dollars=cost, **own_counts))


def was_paid(call: Mapping[str, Any]) -> bool:
    """Whether a recorded call was answered, or failed after it was charged."""
    return not call.get("error") or bool(call.get("prompt_tokens"))


def count_turns(lines: Sequence[Mapping[str, Any]]) -> int:
    """The number of turns in `lines`, including child runs at any depth."""
    return own_turns(lines) + sum(count_turns(call.get("iterations", ())) for call in sub_calls(lines))


def own_turns(lines: Sequence[Mapping[str, Any]]) -> int:
    """The number of turns in `lines`, without child runs; the call for a forced answer is not a turn."""
    return sum(line.get("reason") != "max_iterations" for line in lines)


def describe_error(exc: Exception) -> str:
    """What is wrong with a line, in words, from one of SHAPE_ERRORS."""
    return f"{exc} is missing" if isinstance(exc, KeyError) else str(exc)


def _count(recorded: object) -> int:
    """A number of calls or tokens; 0 if it is missing. Raises TrajectoryError for anything else."""
    if recorded is None or (type(recorded) is int and 0 <= recorded < 1 << 63):
        return recorded or 0
    raise TrajectoryError(f"expected a number of calls or tokens, found {recorded!r}")


def _amount(recorded: object) -> float | None:
    """An amount of dollars or seconds; None if it is not known. Raises TrajectoryError for anything else."""
    if recorded is None or is_amount(recorded):
        return cast("float | None", recorded)
    raise TrajectoryError(f"expected an amount of dollars or seconds, found {recorded!r}")


def _text(recorded: object) -> str:
    if isinstance(recorded, str):
        return recorded
    raise TrajectoryError(f"expected a text, found {recorded!r}")
