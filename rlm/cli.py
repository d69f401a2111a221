"""The command `rlm`, also `python -m rlm`. An edge: it looks at the environment, and knows `monocontext`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from rlm.completion import Completion
from rlm.errors import RLMError
from rlm.rlm import RLM

RIGHTS = "Code that the model writes runs on this machine with your rights (runner: local, no sandbox)."

CONFINED = "Code that the model writes runs confined, without your keys, files and network (runner: {})."

Where = Annotated[str, typer.Option("--runner", help="Where the model's code runs: subprocess (confined), local (with "
                                    "your rights), docker, modal.")]  # fmt: skip

app = typer.Typer(help="Answer questions about texts far larger than a model can read.", no_args_is_help=True,
                  add_completion=False, pretty_exceptions_enable=False)  # fmt: skip


@app.command()
def run(
    context: Annotated[str, typer.Argument(help="A context's URL or directory, a text file, or - for stdin.")],
    question: Annotated[str, typer.Argument(help="What to answer.")],
    model: Annotated[str, typer.Option(help="The root model.")] = "gpt-5",
    sub_model: Annotated[str | None, typer.Option(help="The model of sub-calls; by default the root model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Any OpenAI-compatible endpoint; else OPENAI_BASE_URL.")] = None,
    max_iterations: Annotated[int, typer.Option(min=1, help="Turns before an answer is forced.")] = 30,
    trajectory: Annotated[str | None, typer.Option(help="A .jsonl file, or a directory for one file per run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the answer.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show the steps.")] = False,
    runner: Where = "subprocess",
) -> None:
    """Answer QUESTION from CONTEXT. The answer goes to stdout, the steps to stderr."""
    typer.echo(rights(runner), err=True)
    from rlm import console

    with _one_line_errors():
        _warn_of_rlms()
        with _opened(context) as held:
            completion = RLM(
                model,
                sub_model,
                base_url=base_url or os.environ.get("OPENAI_BASE_URL"),
                max_iterations=max_iterations,
                runner=runner,
                trajectory=trajectory,
                on_step=None if quiet else console.print_step,
            ).completion(question, held)
    if not quiet:
        console.print_summary(completion)
    typer.echo(json.dumps(_as_json(completion)) if as_json else completion.answer)


@app.command()
def demo(
    latency_ms: Annotated[float, typer.Option(min=0, help="Added to each GET, as a far bucket would take.")] = 30,
    model: Annotated[str | None, typer.Option(help="The root model; needs OPENAI_API_KEY.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Any OpenAI-compatible endpoint; else OPENAI_BASE_URL.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show the steps.")] = False,
    runner: Where = "subprocess",
) -> None:
    """Start an S3 server here, store a real text in it, and answer a question about it."""
    typer.echo(rights(runner), err=True)
    from rlm.demo import main as run_demo

    with _one_line_errors():
        right = run_demo(latency_seconds=latency_ms / 1000, model=model, base_url=base_url, quiet=quiet,
                         runner=runner)  # fmt: skip
    if not right:
        raise typer.Exit(1)


def main() -> None:
    """The console script."""
    app()


def rights(runner: str) -> str:
    """What a user should know before anything runs."""
    return RIGHTS if runner == "local" else CONFINED.format(runner)


@contextmanager
def _opened(context: str) -> Iterator[Any]:
    """The text that CONTEXT names: lazily where it is a context in storage, else as a str."""
    if context.startswith("memory:"):
        _fail(f"{context} lives in the memory of one process, a command cannot reach it: use a directory or S3")
    if context == "-":
        yield _decoded(sys.stdin.buffer.read(), "stdin")
    elif "://" not in context and Path(context).is_file():
        yield _decoded(Path(context).read_bytes(), context)
    else:
        from monocontext import Monocontext

        with Monocontext.open(context) as held:
            yield held


def _decoded(data: bytes, source: str) -> str:
    """Text as it stands: line ends are kept, a byte order mark is dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        _fail(f"{source} is not UTF-8: byte 0x{data[exc.start]:02x} at offset {exc.start}")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """What a user can mend is one line and exit 2; a bug keeps its traceback; Ctrl-C is exit 130."""
    try:
        yield
    except (RLMError, OSError) as exc:
        _fail(str(exc))
    except KeyboardInterrupt:
        typer.echo("rlm: interrupted", err=True)
        raise typer.Exit(130) from None
    except Exception as exc:
        from monocontext.errors import MonocontextError

        if not isinstance(exc, MonocontextError):
            raise
        _fail(str(exc))


def _fail(message: str) -> NoReturn:
    typer.echo(f"rlm: {' '.join(message.split())}", err=True)
    raise typer.Exit(2) from None


def _warn_of_rlms() -> None:
    """The distribution `rlms` installs a package `rlm` too; whichever came last has overwritten the other."""
    for distribution in ("rlms", "recursive-llm", "better-rlm"):
        try:
            metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
        typer.echo(f"warning: {distribution} is installed here and owns the package name `rlm` as well", err=True)


def _as_json(completion: Completion) -> dict[str, Any]:
    return {
        "answer": completion.answer,
        "finished": completion.finished,
        "reason": completion.reason,
        "iterations": completion.iterations,
        "seconds": round(completion.seconds, 3),
        "usage": completion.usage.to_dict(),
        "io": completion.io,
        "trajectory": str(completion.trajectory_path) if completion.trajectory_path else None,
    }
