"""Write example messages that show the root model how to look and how to finish, before the question.

A small model begins its reply as the example messages do, with a fence, which it does not learn from prose. It may copy
them verbatim, so their code must be correct as it is and print little. They are short, because every turn pays for
them. The visualizer of rlms takes any user message of 51 to 499 characters for the question of a run, unless it
contains "answer the prompt"; so the first message does.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm.context.description import Description
from rlm.models.lm import Message
from rlm.prompts.system import KINDS

QUESTION_OPENS = 'Answer the original query: "'
"""The beginning of the message with the question, which follows the example."""
LOOK_FIRST = (
    "`context` is there, and you have seen nothing of it yet. Write a ```repl block that searches it for a rare word "
    "of the query and prints what stands around it. Give no answer yet."
)
"""The request in the message of each turn until code has run."""
_ASK = (
    'For example, answer the prompt: "Where was Ada Lovelace buried?"\n\nThe variable `context` holds a {}.\n\n'
    f"Turn 1/2: {LOOK_FIRST}"
)
_FIND = {
    "text": """\
at = context.find("Lovelace")
print(at, context[max(0, at - 150):at + 450] if at >= 0 else "not found")""",
    "list": """\
hits = [i for i, item in enumerate(context) if "Lovelace" in str(item)]
print(hits[:20], str(context[hits[0]])[:600] if hits else "not found")""",
    "dict": """\
hits = [key for key, value in context.items() if "Lovelace" in str(value)]
print(hits[:20], str(context[hits[0]])[:600] if hits else "not found")""",
}


def example_messages(context: Description) -> list[Message]:
    """A search, its output and its answer; empty for a context that is not a text, list or dict."""
    kind = KINDS.get(context.kind)
    if kind is None:
        return []
    said = [
        _ASK.format(kind),
        f"```repl\n{_FIND[kind]}\n```",
        "REPL output:\n81 Lovelace lies in Hucknall",
        '```repl\nFINAL("Hucknall")\n```',
    ]
    if context.access:  # all items are text, and `str` of one would read it
        said = [text.replace("in str(item)", "in item").replace("in str(value)", "in value") for text in said]
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]


def conversation(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages from the question on: without the system prompt and the example."""
    asked = (i for i, message in enumerate(messages) if message["content"].startswith(QUESTION_OPENS))
    return messages[next(asked, 1) :]
