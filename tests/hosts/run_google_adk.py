"""`google-adk`: the functions as `tools=`, a model of its own `BaseLlm`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from tools_contract import check_described, measure, next_call


class Scripted(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        declared = [each._get_declaration() for each in llm_request.tools_dict.values()]
        check_described({each.name: (each.description, _parameters(each)) for each in declared})
        parts = [part for each in llm_request.contents for part in each.parts or []]
        call = next_call([part.function_response.response["result"] for part in parts if part.function_response])
        part = (
            types.Part(text=call)
            if isinstance(call, str)
            else types.Part.from_function_call(name=call[0], args=call[1])
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def _parameters(declared: Any) -> set[str]:
    if declared.parameters_json_schema:
        return set(declared.parameters_json_schema.get("properties", ()))
    return set(declared.parameters.properties) if declared.parameters else set()


def run(names: dict[str, Any], question: str) -> str:
    async def ask() -> str:
        runner = InMemoryRunner(names["make_agent"](Scripted(model="scripted")))
        events = await runner.run_debug(question, quiet=True)
        return events[-1].content.parts[0].text

    return asyncio.run(ask())


if __name__ == "__main__":
    measure("google-adk", run)
