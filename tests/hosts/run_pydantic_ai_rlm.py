"""`pydantic-ai-rlm`: an agent with its REPL as a tool."""

from __future__ import annotations

from typing import Any

from contract import QUESTION, Turns, lines_for, measure, measure_documents, tell
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_rlm import RLMDependencies, create_rlm_toolset


def cell(code: str) -> str:
    return code


def final(expression: str) -> str:
    """The last cell prints the value; the text after it is what it printed."""
    return f"print({expression})\n"


def run(context: Any, model: Turns) -> str:
    def reply(messages: Any, _: Any) -> ModelResponse:
        shown = [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]
        try:
            code = model(messages)
        except StopIteration:
            return ModelResponse(parts=[TextPart(shown[-1].strip().splitlines()[-1])])
        return ModelResponse(parts=[ToolCallPart("execute_code", {"code": code})])

    if isinstance(context, str):
        agent: Any = Agent(FunctionModel(reply), toolsets=[create_rlm_toolset()], deps_type=RLMDependencies)
        deps = RLMDependencies(context=context)
        return str(agent.run_sync(QUESTION, deps=deps).output.split(":")[-1].strip())
    agent = Agent(FunctionModel(reply), toolsets=[lines_for("pydantic-ai-rlm", context)["toolset"]])
    return str(agent.run_sync(QUESTION).output)


if __name__ == "__main__":
    assert measure_documents(run, cell=cell, final=final) < 4_000_000
    tell(measure("pydantic-ai-rlm", run, cell=cell, final=final))
