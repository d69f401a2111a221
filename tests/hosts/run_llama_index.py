"""`llama-index-core`: a `FunctionTool` of each function, its mock of a model that calls functions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms import MockFunctionCallingLLM
from tools_contract import check_described, measure, next_call


def scripted(messages: Sequence[ChatMessage], **options: Any) -> ChatMessage:
    shown = [each.metadata for each in options["tools"]]
    check_described(
        {each.name: (each.description, set(each.get_parameters_dict()["properties"])) for each in shown}
    )  # fmt: skip
    results = [each.content or "" for each in messages if each.role == "tool"]
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
