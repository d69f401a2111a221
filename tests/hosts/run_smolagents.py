"""`smolagents`: the text itself as a variable of a `CodeAgent`, whose own interpreter runs the code."""

from __future__ import annotations

from typing import Any

from contract import FIND, GREP, LOOK
from smolagents import ChatMessage, MessageRole, Model
from tools_contract import measure


class Scripted(Model):
    def __init__(self) -> None:
        super().__init__(model_id="scripted")
        cells = [code.format(name="context") for code in (LOOK, FIND, GREP)]
        self._replies = iter([*cells, "final_answer(found)"])

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: look\n<code>\n{next(self._replies)}\n</code>")


def run(names: dict[str, Any], question: str) -> str:
    return str(names["ask"](Scripted(), question))


if __name__ == "__main__":
    measure("smolagents", run)
