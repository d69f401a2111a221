"""Lines of trajectories, as a test wants them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def line(number: int, **more: Any) -> dict[str, Any]:
    """A turn as rlms writes it, with what is ours in `more`."""
    result: dict[str, Any] = {"stdout": f"output {number}\n", "stderr": "", "locals": {}, "execution_time": 0.5}
    result |= {"rlm_calls": [], "final_answer": None}
    return {
        "type": "iteration", "iteration": number, "timestamp": "2026-11-22",
        "prompt": [{"role": "user", "content": "hello"}],
        "response": "Next.", "code_blocks": [{"code": f"step = {number}", "result": result}],
        "final_answer": None, "iteration_time": 2.0,
    } | more  # fmt: skip


def head(**more: Any) -> dict[str, Any]:
    """A metadata line as rlms writes it."""
    return {"type": "metadata", "timestamp": "2026-11-22", "root_model": "gpt-5", "max_depth": 1, "max_iterations": 30,
            "backend": "openai", "backend_kwargs": {"model_name": "gpt-5"}, "environment_type": "local",
            "environment_kwargs": {}, "other_backends": None} | more  # fmt: skip


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path
