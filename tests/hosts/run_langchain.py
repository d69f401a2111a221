"""`langchain` on `langgraph`: the functions as `tools=` of `create_agent`, a chat model of its own interface."""

from __future__ import annotations

import tempfile
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tools_contract import check_described, measure, next_call

from monocontext import Monocontext, publish


class Scripted(BaseChatModel):
    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        results = [str(each.content) for each in messages if isinstance(each, ToolMessage)]
        call = next_call(results)
        reply = AIMessage(call) if isinstance(call, str) else AIMessage(
            "", tool_calls=[{"name": call[0], "args": call[1], "id": str(len(results))}]
        )  # fmt: skip
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        made = [tool if isinstance(tool, StructuredTool) else StructuredTool.from_function(tool) for tool in tools]
        check_described({tool.name: (tool.description, set(tool.args)) for tool in made})
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def run(names: dict[str, Any], question: str) -> str:
    agent = names["make_agent"](Scripted())
    return agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].content


def check_checkpoints() -> None:
    """What docs/hosts.md says of a text in the state of a graph."""
    with tempfile.TemporaryDirectory() as place:
        publish("hello", place)
        with Monocontext.open(place) as context:
            try:
                JsonPlusSerializer().dumps_typed(context)
            except TypeError:
                pass
            else:
                raise AssertionError("checkpoints take a text now: say so in docs/hosts.md")
            serde = JsonPlusSerializer(pickle_fallback=True)
            kind, data = serde.dumps_typed(context)
            assert len(data) < 250
            assert serde.loads_typed((kind, data))[:5] == "hello"


if __name__ == "__main__":
    check_checkpoints()
    measure("langchain", run)
