"""Define an agent in 50 lines: a language model, a prompt, and the memory tool. Other examples use it."""

from __future__ import annotations

import json
from typing import Any

from monocontext.errors import MonocontextError
from monocontext.memory import MemoryTool
from rlm import LM

HOW_TO_CALL = """
To use a tool write one line of JSON and nothing else, then wait for its reply:
{"tool_call": {"name": "memory", "parameters": {"command": "G key"}}}
Any other answer ends your turn."""

CALLS = """\
The tool is called "memory" and takes {"command": "..."}:
- store: {"command": "P key value ttl_in_seconds"}; without a number at the end it stays
- read: {"command": "G key"}, with times {"command": "G key META"}
- list: {"command": "L"}, by beginning {"command": "L task_*"}
- everything else: {"command": "SPEC"}"""


class Agent:
    """Keeps a conversation, and calls the memory tool whenever the model asks for it."""

    def __init__(self, lm: LM, prompt: str, tool: MemoryTool, *, name: str = "agent", max_calls: int = 50) -> None:
        self.lm = lm
        self.tool = tool
        self.name = name
        self.max_calls = max_calls
        self.messages: list[dict[str, str]] = [{"role": "system", "content": prompt + HOW_TO_CALL}]

    def say(self, text: str) -> str:
        """Give the model a message; returns its answer, after all calls of the tool."""
        self.messages.append({"role": "user", "content": text})
        for _ in range(self.max_calls):
            reply = self.lm.complete(self.messages).text.strip()
            self.messages.append({"role": "assistant", "content": reply})
            call = _tool_call(reply)
            if call is None:
                return reply
            try:
                result: Any = self.tool.execute(call.get("parameters") or {}, tool=str(call.get("name")))
            except MonocontextError as error:
                result = {"error": str(error)}
            line = f"  {self.name}: {json.dumps(call.get('parameters'))} -> {json.dumps(result.get('output'))}\n"
            print(line, end="", flush=True)
            self.messages.append({"role": "user", "content": f"Tool reply: {json.dumps(result)}"})
        raise RuntimeError(f"{self.name} made {self.max_calls} calls without an answer")


def _tool_call(reply: str) -> dict[str, Any] | None:
    try:
        call = json.loads(reply).get("tool_call")
    except (ValueError, AttributeError):
        return None
    return call if isinstance(call, dict) else None
