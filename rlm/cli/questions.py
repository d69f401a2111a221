"""The commands `rlm run` and `rlm view`: answer a question, and show a recorded run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click

from monocontext.cli.options import S3, AsJson
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import is_quiet, print_line, print_remark
from monocontext.cli.serving import Host, OpenBrowser, Port, serve_page
from monocontext.options import StoreOptions
from rlm.cli import options as shared
from rlm.cli.context_argument import LOCAL_SESSIONS, UsageError, named_texts, names_context, open_argument
from rlm.cli.resuming import absolute_location, recorded_location, resumed_options
from rlm.context.excerpt import make_printable
from rlm.errors import LLMError
from rlm.rlm import RLM
from rlm.trajectory.completion import Completion
from rlm.trajectory.display import Display, print_summary, why_unfinished
from rlm.trajectory.recording import load_resumable
from rlm.trajectory.source import format_sources
from rlm.view import page
from rlm.view.feed import RowFeed


@shared.one_line_errors()
def run(
    model_options: shared.ModelOptions, limits: shared.Limits, s3: S3,
    context: Annotated[str | None, Argument(help="URL or directory of a context, a text file, or - for stdin; "
                                                  "several by name, code=URL logs=URL.")] = None,
    question: Annotated[str | None, Argument(help="The question to answer.")] = None,
    more: Annotated[list[str] | None, Argument(metavar="", help="After several texts, the question.")] = None,
    trajectory: shared.Trajectory = None, shape: shared.Shape = "text",
    sessions: Annotated[bool, Option(help="Use the sessions of this machine's agents as CONTEXT.")] = False,
    resume: Annotated[str | None, Option(help="Resume the run that this trajectory records.")] = None,
    cite: Annotated[bool, Option(help="Also print the sources of the answer.")] = False,
    as_json: AsJson = False
) -> None:  # fmt: skip
    """Answer QUESTION from CONTEXT: the answer goes to stdout, steps to stderr. Exits with 1 if the run did not finish.

    With --resume, options on the command line override the recorded ones.
    """
    context, question = _join_texts([word for word in (context, question, *(more or ())) if word is not None])
    if sessions:
        if question is not None or (resume and context is not None):
            raise UsageError("--sessions takes the place of CONTEXT: leave CONTEXT out")
        context, question = LOCAL_SESSIONS, context
    display = Display(shown=shared.shows_steps())
    options = {**limits, "trajectory": trajectory, "on_step": display.step, "on_delta": display.delta}
    if resume:
        metadata = load_resumable(resume).metadata
        context = context or recorded_location(metadata, Path(resume))
        options |= resumed_options(metadata, click.get_current_context(), model_options, limits)
    elif context is None or question is None:
        raise UsageError("a run needs a CONTEXT and a QUESTION, or --sessions and a QUESTION, or --resume TRAJECTORY")
    else:
        if names_context(question) and not names_context(context):  # the order of `grep`
            context, question = question, context
        options |= shared.run_options(model_options, limits)
    rights = shared.describe_rights(options["runner"])
    with RLM(**options) as rlm, display:
        print_remark(rights)
        if resume:
            completion = _resume(rlm, resume, location=context, s3=s3, shape=shape)
        else:
            completion = _answer(rlm, display, location=str(context), question=str(question), s3=s3, shape=shape)
    if not is_quiet():
        print_summary(completion, unfinished=False)
    _print_answer(completion, as_json=as_json, cite=cite)
    if not completion.finished:
        print_line(f"rlm: {_how_to_finish(completion, s3, shape)}", err=True)
        raise click.exceptions.Exit(1)


@shared.one_line_errors()
def view(
    run: Annotated[str, Argument(help="A trajectory (.jsonl), or a directory, for its newest trajectory.")],
    host: Host = "127.0.0.1", port: Port = 0,
    export: Annotated[str | None, Option(help="Write the page to this HTML file instead, and exit.")] = None,
    open_browser: OpenBrowser = None,
) -> None:  # fmt: skip
    """Show a recorded or running run in a browser: its timeline, cells, sub-calls and costs."""
    path = page.find_trajectory(run)
    if export:
        page.export(RowFeed(path), Path(export))
        click.echo(export)
    else:
        serve_page(partial(page.ViewServer, RowFeed(path)), host, port, str(path), open_browser=open_browser)


def _join_texts(words: list[str]) -> tuple[str | None, str | None]:
    """CONTEXT and QUESTION in the words of a command line, None for a missing one. Words NAME=URL are one CONTEXT."""
    texts = [word for word in words if named_texts(word)]
    others = [word for word in words if word not in texts]
    if len(others) > (1 if texts else 2):
        raise UsageError(f"unexpected {others[-1]!r}: give one CONTEXT, or several NAME=URL, and a QUESTION in quotes")
    words = [shlex.join(texts), *others] if texts else words
    return next(iter(words), None), next(iter(words[1:]), None)


def _answer(rlm: RLM, display: Display, *, location: str, question: str, s3: StoreOptions, shape: str) -> Completion:
    with open_argument(location, s3, shape) as text, rlm.session(text, source=absolute_location(location)) as session:
        display.watch(session.gateway)
        with _naming_resume_command(session.path, s3, shape):
            return session.ask(question)


def _resume(rlm: RLM, trajectory: str, *, location: str | None, s3: StoreOptions, shape: str) -> Completion:
    """Resume a run. `location`: that of its context; None if the trajectory contains the context."""
    with ExitStack() as stack:
        contexts = [] if location is None else [stack.enter_context(open_argument(location, s3, shape))]
        stack.enter_context(_naming_resume_command(Path(trajectory), s3, shape))
        return rlm.resume(trajectory, *contexts)


def _print_answer(completion: Completion, *, as_json: bool, cite: bool) -> None:
    """Print the answer, with its sources if `cite`, or the whole result as JSON."""
    if as_json:
        path = completion.trajectory_path
        lines = [json.dumps(completion.to_dict() | {"trajectory": str(path) if path else None})]
    else:
        lines = [completion.answer] if completion.finished or completion.answer else []
        lines += ["\n" + format_sources(completion.sources)] if cite else []
    for line in lines:
        click.echo(make_printable(line, terminal=sys.stdout.isatty()))


@contextmanager
def _naming_resume_command(path: Path | None, stored: Mapping[str, Any], shape: str) -> Iterator[None]:
    """Add the command that resumes the run, if it was recorded, to the message of an error or interrupt within."""
    try:
        yield
    except (LLMError, KeyboardInterrupt) as exc:
        if path is None or not path.exists():
            raise
        advice = f"(resume it with: {_resume_command(path, stored, shape)})"
        if isinstance(exc, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted {advice}") from None
        raise LLMError(f"{exc} {advice}") from exc


def _resume_command(path: Path, stored: Mapping[str, Any], shape: str) -> str:
    words = ["rlm", "run", "--resume", str(path)]
    for name, value in stored.items():
        words += [f"--{name}"] if value is True else [f"--{name}", value]
    return shlex.join(words if shape == "text" else [*words, "--shape", shape])


def _how_to_finish(completion: Completion, stored: Mapping[str, Any], shape: str) -> str:
    """A line that says why a run did not finish, and what to do."""
    flag = f"--{completion.reason.replace('_', '-')}" if completion.reason.startswith("max_") else ""
    why, path = why_unfinished(completion).removesuffix("."), completion.trajectory_path
    if not flag:
        return f"{why}. Rephrase the question, or try another --model"
    if path is None:
        return f"{why}. Raise {flag}; with --trajectory FILE, a run can be resumed"
    return f"{why}. Resume it with a higher limit: {_resume_command(path, stored, shape)} {flag} N"
