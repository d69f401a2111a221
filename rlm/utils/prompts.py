"""The prompts of rlm-minimal, by its names and in our words: `from rlm.utils.prompts import build_system_prompt`."""

from __future__ import annotations

from rlm.context.description import describe
from rlm.models.lm import Message
from rlm.prompts.system import system_prompt
from rlm.rlm import READ_ALL

DEFAULT_QUERY = READ_ALL
REPL_SYSTEM_PROMPT = system_prompt(describe(""), prompt_characters=500_000, output_limit=20_000)
"""The root model's prompt for a `str`; `rlm.RLM` writes one for each context."""
USER_PROMPT = """\
Decide what to do next in the REPL, which holds `context`, to answer the question: "{query}". Write code in a ```repl```
block, or give the answer."""


def build_system_prompt() -> list[Message]:
    """The messages at the beginning of a conversation: the system prompt."""
    return [{"role": "system", "content": REPL_SYSTEM_PROMPT}]


def next_action_prompt(query: str, iteration: int = 0, final_answer: bool = False) -> Message:
    """The message that asks for the next step, or with `final_answer` for the answer."""
    if final_answer:
        return {"role": "user", "content": "Give the final answer now, from what you have found."}
    first = "You have not looked at the context yet: look before you answer.\n\n" if iteration == 0 else ""
    return {"role": "user", "content": first + USER_PROMPT.format(query=query)}
