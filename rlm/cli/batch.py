"""The command `rlm batch`: answer many questions about one context."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from monocontext.cli import options as storing
from monocontext.cli.cluster import Dask, workers
from monocontext.cli.parameters import AT_LEAST_1, Argument, Option
from monocontext.cli.printing import remark, say
from monocontext.options import StoreOptions
from rlm.batch import BadQuestions, answer_question, read_questions, run_batch
from rlm.cli.context_argument import open_argument
from rlm.cli.options import Limits, ModelOptions, choose_models, describe_rights, one_line_errors
from rlm.models.sdk import SDKModel
from rlm.rlm import RLM

if TYPE_CHECKING:
    from rlm.batch import Question
    from rlm.calls.budget import Budget


@one_line_errors()
def batch(
    questions: Annotated[
        str, Argument(help='File of JSON lines, each a string or {"question": ..., "id": ...}.', metavar="QUESTIONS")
    ],
    context: Annotated[str, Argument(help="URL or directory of a context, or a text file.")],
    out: Annotated[
        str, Option(help="File to append a JSON line to for each question. Questions in it are not asked again.")
    ],
    model_options: ModelOptions,
    limits: Limits,
    s3: storing.S3,
    at_once: Annotated[int, Option(type=AT_LEAST_1, help="Questions to answer at the same time.")] = 8,
    again: Annotated[bool, Option(help="Also ask questions again that failed or met a limit.")] = False,
    dask: Dask = None,
) -> None:
    """Answer many questions about CONTEXT. Limits of calls, tokens and dollars apply to all questions together.

    The same command resumes an interrupted batch.
    """

    remark(describe_rights(limits["runner"]))
    try:
        outcome, broken = read_questions(Path(questions))
    except OSError as error:
        raise BadQuestions(f"cannot read the questions in {questions}: {error.strerror}") from None
    for line in broken:
        say(f"rlm: {line}", err=True)
    if not outcome:
        raise BadQuestions(f"{questions} contains no question")
    # wrong options and missing keys are errors before the first question
    with RLM(**choose_models(model_options), **limits) as rlm, open_argument(context, s3) as text:
        for lm in rlm.lms:
            if isinstance(lm, SDKModel):
                lm.connect()
        try:
            with workers(dask) as executor:
                there = partial(_answer_in_worker, model_options, limits, context, s3)
                result = run_batch(
                    outcome, Path(out), rlm, text, budget=limits["budget"], at_once=at_once, again=again,
                    answer_elsewhere=None if executor is None else lambda *job: executor.submit(there, *job).result(),
                )  # fmt: skip
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command resumes the batch") from None
    rows, spent = result.rows, result.spent
    failed = sum(bool(row.get("error")) for row in rows)
    early = sum(str(row.get("reason", "")).startswith("max_") for row in rows)
    summary = (
        f"{len(rows) - failed} of {len(outcome)} questions answered, {early} of them at a limit; {failed} failed, "
        f"{len(outcome) - len(rows)} not reached within the budget, {len(broken)} lines broken; {spent['calls']:,} "
        f"calls, {spent['tokens']:,} tokens, ${spent['dollars']:.4f} known, earlier runs included"
    )
    if broken or len(rows) < len(outcome) or not all(row.get("finished") for row in rows):
        say(summary, err=True)
        raise click.exceptions.Exit(1)
    remark(summary)


def _answer_in_worker(
    model_options: dict[str, Any],
    limits: dict[str, Any],
    context: str,
    s3: StoreOptions,
    question: Question,
    share: Budget,
    path: Path,
) -> dict[str, Any]:
    """The result of a question in a worker of a cluster, with keys from its own environment."""
    with RLM(**choose_models(model_options), **limits) as rlm, open_argument(context, s3) as text:
        return answer_question(rlm, text, question, share, path)
