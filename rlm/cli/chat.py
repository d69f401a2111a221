"""The command `rlm chat`: answer questions from stdin about one context."""

from __future__ import annotations

import math
import sys
import time
from functools import partial

import click

from monocontext.cli.options import S3
from monocontext.cli.printing import print_remark
from rlm.cli import options as shared
from rlm.cli.context_argument import UsageError, named_texts, open_argument
from rlm.cli.resuming import absolute_location
from rlm.context.excerpt import make_printable
from rlm.errors import LLMError
from rlm.rlm import RLM
from rlm.trajectory.display import Display, print_summary

_DOUBLE_PRESS_SECONDS = 2.0  # two interrupts within this time end the chat

HELP = """\
Type a question. The model keeps its variables, and remembers earlier questions and answers.
/help   show this help
/new    start again without variables and history
/quit   leave; the end of the input does the same
Ctrl-C  stop the question; twice within two seconds, leave"""


@shared.one_line_errors()
def chat(
    context: shared.Context, model_options: shared.ModelOptions, limits: shared.Limits, s3: S3,
    trajectory: shared.Trajectory = None, shape: shared.Shape = "text",
) -> None:  # fmt: skip
    """Answer questions about CONTEXT, one after another. Variables persist, and limits apply to each question."""
    if "-" in (context, *named_texts(context).values()) and not sys.stdin.isatty():
        raise UsageError("chat reads its questions from stdin: give CONTEXT as a file or URL")
    rights = shared.describe_rights(limits["runner"])
    display = Display(shown=shared.shows_steps())
    options = shared.run_options(model_options, limits)
    rlm = RLM(**options, trajectory=trajectory, on_step=display.step, on_delta=display.delta)
    print_remark(rights)
    with rlm, open_argument(context, s3, shape) as text:
        all_finished = _read_questions(_Chat(rlm, text, display, absolute_location(context)))
    if not all_finished and not sys.stdin.isatty():
        raise click.exceptions.Exit(1)


def _read_questions(chat_session: _Chat) -> bool:
    """Answer lines of stdin until it ends, or Ctrl-C is pressed twice. Returns whether all runs finished."""
    last_interrupt, is_terminal = -math.inf, sys.stdin.isatty()
    try:
        if is_terminal:
            chat_session.display.say("Type a question, or /help.")
        while True:
            has_line = False
            try:
                line = input("> " if is_terminal else "")
                has_line = True
                if not chat_session.handle_line(line.strip()):
                    return chat_session.all_finished
            except EOFError:
                return chat_session.all_finished
            except KeyboardInterrupt:
                now = time.monotonic()
                if now - last_interrupt < _DOUBLE_PRESS_SECONDS or not (has_line or is_terminal):
                    raise
                last_interrupt = now
                stopped = "Stopped; variables are kept. " if has_line else ""
                chat_session.display.say(f"\n{stopped}Press Ctrl-C again now, or type /quit, to end the chat.")
    finally:
        chat_session.session.close()


class _Chat:
    """The session of a chat, and the commands that a user may type in it."""

    def __init__(self, rlm: RLM, context: object, display: Display, source: str | None) -> None:
        self.display = display
        self._new_session = partial(rlm.session, context, source=source)
        self.all_finished = True  # whether each run so far has finished
        self.session = self._new_session()

    def handle_line(self, line: str) -> bool:
        """Answer a question, or run a command. Returns False if it ends the chat."""
        say = self.display.say
        match line:
            case "":
                pass
            case "/quit" | "/exit":
                return False
            case "/help":
                say(HELP)
            case "/new":
                self.session.close()
                self.session = self._new_session()
                say("Started again.")
            case command if command.startswith("/"):
                say(f"There is no command {command.split()[0]}; /help lists the commands.")
            case question:
                self._ask(question)
        return True

    def _ask(self, question: str) -> None:
        self.display.watch(self.session.gateway)
        try:
            with self.display:
                completion = self.session.ask(question)
        except LLMError as exc:
            self.display.say(f"rlm: {exc}")
            self.all_finished = False
            return
        self.all_finished = self.all_finished and completion.finished
        if completion.finished or completion.answer:
            print(make_printable(completion.answer, terminal=sys.stdout.isatty()), flush=True)
        print_summary(completion)
