"""A run with a root, sub-calls, a batch and a child, which is killed from outside; each call is noted in a file."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from rlm import RLM, ScriptedLM
from rlm.prompts.system import conversation

CONTEXT = "".join(f"line {i} of the text\n" for i in range(200))
TURNS = (
    "```repl\nseen = [llm_query(f'one {i}') for i in range(3)]\nprint(len(context), seen)\n```",
    "```repl\nbatch = llm_query_batched([f'many {i}' for i in range(6)])\n```\n"
    "```repl\nsame = llm_query_batched(['same'] * 4)\nprint(same)\n```",
    "```repl\nchild = rlm_query('a child', context='abc')\nprint(child)\n```",
    "I think about it, without code.",
    "```repl\nFINAL('; '.join([*seen, *batch, *same, child, llm_query('last')]))\n```",
)
CALLS = 5 + 3 + 6 + 4 + 1 + 2  # turns, queries, batch, equal ones, the last one, the child's two turns


class Noted:
    """Writes each call that it answers into a file, and kills the process at the moment it is told to."""

    def __init__(self, log: Path, kill_at: int | None) -> None:
        self.model = "noted"
        self._log, self._kill_at = log, kill_at
        self._lock = threading.Lock()
        self._count = 0
        self._equal = 0

    def complete(self, messages: Any, *, model: Any = None, on_delta: Any = None) -> Any:
        with self._lock:
            self._count += 1
            if self._count == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            told = messages[-1]["content"]
            if len(messages) == 1:
                text = told.upper()
            elif "a child" in (asked := conversation(messages))[0]["content"]:
                text = "FINAL(from the child)" if len(asked) > 1 else "```repl\nprint(context)\n```"
            else:
                text = TURNS[sum(message["role"] == "assistant" for message in asked)]
            with self._log.open("a") as file:
                file.write(f"{len(messages)} {told[:40]!r}\n")
        return ScriptedLM([text], model="noted").complete(messages, on_delta=on_delta)


def rlm(log: Path, kill_at: int | None = None, trajectory: Path | None = None) -> RLM:
    return RLM(lm=Noted(log, kill_at), max_depth=2, trajectory=trajectory, runner="local")


if __name__ == "__main__":
    path, log, kill_at, resume = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "resume"
    made = rlm(log, kill_at, path)
    print(made.resume(path, CONTEXT) if resume else made.completion("What is it?", CONTEXT))
