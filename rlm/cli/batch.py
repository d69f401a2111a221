"""The command `rlm batch`: answer many questions about one context."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from monocontext.cli import options as storing
from monocontext.cli.cluster import Dask, workers
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import remark, say
from monocontext.cli.progress import shows_progress
from rlm.cli.context_argument import open_argument
from rlm.cli.keys import check_keys
from rlm.cli.options import Limits, ModelOptions, choose_models, with_limits, with_models
from rlm.cli.questions import describe_rights
from rlm.cli.reporting import one_line_errors

if TYPE_CHECKING:
    from rlm.batch import BatchCost, OnProgress
    from rlm.rlm import RLM


@with_models
@with_limits
@storing.with_s3_options
@one_line_errors()
def batch(
    questions: Annotated[
        str, Argument(help='File of JSON lines, each a string or {"question": ..., "id": ...}.', metavar="QUESTIONS")
    ],
    context: Annotated[str, Argument(help="URL or directory of a context, or a text file.")],
    out: Annotated[
        str, Option(help="File to append a JSON line to for each question. Questions in it are not asked again.")
    ],
    at_once: Annotated[int, Option(min=1, help="Number of questions to answer at the same time.")] = 8,
    tries: Annotated[int, Option(min=1, help="Attempts at a question while its model fails temporarily.")] = 3,
    again: Annotated[bool, Option("--again", help="Also ask questions again that failed or met a limit.")] = False,
    dask: Dask = None,
    *,
    model_options: ModelOptions,
    limits: Limits,
    s3: storing.S3,
) -> None:
    """Answer many questions about CONTEXT. Limits of calls, tokens and dollars apply to all questions together.

    The same command resumes an interrupted batch.
    """
    from rlm.batch import BadQuestions, read_questions, run_batch

    click.echo(describe_rights(limits["runner"]), err=True)
    try:
        found, broken = read_questions(Path(questions))
    except OSError as error:
        raise BadQuestions(f"cannot read the questions in {questions}: {error.strerror}") from None
    for line in broken:
        say(f"rlm: {line}", err=True)
    if not found:
        raise BadQuestions(f"{questions} contains no question")
    budget = limits["budget"]
    make_rlm, open_context = partial(_make_rlm, model_options, limits), partial(open_argument, context, s3)
    with make_rlm() as first:  # raises for wrong options and missing keys before the first question
        check_keys(first.lms)
    with open_context(), workers(dask) as executor, _progress_bar(len(found)) as on_progress:
        try:
            result = run_batch(
                found, Path(out), make_rlm, open_context, budget=budget, at_once=at_once, tries=tries, again=again,
                executor=executor, on_progress=on_progress,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command resumes the batch") from None
    rows, spent = result.rows, result.spent
    failed = sum(bool(row.get("error")) for row in rows)
    early = sum(str(row.get("reason", "")).startswith("max_") for row in rows)
    unfinished = any(row.get("finished") is False for row in rows)
    is_incomplete = bool(failed or unfinished or broken or len(rows) < len(found))
    summary = (
        f"{len(rows) - failed} of {len(found)} questions answered, {early} of them at a limit; {failed} failed, "
        f"{len(found) - len(rows)} not reached within the budget, {len(broken)} lines broken; {spent.calls:,} calls, "
        f"{spent.tokens:,} tokens, ${spent.dollars:.4f} known"
    )
    if is_incomplete:
        say(summary, err=True)
        raise click.exceptions.Exit(1)
    remark(summary)


def _make_rlm(model_options: ModelOptions, limits: Limits) -> RLM:
    """An RLM. Each worker makes its own, with keys from its own environment."""
    from rlm.rlm import RLM

    return RLM(**choose_models(model_options), **limits)


@contextmanager
def _progress_bar(questions: int) -> Iterator[OnProgress]:
    """A function that shows the count, speed, cost and remaining time, on a terminal."""
    if not shows_progress():
        yield lambda done, of, spent: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=questions, rate="")
        began, done_before = time.monotonic(), -1

        def show(done: int, of: int, spent: BatchCost) -> None:
            nonlocal done_before
            if done_before < 0:
                done_before = done
            rate = 60 * (done - done_before) / max(1e-9, time.monotonic() - began)
            bar.update(task, completed=done, rate=f"{rate:.1f} a minute, ${spent.dollars:.3f}")

        yield show
