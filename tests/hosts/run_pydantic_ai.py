"""`pydantic-ai`: the functions as `tools=`, its `FunctionModel`."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tools_contract import check_described, measure, next_call


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    shown = {item.name: item for item in info.function_tools}
    check_described(
        {name: (item.description or "", set(item.parameters_json_schema["properties"])) for name, item in shown.items()}
    )
    results = [part.content for item in messages for part in item.parts if isinstance(part, ToolReturnPart)]
    call = next_call(results)
    return ModelResponse(parts=[TextPart(call) if isinstance(call, str) else ToolCallPart(*call)])


def run(names: dict[str, Any], question: str) -> str:
    return names["agent"].run_sync(question, model=FunctionModel(scripted)).output


if __name__ == "__main__":
    measure("pydantic-ai", run)
