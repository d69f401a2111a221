"""Make a toolset for `pydantic-ai-rlm` whose `execute_code` has a text, or a list or dict of documents, as `context`.

    from monocontext import Monocontext
    from monocontext.adapters import pydantic_ai_rlm
    from pydantic_ai import Agent

    context = Monocontext.open("s3://bucket/prefix")
    agent = Agent("openai:gpt-5", toolsets=[pydantic_ai_rlm.toolset(context)])
    print(agent.run_sync("Who wrote it?").output)

Its own toolset writes a context that is no `str` through `json.dump(default=str)`, and shows the `repr` of every
variable. So its environment starts with an empty text and gets the variable afterwards.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from monocontext.adapters import description

if TYPE_CHECKING:
    from monocontext.adapters.description import Context

CODE_TIMEOUT_SECONDS = 60.0
"""The host's own limit. A cell that takes longer gets a message, and its thread goes on: threads cannot be stopped."""


def toolset(context: Context, config: Any = None, *, code_timeout: float = CODE_TIMEOUT_SECONDS) -> Any:
    """A `FunctionToolset` with one REPL of its own (no GET; 1 for documents). `config` is the host's `RLMConfig`."""
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai_rlm.repl import REPLEnvironment

    environment = REPLEnvironment(context="", config=config)
    environment.locals["context"] = context
    environment.globals["__builtins__"].update(context.repl_namespace().names)
    tools: Any = FunctionToolset()

    async def execute_code(code: str) -> str:
        running = asyncio.get_running_loop().run_in_executor(None, environment.execute, code)
        try:
            result = await asyncio.wait_for(running, code_timeout)
        except TimeoutError:
            return f"The cell was abandoned after {code_timeout:g} seconds: read less of the text at once."
        shown = result.stdout + (f"\n{result.stderr}" if result.stderr.strip() else "")
        return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}\n... {len(shown) - MOST_SHOWN:,} more"

    execute_code.__doc__ = (
        "Run Python. The variable `context` is "
        + description.describe(context, "context", "re.finditer(pattern, context) works.")
        + " Variables stay; what you print is shown to you."
    )
    tools.add_function(execute_code)
    return tools


MOST_SHOWN = 20_000
"""Characters of a cell's output that the model sees."""
