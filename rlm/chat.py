"""`rlm chat`: questions in a row over one context."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rlm.errors import LLMError
from rlm.excerpt import printable
from rlm.rlm import RLM

if TYPE_CHECKING:
    from rlm.console import Display

HELP = """\
Type a question. Variables that the model makes persist, and it remembers what was asked and answered.
/help   this
/vars   the variables made so far
/cost   calls, tokens and dollars so far
/new    begin anew: an empty namespace and no history
/quit   leave; so does the end of the input"""


def chat(rlm: RLM, context: object, display: Display, *, source: str | None = None) -> None:
    """Read questions from stdin until it ends; answers go to stdout, costs to stderr. A failed call ends no chat."""
    calls = tokens = 0
    dollars: float | None = 0.0
    session = rlm.session(context, source=source)
    try:
        if sys.stdin.isatty():
            display.say("A question, or /help.")
        while (line := _line()) is not None:
            match line.strip():
                case "":
                    continue
                case "/quit" | "/exit":
                    return
                case "/help":
                    display.say(HELP)
                case "/vars":
                    display.say(session.variables() or "none")
                case "/cost":
                    cost = "cost not known" if dollars is None else f"${dollars:.4f}"
                    display.say(f"{calls} calls, {tokens:,} tokens, {cost}")
                case "/new":
                    session.close()
                    session = rlm.session(context, source=source)
                    display.say("A new namespace.")
                case command if command.startswith("/"):
                    display.say(f"There is no {command.split()[0]}; /help says what there is.")
                case question:
                    display.watch(session)
                    try:
                        with display:
                            completion = session.ask(question)
                    except LLMError as exc:
                        display.say(f"rlm: {exc}")
                        continue
                    print(printable(completion.answer, terminal=sys.stdout.isatty()), flush=True)
                    display.cost(completion)
                    calls, tokens = calls + completion.usage.calls, tokens + completion.usage.tokens
                    dollars = None if dollars is None or completion.cost is None else dollars + completion.cost
    finally:
        session.close()


def _line() -> str | None:
    try:
        return input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None
