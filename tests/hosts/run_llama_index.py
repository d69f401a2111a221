"""`llama-index-core`: a `FunctionTool` of each function, its mock of a model that calls functions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms import MockFunctionCallingLLM
from tools_contract import check_described, measure, next_call


def scripted(messages: Sequence[ChatMessage], **options: Any) -> ChatMessage:
    shown = [item.metadata for item in options["tools"]]
    check_described({item.name: (item.description, set(item.get_parameters_dict()["properties"])) for item in shown})
    results = [item.content or "" for item in messages if item.role == "tool"]
    call = next_call(results)
    if isinstance(call, str):
        return ChatMessage(role="assistant", blocks=[TextBlock(text=call)])
    name, arguments = call
    block = ToolCallBlock(tool_call_id=str(len(results)), tool_name=name, tool_kwargs=arguments)
    return ChatMessage(role="assistant", blocks=[block])


def run(names: dict[str, Any], question: str) -> str:
    async def ask() -> str:
        llm = MockFunctionCallingLLM(response_generator=scripted, is_chat_model=True)
        return str(await names["make_agent"](llm).run(question))

    return asyncio.run(ask())


if __name__ == "__main__":
    measure("llama-index", run)
