"""A minimal Recursive Language Model: a model that writes Python over a context it never has to read whole.

from rlm import RLM
print(RLM(model="gpt-5", sub_model="gpt-5-nano").completion("Who did it?", context=text))

Code that the model writes runs in a confined process (`runner="subprocess"`): no keys, no network, no files.
"""

from __future__ import annotations

from rlm.completion import Completion
from rlm.errors import AnswerRefused, ChannelAbuse, LLMError, RLMError, RunnerUnavailable, ScriptExhausted
from rlm.lm import LM, OpenAILM, Reply
from rlm.rlm import RLM, RLM_REPL
from rlm.scripted import ScriptedLM
from rlm.step import Cell, Step
from rlm.usage import ModelUsage, Usage

__version__ = "0.1.0"

__all__ = [
    "LM",
    "RLM",
    "RLM_REPL",
    "AnswerRefused",
    "Cell",
    "ChannelAbuse",
    "Completion",
    "LLMError",
    "ModelUsage",
    "OpenAILM",
    "RLMError",
    "Reply",
    "RunnerUnavailable",
    "ScriptExhausted",
    "ScriptedLM",
    "Step",
    "Usage",
]
