"""The command `rlm`, also `python -m rlm`. An edge: it looks at the environment, and knows `monocontext`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Annotated, Any, NoReturn

import typer

from monocontext.cli import mcp as served
from monocontext.cli import options as storing
from rlm import __version__, backends
from rlm.budget import Budget
from rlm.compile.command import compile_command
from rlm.completion import Completion
from rlm.errors import LLMError, RLMError
from rlm.excerpt import printable
from rlm.opening import UsageError, opened
from rlm.recording import Recording
from rlm.rlm import RLM, recorded_options
from rlm.runner import DEFAULT_RUNNER
from rlm.runners import check_runner

RIGHTS = "Code that the model writes runs on this machine with your rights (runner: local, no sandbox)."

CONFINED = "Code that the model writes runs confined, without your keys, files and network (runner: {})."

app = typer.Typer(help="Answer questions about texts far larger than a model can read.", no_args_is_help=True,
                  add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)  # fmt: skip


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rlm {__version__}")
        raise typer.Exit


@app.callback()
def before(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What every command takes."""


Context = Annotated[str, typer.Argument(help="A context's URL or directory, a text file, or - for stdin.")]
Model = Annotated[str | None, typer.Option(help="The root model; by default gpt-5, or that of the preset.")]
SubModel = Annotated[str | None, typer.Option(help="The model of sub-calls; by default the root model.")]
Preset = Annotated[str | None, typer.Option(help=f"A pair of models: {', '.join(backends.PRESETS)}.")]
Backend = Annotated[str | None, typer.Option(help=f"Whose SDK asks: {', '.join(backends.BACKENDS)}.")]
BaseUrl = Annotated[str | None, typer.Option(help="Any OpenAI-compatible endpoint; else OPENAI_BASE_URL.")]
Runner = Annotated[str, typer.Option(help="Where the model's code runs: subprocess (confined), local (with your "
                                     "rights), docker, modal.")]  # fmt: skip
MaxIterations = Annotated[int, typer.Option(min=1, help="Turns before an answer is forced.")]
MaxCalls = Annotated[int | None, typer.Option(min=1, help="Calls of models, sub-calls included.")]
MaxTokens = Annotated[int | None, typer.Option(min=1, help="Tokens, in and out, over all calls.")]
MaxDollars = Annotated[float | None, typer.Option(min=0, help="Dollars over all calls, by the price table.")]
MaxSeconds = Annotated[float | None, typer.Option(min=0, help="Wall clock of a question.")]
MaxDepth = Annotated[int, typer.Option(min=1, help="2 lets the model start child runs.")]
CacheDir = Annotated[str | None, typer.Option(help="Keep answers of sub-calls there, and use them again.")]
Trajectory = Annotated[str | None, typer.Option(help="A .jsonl file, or a directory for one file per run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the answer.")]
Verbose = Annotated[bool | None, typer.Option("--verbose/--quiet", help="Show the steps on stderr; by default only on "
                                              "a terminal.", show_default=False)]  # fmt: skip


@app.command()
def run(
    context: Annotated[str | None, typer.Argument(help="A context's URL or directory, a text file, or - for stdin."
                                                  )] = None,
    question: Annotated[str | None, typer.Argument(help="What to answer.")] = None,
    model: Model = None,
    sub_model: SubModel = None,
    preset: Preset = None,
    backend: Backend = None,
    base_url: BaseUrl = None,
    runner: Runner = DEFAULT_RUNNER,
    max_iterations: MaxIterations = 30,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    max_seconds: MaxSeconds = None,
    max_depth: MaxDepth = 1,
    cache_dir: CacheDir = None,
    trajectory: Trajectory = None,
    resume: Annotated[str | None, typer.Option(help="Go on with the run that this trajectory records.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = None,
) -> None:  # fmt: skip
    """Answer QUESTION from CONTEXT. The answer goes to stdout, the steps to stderr."""
    from rlm.console import Display

    with _one_line_errors():
        _warn_of_rlms()
        display = Display(shown=sys.stderr.isatty() if verbose is None else verbose)
        recording = Recording.load(resume)[0] if resume else None
        options: dict[str, Any] = {
            "trajectory": trajectory, "cache_dir": cache_dir, "on_step": display.step, "on_delta": display.delta,
            "runner": runner,
        }  # fmt: skip
        if recording:
            place = context or recording.metadata.get("source")
            recorded = recorded_options(recording.metadata)
            runner = str(recorded["runner"])
            options |= recorded
        elif context is None or question is None:
            raise UsageError("a run needs a CONTEXT and a QUESTION, or --resume with a trajectory")
        else:
            place = context
            budget = Budget(max_iterations, max_calls, max_tokens, max_dollars, max_seconds)
            options |= _models(model, sub_model, preset, backend, base_url) | {"budget": budget, "max_depth": max_depth}
        typer.echo(rights(runner), err=True)
        with RLM(**options) as rlm, display:
            if recording and resume:
                if place is None or ("context_value" in recording.metadata and not context):
                    completion = rlm.resume(resume)
                else:
                    with opened(place) as held:
                        completion = rlm.resume(resume, held)
            else:
                with opened(str(place)) as held, rlm.session(held, source=place) as session:
                    display.watch(session)
                    completion = _answered(session.ask, str(question), session)
        display.summary(completion)
        _say(json.dumps(_as_json(completion)) if as_json else completion.answer)


@app.command()
def chat(
    context: Context,
    model: Model = None,
    sub_model: SubModel = None,
    preset: Preset = None,
    backend: Backend = None,
    base_url: BaseUrl = None,
    runner: Runner = DEFAULT_RUNNER,
    max_iterations: MaxIterations = 30,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    max_seconds: MaxSeconds = None,
    max_depth: MaxDepth = 1,
    cache_dir: CacheDir = None,
    trajectory: Trajectory = None,
    verbose: Verbose = None,
) -> None:
    """Ask questions in a row over CONTEXT, in one namespace; limits are for each question. /help says more."""
    from rlm.chat import chat as talk
    from rlm.console import Display

    with _one_line_errors():
        _warn_of_rlms()
        typer.echo(rights(runner), err=True)
        display = Display(shown=sys.stderr.isatty() if verbose is None else verbose)
        rlm = RLM(
            **_models(model, sub_model, preset, backend, base_url), runner=runner, max_depth=max_depth,
            budget=Budget(max_iterations, max_calls, max_tokens, max_dollars, max_seconds), cache_dir=cache_dir,
            trajectory=trajectory, on_step=display.step, on_delta=display.delta,
        )  # fmt: skip
        with rlm, opened(context) as held:
            talk(rlm, held, display, source=context)


@app.command()
def summarize(
    source: Annotated[str, typer.Argument(help="A text file, a context's URL or directory, or - for stdin.")],
    model: Model = None,
    preset: Preset = None,
    backend: Backend = None,
    base_url: BaseUrl = None,
    focus: Annotated[str | None, typer.Option(help="What to pay attention to.")] = None,
    chunk_characters: Annotated[int, typer.Option(min=1_000, help="How much of the text one call reads.")] = 60_000,
    max_calls: Annotated[int, typer.Option(min=1, help="A text that needs more calls is refused.")] = 200,
    max_dollars: MaxDollars = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Summarize a text: each part by a call of its own, several at once, then all of it."""
    from rlm.summarize import summarize as summarized

    with _one_line_errors():
        _warn_of_rlms()
        chosen = _models(model, None, preset, backend, base_url)
        # The reading is sub-calls: of a preset the smaller model does it.
        rlm = RLM(**chosen, max_calls=max_calls, max_dollars=max_dollars, cache_dir=cache_dir)
        with rlm, opened(source) as held:
            summary = summarized(rlm, held, chunk_characters=chunk_characters, focus=focus)
        _say(json.dumps(summary.to_dict()) if as_json else summary.text)
        if not as_json and sys.stderr.isatty():
            typer.echo(repr(summary.usage), err=True)


@app.command()
def view(
    run: Annotated[str, typer.Argument(help="A trajectory (.jsonl), or a directory: the newest one in it.")],
    host: Annotated[str, typer.Option(help="Where to serve; by default this machine alone reaches it.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")] = 0,
    export: Annotated[str | None, typer.Option(help="Write one HTML file that needs no server, and end.")] = None,
    open_browser: Annotated[bool | None, typer.Option("--open/--no-open", help="Open it in a browser; by default on a "
                                                      "terminal.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Look at a recorded run, also while it goes on: timeline, coverage of the text, cells, sub-calls, costs."""
    from rlm.view import command

    with _one_line_errors():
        path = command.trajectory(run)
        if export:
            command.write(path, export)
            typer.echo(export)
        else:
            command.serve(path, host, port, open_browser=sys.stdout.isatty() if open_browser is None else open_browser)


@app.command()
def demo(
    latency_ms: Annotated[float, typer.Option(min=0, help="Added to each GET, as a far bucket would take.")] = 30,
    model: Annotated[str | None, typer.Option(help="The root model; needs OPENAI_API_KEY.")] = None,
    base_url: BaseUrl = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show the steps.")] = False,
    runner: Runner = DEFAULT_RUNNER,
) -> None:
    """Start an S3 server here, store a real text in it, and answer a question about it."""
    from rlm.demo import main as run_demo
    from rlm.demo import try_runner

    with _one_line_errors():
        try_runner(runner)
        typer.echo(rights(runner), err=True)
        right = run_demo(latency_seconds=latency_ms / 1000, model=model, base_url=base_url, quiet=quiet,
                         runner=runner)  # fmt: skip
    if not right:
        raise typer.Exit(1)


@app.command()
def mcp(
    contexts: served.Contexts = None,
    sessions: served.SessionsUrl = None,
    memory: served.MemoryUrl = None,
    http: served.Http = False,
    host: served.Host = "127.0.0.1",
    port: served.Port = 8378,
    token: served.Token = None,
    no_token: served.NoToken = False,
    model: Model = None,
    sub_model: SubModel = None,
    preset: Preset = None,
    backend: Backend = None,
    base_url: BaseUrl = None,
    runner: Runner = DEFAULT_RUNNER,
    max_iterations: MaxIterations = 30,
    max_calls: MaxCalls = None,
    max_dollars: MaxDollars = None,
    max_seconds: MaxSeconds = None,
    trajectory: Trajectory = None,
    allow: storing.Allow = None,
    endpoint: storing.Endpoint = None,
    region: storing.Region = None,
    profile: storing.Profile = None,
    anonymous: storing.Anonymous = False,
) -> None:
    """Serve texts, and answers about them, to programs that speak the Model Context Protocol."""
    from rlm.mcp import serve

    with _one_line_errors():
        typer.echo(rights(runner), err=True)
        models = _models(model, sub_model, preset, backend, base_url) | {"runner": runner, "trajectory": trajectory}
        serve(
            contexts or [], sessions, memory,
            models | {"budget": Budget(max_iterations, max_calls, None, max_dollars, max_seconds)},
            allow=allow or [], store_options=storing.s3_options(endpoint, region, profile, anonymous),
            http=http, host=host, port=port, token="" if no_token else token,
        )  # fmt: skip


app.command("compile")(compile_command)


def main() -> None:
    """The console script."""
    app()


def _models(
    model: str | None, sub_model: str | None, preset: str | None, backend: str | None, base_url: str | None
) -> dict[str, Any]:
    """The keywords of RLM that say who is asked."""
    if preset:
        return {"preset": preset, "sub_model": sub_model, "base_url": base_url} | ({"model": model} if model else {})
    if backend and backend != "openai":
        name = model or next((root for of, root, _ in backends.PRESETS.values() if of == backend), "claude-sonnet-5-5")
        return {"lm": backends.make_lm(backend, name, base_url=base_url), "sub_model": sub_model}
    return {
        "model": model or "gpt-5",
        "sub_model": sub_model,
        "base_url": base_url or os.environ.get("OPENAI_BASE_URL"),
    }


def _answered(ask: Any, question: str, session: Any) -> Completion:
    """The completion; a failure says how to go on where that is possible."""
    try:
        completion: Completion = ask(question)
        return completion
    except LLMError as exc:
        if session.path is None:
            raise
        raise LLMError(f"{exc} (go on later: rlm run --resume {session.path})") from exc


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


def rights(runner: str) -> str:
    """What a user should know before anything runs. Raises RunnerUnavailable for a runner that there is not."""
    check_runner(runner)
    return RIGHTS if runner == "local" else CONFINED.format(runner)


def _warn_of_rlms() -> None:
    """The distribution `rlms` installs a package `rlm` too; whichever came last has overwritten the other."""
    for distribution in ("rlms", "recursive-llm", "better-rlm"):
        try:
            metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
        typer.echo(f"warning: {distribution} is installed here and owns the package name `rlm` as well", err=True)


def _say(text: str) -> None:
    typer.echo(printable(text, terminal=sys.stdout.isatty()))


def _as_json(completion: Completion) -> dict[str, Any]:
    return {
        "answer": completion.answer,
        "finished": completion.finished,
        "reason": completion.reason,
        "iterations": completion.iterations,
        "seconds": round(completion.seconds, 3),
        "usage": completion.usage.to_dict(),
        "cost": completion.cost,
        "io": completion.io,
        "notes": list(completion.notes),
        "trajectory": str(completion.trajectory_path) if completion.trajectory_path else None,
    }
