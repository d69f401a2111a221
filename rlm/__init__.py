"""A minimal Recursive Language Model: a model that writes Python over a context it never has to read whole.

from rlm import RLM
print(RLM(model="gpt-5", sub_model="gpt-5-nano").completion("Who did it?", context=text))

Code that the model writes runs in a confined process (`runner="subprocess"`): no keys, no network, no files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.calls.backoff import Backoff
    from rlm.calls.budget import Budget
    from rlm.calls.cache import SubCache
    from rlm.calls.prices import PRICES
    from rlm.calls.usage import ModelUsage, Usage
    from rlm.compat.shapes import RLM_REPL
    from rlm.errors import (
        AnswerRefused,
        BudgetSpent,
        ChannelAbuse,
        InvalidArgument,
        LLMError,
        PromptTooLong,
        RateLimited,
        ReplyRefused,
        RLMError,
        RunnerUnavailable,
        ScriptExhausted,
        TrajectoryError,
        UnknownOption,
    )
    from rlm.interpreter import FinalOutput, Interpreter, create_interpreter
    from rlm.interpreter.names import get_default_volume_name, sanitize_key
    from rlm.models.anthropic import AnthropicLM
    from rlm.models.claude_agent import ClaudeAgentLM
    from rlm.models.lm import LM, Reply
    from rlm.models.openai import OpenAILM
    from rlm.models.scripted import ScriptedLM
    from rlm.rlm import RLM
    from rlm.session import Session
    from rlm.tool_registry import ToolRegistry
    from rlm.trajectory.completion import Completion
    from rlm.trajectory.replay import ReplayLM
    from rlm.trajectory.source import Read, Source
    from rlm.trajectory.step import Cell, Step

__version__ = "0.3.0"

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
    "InvalidArgument",
    "LLMError",
    "ModelUsage",
    "OpenAILM",
    "PromptTooLong",
    "RLMError",
    "RateLimited",
    "Read",
    "ReplayLM",
    "Reply",
    "ReplyRefused",
    "RunnerUnavailable",
    "ScriptExhausted",
    "ScriptedLM",
    "Session",
    "Source",
    "Step",
    "SubCache",
    "ToolRegistry",
    "TrajectoryError",
    "UnknownOption",
    "Usage",
    "create_interpreter",
    "get_default_volume_name",
    "sanitize_key",
]

_NAMES_OF = {
    "calls.backoff": "Backoff",
    "calls.budget": "Budget",
    "calls.cache": "SubCache",
    "calls.prices": "PRICES",
    "calls.usage": "ModelUsage Usage",
    "compat.shapes": "RLM_REPL",
    "errors": "AnswerRefused BudgetSpent ChannelAbuse InvalidArgument LLMError PromptTooLong RLMError "
    "RateLimited ReplyRefused RunnerUnavailable ScriptExhausted TrajectoryError UnknownOption",
    "interpreter": "FinalOutput Interpreter create_interpreter",
    "interpreter.names": "get_default_volume_name sanitize_key",
    "models.anthropic": "AnthropicLM",
    "models.claude_agent": "ClaudeAgentLM",
    "models.lm": "LM Reply",
    "models.openai": "OpenAILM",
    "models.scripted": "ScriptedLM",
    "rlm": "RLM",
    "session": "Session",
    "tool_registry": "ToolRegistry",
    "trajectory.completion": "Completion",
    "trajectory.replay": "ReplayLM",
    "trajectory.source": "Read Source",
    "trajectory.step": "Cell Step",
}
_HOMES = {name: module for module, names in _NAMES_OF.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a name at its first use: a program uses few of them."""
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"rlm.{_HOMES[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
