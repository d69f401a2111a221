"""A minimal Recursive Language Model: a model that writes Python over a context it never has to read whole.

from rlm import RLM
print(RLM(model="gpt-5", sub_model="gpt-5-nano").completion("Who did it?", context=text))

Code that the model writes runs in a confined process (`runner="subprocess"`): no keys, no network, no files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rlm.anthropic_lm import AnthropicLM
from rlm.backoff import Backoff
from rlm.budget import Budget
from rlm.claude_agent_lm import ClaudeAgentLM
from rlm.completion import Completion
from rlm.errors import (
    AnswerRefused,
    BudgetSpent,
    ChannelAbuse,
    LLMError,
    RateLimited,
    RLMError,
    RunnerUnavailable,
    ScriptExhausted,
    TrajectoryError,
    UnknownOption,
)
from rlm.lm import LM, Reply
from rlm.openai_lm import OpenAILM
from rlm.prices import PRICES
from rlm.rlm import RLM, RLM_REPL
from rlm.rlms import InShapeOfRlms as _InShapeOfRlms  # noqa: F401 - imported, it is what RLM(backend=...) makes
from rlm.scripted import ReplayLM, ScriptedLM
from rlm.session import Session
from rlm.step import Cell, Step
from rlm.sub_cache import SubCache
from rlm.usage import ModelUsage, Usage

if TYPE_CHECKING:
    from rlm.interpreter import FinalOutput, Interpreter, create_interpreter
    from rlm.interpreter.names import (
        get_default_volume_name,
        get_memory_path,
        get_workspace_volume_name,
        sanitize_key,
    )

__version__ = "0.1.0"

__all__ = [
    "LM",
    "PRICES",
    "RLM",
    "RLM_REPL",
    "AnswerRefused",
    "AnthropicLM",
    "Backoff",
    "Budget",
    "BudgetSpent",
    "Cell",
    "ChannelAbuse",
    "ClaudeAgentLM",
    "Completion",
    "FinalOutput",
    "Interpreter",
    "LLMError",
    "ModelUsage",
    "OpenAILM",
    "RLMError",
    "RateLimited",
    "ReplayLM",
    "Reply",
    "RunnerUnavailable",
    "ScriptExhausted",
    "ScriptedLM",
    "Session",
    "Step",
    "SubCache",
    "TrajectoryError",
    "UnknownOption",
    "Usage",
    "create_interpreter",
    "get_default_volume_name",
    "get_memory_path",
    "get_workspace_volume_name",
    "sanitize_key",
]

# The interpreter is an edge, which knows `monocontext`: it is imported by who asks for it.
_INTERPRETER = frozenset(("FinalOutput", "Interpreter", "create_interpreter"))
_NAMES = frozenset(("get_default_volume_name", "get_memory_path", "get_workspace_volume_name", "sanitize_key"))


def __getattr__(name: str) -> object:
    if name in _INTERPRETER:
        return getattr(import_module("rlm.interpreter"), name)
    if name in _NAMES:
        return getattr(import_module("rlm.interpreter.names"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
