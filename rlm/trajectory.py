"""The record of a run: JSON lines in the shape of rlms, which its visualizer opens.

One `metadata` line, then one `iteration` line per call of the root model. There are no other kinds of line, because a
reader takes anything else for an iteration; what is ours stands inside: `trajectory_version` and `context` in the
metadata, `io` in the result of a cell.
"""

from __future__ import annotations

import json
import os
import secrets as randomness
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlm.step import Cell, Step
from rlm.subcalls import SubCall

VERSION = 1
"""Of our fields in the metadata line; raised when a reader of the old ones would go wrong."""


class Trajectory:
    """Collects the lines of one run, and writes each to a file as soon as it is known."""

    def __init__(
        self, target: str | os.PathLike[str] | None = None, *, secrets: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`target`: a path that ends in `.jsonl`, replaced by each run, or a directory, which gets one file per run.

        What `secrets()` gives is never written to the file, wherever it turns up; it is asked before each line.
        """
        self.records: list[dict[str, Any]] = []
        """The lines so far."""
        self.path: Path | None = None if target is None else _file(Path(target))
        """The file, or None when nothing is written."""
        self._secrets = secrets
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text("")

    def begin(self, metadata: Mapping[str, Any]) -> None:
        """Write the metadata line."""
        self._add({"type": "metadata", "timestamp": _now(), "trajectory_version": VERSION, **metadata})

    def add(self, step: Step) -> None:
        """Write the line of one step."""
        self._add(
            {
                "type": "iteration",
                "iteration": step.iteration,
                "timestamp": _now(),
                "prompt": [dict(message) for message in step.prompt],
                "response": step.reply.text,
                "code_blocks": [{"code": cell.code, "result": _result(cell)} for cell in step.cells],
                "final_answer": step.final_answer,
                "iteration_time": round(step.seconds, 6),
            }
        )

    def _add(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if self.path:
            line = json.dumps(record)
            for secret in self._secrets():
                line = line.replace(json.dumps(secret)[1:-1], "[secret]")
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def run_metadata(
    *, root_model: str, backend: str, base_url: str | None, runner: str, max_iterations: int,
    runner_options: Mapping[str, Any], context: object,
) -> dict[str, Any]:  # fmt: skip
    """The fields of the metadata line. A base URL is stripped of user, password and query."""
    backend_kwargs: dict[str, Any] = {"model_name": root_model}
    if base_url is not None:
        url = urlsplit(str(base_url))
        backend_kwargs["base_url"] = url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
    return {
        "root_model": root_model,
        "max_depth": 1,
        "max_iterations": max_iterations,
        "backend": backend,
        "backend_kwargs": backend_kwargs,
        "environment_type": runner,
        "environment_kwargs": dict(runner_options),
        "other_backends": None,
        "context": context,
    }


def _result(cell: Cell) -> dict[str, Any]:
    result: dict[str, Any] = {
        "stdout": cell.result.stdout,
        "stderr": cell.result.stderr,
        "locals": dict(cell.result.variables),
        "execution_time": round(cell.result.execution_seconds, 6),
        "rlm_calls": [_call(call) for call in cell.result.calls],
        "final_answer": cell.result.final_answer,
    }
    if cell.io is not None:
        result["io"] = dict(cell.io)
    return result


def _call(call: SubCall) -> dict[str, Any]:
    """Usage in both spellings: rlms writes the summary, its viewer reads the plain fields."""
    used = {
        "total_calls": 1,
        "total_input_tokens": call.input_tokens,
        "total_output_tokens": call.output_tokens,
    }
    record: dict[str, Any] = {
        "root_model": call.model,
        "prompt": call.prompt,
        "response": call.response,
        "execution_time": round(call.execution_seconds, 6),
        "prompt_tokens": call.input_tokens,
        "completion_tokens": call.output_tokens,
        "usage_summary": {"model_usage_summaries": {call.model: used}},
    }
    return record | ({"error": call.error} if call.error else {})


def _file(target: Path) -> Path:
    if target.suffix == ".jsonl" and not target.is_dir():
        return target
    return target / f"rlm_{datetime.now():%Y-%m-%d_%H-%M-%S}_{randomness.token_hex(4)}.jsonl"


def _now() -> str:
    return datetime.now().isoformat()
