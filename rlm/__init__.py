"""A minimal Recursive Language Model: a model that explores a context with Python, and never has to read all of it.

from rlm import RLM
print(RLM(model="gpt-5", sub_model="gpt-5-nano").completion("Who did it?", context=text))

By default, code that the model writes runs in a confined process, without keys, network and files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.calls.usage import Prices
    from rlm.exports import *  # noqa: F403 # re-exports what its `__all__` names
    from rlm.interpreter.interpreter import FinalOutput as FinalOutput
    from rlm.interpreter.interpreter import Interpreter as Interpreter
    from rlm.interpreter.interpreter import create_interpreter as create_interpreter
    from rlm.interpreter.interpreter import get_default_volume_name as get_default_volume_name
    from rlm.interpreter.interpreter import sanitize_key as sanitize_key

    PRICES: Prices
    """Today's prices of the models of OpenAI and Anthropic, without tiers and discounts."""

__version__ = "0.3.0"


# ruff: noqa: F405 # the names come from a star import
__all__ = [  # in full, for checkers and the reference
    "LM", "PRICES", "RLM", "RLM_REPL", "AnswerRefused", "AnthropicLM", "Backoff", "Budget", "BudgetSpent", "Cell",
    "ChannelAbuse", "ClaudeAgentLM", "Completion", "FinalOutput", "Interpreter", "InvalidArgument", "LLMError",
    "ModelUsage", "OpenAILM", "PromptTooLong", "RLMError", "RateLimited", "Read", "ReplayLM", "Reply", "ReplyRefused",
    "RunnerUnavailable", "ScriptExhausted", "ScriptedLM", "Session", "Source", "Step", "SubCache", "ToolRegistry",
    "TrajectoryError", "UnknownOption", "Usage", "create_interpreter", "get_default_volume_name", "sanitize_key",
]  # fmt: skip
_INTERPRETER_NAMES = ("FinalOutput", "Interpreter", "create_interpreter", "get_default_volume_name", "sanitize_key")


def __getattr__(name: str) -> object:
    """Import the public names when the first of them is used: a worker imports this package too, and needs few of its
    modules. The interpreter and the price table are imported only for their own names, since few programs need them."""
    if name in _INTERPRETER_NAMES:
        from rlm.interpreter import interpreter

        return getattr(interpreter, name)
    if name == "PRICES":
        from rlm.calls.usage import list_prices

        return list_prices()
    if name in __all__:
        import rlm.exports as exports

        globals().update({public: getattr(exports, public) for public in exports.__all__})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
