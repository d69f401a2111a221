"""Import the public names of `rlm` from their modules; `rlm` imports this module at the first use of a name."""
# ruff: noqa: I001 # names in rows

from rlm.calls.backoff import Backoff
from rlm.calls.budget import Budget
from rlm.calls.sub_cache import SubCache
from rlm.calls.usage import ModelUsage, Usage
from rlm.compat.shapes import RLM_REPL
from rlm.errors import AnswerRefused, BudgetSpent, ChannelAbuse, InvalidArgument, LLMError, PromptTooLong, RateLimited
from rlm.errors import ReplyRefused, RLMError, RunnerUnavailable, ScriptExhausted, TrajectoryError, UnknownOption
from rlm.models.anthropic import AnthropicLM
from rlm.models.claude_agent import ClaudeAgentLM
from rlm.models.lm import LM, Reply, ScriptedLM
from rlm.models.openai import OpenAILM
from rlm.rlm import RLM
from rlm.session import Session
from rlm.tool_registry import ToolRegistry
from rlm.trajectory.completion import Completion
from rlm.trajectory.replay import ReplayLM
from rlm.trajectory.source import Read, Source
from rlm.trajectory.step import Cell, Step

__all__ = [
    "LM", "RLM", "RLM_REPL", "AnswerRefused", "AnthropicLM", "Backoff", "Budget", "BudgetSpent", "Cell", "ChannelAbuse",
    "ClaudeAgentLM", "Completion", "InvalidArgument", "LLMError", "ModelUsage", "OpenAILM", "PromptTooLong", "RLMError",
    "RateLimited", "Read", "ReplayLM", "Reply", "ReplyRefused", "RunnerUnavailable", "ScriptExhausted", "ScriptedLM",
    "Session", "Source", "Step", "SubCache", "ToolRegistry", "TrajectoryError", "UnknownOption", "Usage",
]  # fmt: skip
