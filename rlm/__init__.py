"""A minimal Recursive Language Model: a model that writes Python over a context it never has to read whole.

from rlm import RLM
print(RLM(model="gpt-5", sub_model="gpt-5-nano").completion("Who did it?", context=text))

Code that the model writes runs in a confined process (`runner="subprocess"`): no keys, no network, no files.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.agents import Agent, Council, ToolRegistry
    from rlm.calls.backoff import Backoff
    from rlm.calls.budget import Budget
    from rlm.calls.cache import SubCache
    from rlm.calls.prices import PRICES
    from rlm.calls.usage import ModelUsage, Usage
    from rlm.compat.rlm_minimal import RLM_REPL
    from rlm.errors import (
        AnswerRefused,
        BudgetSpent,
        ChannelAbuse,
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
    from rlm.interpreter.names import get_default_volume_name, get_memory_path, get_workspace_volume_name, sanitize_key
    from rlm.models.anthropic import AnthropicLM
    from rlm.models.claude_agent import ClaudeAgentLM
    from rlm.models.lm import LM, Reply
    from rlm.models.openai import OpenAILM
    from rlm.models.scripted import ScriptedLM
    from rlm.rlm import RLM
    from rlm.session import Session
    from rlm.trajectory.completion import Completion
    from rlm.trajectory.replay import ReplayLM
    from rlm.trajectory.source import Source
    from rlm.trajectory.step import Cell, Step

__version__ = "0.2.0"

__all__ = [
    "LM",
    "PRICES",
    "RLM",
    "RLM_REPL",
    "Agent",
    "AnswerRefused",
    "AnthropicLM",
    "Backoff",
    "Budget",
    "BudgetSpent",
    "Cell",
    "ChannelAbuse",
    "ClaudeAgentLM",
    "Completion",
    "Council",
    "FinalOutput",
    "Interpreter",
    "LLMError",
    "ModelUsage",
    "OpenAILM",
    "PromptTooLong",
    "RLMError",
    "RateLimited",
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
    "get_memory_path",
    "get_workspace_volume_name",
    "sanitize_key",
]

_HOMES = {
    "Agent": "agents",
    "AnswerRefused": "errors",
    "AnthropicLM": "models.anthropic",
    "Backoff": "calls.backoff",
    "Budget": "calls.budget",
    "BudgetSpent": "errors",
    "Cell": "trajectory.step",
    "ChannelAbuse": "errors",
    "ClaudeAgentLM": "models.claude_agent",
    "Completion": "trajectory.completion",
    "Council": "agents",
    "FinalOutput": "interpreter",
    "Interpreter": "interpreter",
    "LLMError": "errors",
    "LM": "models.lm",
    "ModelUsage": "calls.usage",
    "OpenAILM": "models.openai",
    "PRICES": "calls.prices",
    "PromptTooLong": "errors",
    "RLM": "rlm",
    "RLMError": "errors",
    "RLM_REPL": "compat.rlm_minimal",
    "RateLimited": "errors",
    "ReplayLM": "trajectory.replay",
    "Reply": "models.lm",
    "ReplyRefused": "errors",
    "RunnerUnavailable": "errors",
    "ScriptExhausted": "errors",
    "ScriptedLM": "models.scripted",
    "Session": "session",
    "Source": "trajectory.source",
    "Step": "trajectory.step",
    "SubCache": "calls.cache",
    "ToolRegistry": "agents",
    "TrajectoryError": "errors",
    "UnknownOption": "errors",
    "Usage": "calls.usage",
    "create_interpreter": "interpreter",
    "get_default_volume_name": "interpreter.names",
    "get_memory_path": "interpreter.names",
    "get_workspace_volume_name": "interpreter.names",
    "sanitize_key": "interpreter.names",
}

_OTHER_OWNERS = ("rlms", "recursive-llm", "better-rlm")
"""Distributions that install a package `rlm` too; whichever came last has overwritten files of the other."""


def _warn_of_other_owners() -> None:
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info")):
                name = entry.lower().replace("_", "-")  # `recursive-llm` is installed as recursive_llm-9.9.dist-info
                for owner in _OTHER_OWNERS:
                    if name.startswith(f"{owner}-"):
                        _warn(owner, entry[len(owner) + 1 :].rpartition(".")[0])


def _warn(owner: str, version: str) -> None:
    import warnings

    warnings.warn(
        f"the package `rlm` belongs to monocontext-rlm {__version__} and to {owner} {version} here, and one has "
        "overwritten files of the other: install them in environments of their own",
        stacklevel=4,
    )


_warn_of_other_owners()


def __getattr__(name: str) -> object:
    """Import a name when it is asked for: of all that is here a program uses little."""
    if name == "RLM":
        import_module("rlm.compat.rlms")  # what RLM(backend=...) makes
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"rlm.{_HOMES[name]}"), name)
        return value
    if not name.startswith("_"):
        try:
            return import_module(f"rlm.{name}")  # `import rlm; rlm.errors` holds as if all was imported
        except ModuleNotFoundError as error:
            if error.name != f"rlm.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
