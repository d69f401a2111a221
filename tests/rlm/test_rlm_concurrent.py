"""100 runs at once in one process against an endpoint on this machine: nothing leaks, nothing is mixed up."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rlm import RLM, Completion
from rlm.prompts.system import conversation

RUNS = 100


@pytest.fixture
def model(endpoint: Any) -> Any:
    """Each run is told its number by its context; root and sub-calls answer from what that run says alone."""
    endpoint.request_queue_size = 256
    endpoint.socket.listen(256)

    def reply(body: dict[str, Any]) -> str:
        messages = body["messages"]
        if len(messages) == 1:
            return f"sub of {messages[0]['content']}"
        asked = conversation(messages)
        number = re.search(r"question (\d+)", asked[0]["content"])
        assert number is not None
        if len(asked) > 1:
            return "```repl\nprint('second', context)\nFINAL(f'{mine} {context}: {subs[0]}, {subs[3]}')\n```"
        return (
            f"```repl\nimport sys\nmine = {number[1]}\nprint('first', context)\nsys.stdout.write('raw ' + context)\n"
            "subs = llm_query_batched([f'{context} {i}' for i in range(4)])\nprint(subs)\n```"
        )

    endpoint.reply = reply
    return endpoint


def check(completions: list[Completion]) -> None:
    for i, completion in enumerate(completions):
        assert completion.answer == f"{i} context {i}: sub of context {i} 0, sub of context {i} 3"
        first, second = (line["code_blocks"][0]["result"]["stdout"] for line in completion.trajectory[1:])
        subs = [f"sub of context {i} {k}" for k in range(4)]
        assert first == f"first context {i}\nraw context {i}{subs}\n"
        assert second == f"second context {i}\n"
        assert completion.usage.calls == 6
        assert completion.trajectory_path is not None
        text = completion.trajectory_path.read_text()
        assert set(re.findall(r"context (\d+)", text)) == {str(i)}


def settled(before: int) -> int:
    """Threads of ours, once those that end have ended."""
    deadline = time.monotonic() + 60
    while (now := len(ours())) > before and time.monotonic() < deadline:
        time.sleep(0.02)
    return now


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rlm-")]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
def test_100_runs_at_once(model: Any, tmp_path: Path, is_async: bool) -> None:
    options: dict[str, Any] = {"base_url": model.url, "api_key": "sk-of-the-test", "trajectory": tmp_path}
    threads, files, streams = len(ours()), open_files(), (sys.stdout, sys.stderr)

    async def all_of(rlm: RLM) -> list[Completion]:
        return await asyncio.gather(*(rlm.acompletion(f"question {i}", f"context {i}") for i in range(RUNS)))

    with RLM("m", **options) as shared:
        if is_async:
            completions = asyncio.run(all_of(shared))
        else:
            with ThreadPoolExecutor(RUNS) as pool:
                completions = list(pool.map(lambda i: shared.completion(f"question {i}", f"context {i}"), range(RUNS)))
    check(completions)
    assert len(model.requests) == RUNS * 6
    assert settled(threads) <= threads
    assert (sys.stdout, sys.stderr) == streams
    del completions
    gc.collect()
    deadline = time.monotonic() + 60
    while open_files() > files and time.monotonic() < deadline:  # the endpoint's side of closed connections
        time.sleep(0.05)
    assert open_files() <= files
    assert not list(tmp_path.glob("*.partial"))
