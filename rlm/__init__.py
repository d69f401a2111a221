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
    "InvalidArgument",
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

_NAMES_OF = {
    "agents": "Agent Council ToolRegistry",
    "calls.backoff": "Backoff",
    "calls.budget": "Budget",
    "calls.cache": "SubCache",
    "calls.prices": "PRICES",
    "calls.usage": "ModelUsage Usage",
    "compat.rlm_minimal": "RLM_REPL",
    "errors": "AnswerRefused BudgetSpent ChannelAbuse InvalidArgument LLMError PromptTooLong RLMError "
    "RateLimited ReplyRefused RunnerUnavailable ScriptExhausted TrajectoryError UnknownOption",
    "interpreter": "FinalOutput Interpreter create_interpreter",
    "interpreter.names": "get_default_volume_name get_memory_path get_workspace_volume_name sanitize_key",
    "models.anthropic": "AnthropicLM",
    "models.claude_agent": "ClaudeAgentLM",
    "models.lm": "LM Reply",
    "models.openai": "OpenAILM",
    "models.scripted": "ScriptedLM",
    "rlm": "RLM",
    "session": "Session",
    "trajectory.completion": "Completion",
    "trajectory.replay": "ReplayLM",
    "trajectory.source": "Source",
    "trajectory.step": "Cell Step",
}
_HOMES = {name: module for module, names in _NAMES_OF.items() for name in names.split()}

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
    """Import a name at its first use: a program uses few of them."""
    if name == "RLM":
        import_module("rlm.compat.rlms")  # the class that RLM(backend=...) makes
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
