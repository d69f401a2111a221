"""The command `rlm batch`: answer many questions about one context."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click

from monocontext.cli.options import S3, Dask, workers
from monocontext.cli.parameters import AT_LEAST_1, Argument, Option
from monocontext.cli.printing import print_line, print_remark
from monocontext.options import StoreOptions
from rlm.batch import BadQuestions, Result, answer_question, read_questions, run_batch
from rlm.cli.context_argument import open_argument
from rlm.cli.options import Limits, ModelOptions, choose_models, describe_rights, one_line_errors
from rlm.models.sdk import SDKModel
from rlm.rlm import RLM


@one_line_errors()
def batch(
    questions: Annotated[str, Argument(metavar="QUESTIONS", help="File of JSON lines, each a string or "
                                                                 '{"question": ..., "id": ...}.')],
    context: Annotated[str, Argument(help="URL or directory of a context, or a text file.")],
    out: Annotated[str, Option(help="File for the results, a JSON line each; questions answered in it are skipped.")],
    model_options: ModelOptions, limits: Limits, s3: S3,
    at_once: Annotated[int, Option(type=AT_LEAST_1, help="Questions to answer at the same time.")] = 8,
    dask: Dask = None,
) -> None:  # fmt: skip
    """Answer many questions about CONTEXT. Limits of calls, tokens and dollars apply to all questions together.

    The same command resumes an interrupted batch. It also continues failed questions, without paying for a call twice,
    and starts over those that ended at such a limit.
    """
    print_remark(describe_rights(limits["runner"]))
    entries = read_questions(Path(questions))
    if not entries:
        raise BadQuestions(f"{questions} contains no question: write one on each line, as a JSON string")
    in_worker = partial(_answer_in_worker, model_options, limits, context, s3)
    with RLM(**choose_models(model_options), **limits) as rlm, open_argument(context, s3) as text:
        for lm in rlm.lms:
            if isinstance(lm, SDKModel):
                lm.connect()  # a missing key is an error before the first question
        try:
            with workers(dask) as cluster:
                rows, spent = run_batch(
                    entries, Path(out), rlm, text, budget=limits["budget"], at_once=at_once,
                    answer_elsewhere=None if cluster is None else lambda *job: cluster.submit(in_worker, *job).result(),
                )  # fmt: skip
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; the same command resumes the batch") from None
    failed = sum(bool(row.get("error")) for row in rows)
    finished = sum(bool(row.get("finished")) for row in rows)
    summary = (
        f"{finished} of {len(entries)} questions answered; {len(rows) - finished - failed} ended at a limit, {failed} "
        f"failed, {len(entries) - len(rows)} not reached within the budget; {spent['calls']:,} calls, "
        f"{spent['tokens']:,} tokens, ${spent['dollars']:.4f} known, earlier runs included"
    )
    if finished < len(entries):
        print_line(summary, err=True)
        raise click.exceptions.Exit(1)
    print_remark(summary)


def _answer_in_worker(
    model_options: dict[str, Any], limits: dict[str, Any], context: str, s3: StoreOptions, *job: Any
) -> Result:
    """Run `answer_question` in a worker of a cluster, which opens the models and the text with its own keys."""
    with RLM(**choose_models(model_options), **limits) as rlm, open_argument(context, s3) as text:
        return answer_question(rlm, text, *job)
