"""`openai-agents`: `function_tool` of each function, a model of its own `Model` interface."""

from __future__ import annotations

import json
from typing import Any

from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from tools_contract import check_described, measure, next_call


class Scripted(Model):
    async def get_response(self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_: Any,
                           **__: Any) -> ModelResponse:  # fmt: skip
        check_described({item.name: (item.description, set(item.params_json_schema["properties"])) for item in tools})
        results = [item["output"] for item in input if isinstance(item, dict) and "output" in item]
        call = next_call(results)
        if isinstance(call, str):
            said = ResponseOutputText(text=call, type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m", content=[said], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)
        name, arguments = call
        asked = ResponseFunctionToolCall(
            arguments=json.dumps(arguments), call_id=str(len(results)), name=name, type="function_call"
        )
        return ModelResponse(output=[asked], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the run is not streamed")


def run(names: dict[str, Any], question: str) -> str:
    set_tracing_disabled(True)
    agent: Agent[Any] = names["agent"].clone(model=Scripted())
    return Runner.run_sync(agent, question).final_output


if __name__ == "__main__":
    measure("openai-agents", run)
