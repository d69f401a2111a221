"""The command `rlm compile`. An edge: it looks at the environment."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any

import typer

from rlm.errors import RLMError


def compile_command(
    place: Annotated[str | None, typer.Argument(metavar="[URL]", help="The archive; else MONOCONTEXT_URL.")] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", help="By default every project in the archive.")
    ] = None,
    to: Annotated[str | None, typer.Option("--url", "--to", help="The archive, as an option.")] = None,
    model: Annotated[str | None, typer.Option(help="The root model; else OPENAI_MODEL, or gpt-5.")] = None,
    sub_model: Annotated[str | None, typer.Option(help="The model of sub-calls; by default the root model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Any OpenAI-compatible endpoint; else OPENAI_BASE_URL.")] = None,
    extractive: Annotated[bool, typer.Option("--extractive", help="No model, even where there is a key.")] = False,
    max_iterations: Annotated[int, typer.Option(min=1, help="Turns of the root model for each session.")] = 12,
    endpoint: Annotated[str | None, typer.Option(help="S3 server other than AWS; else AWS_ENDPOINT_URL.")] = None,
    region: Annotated[str | None, typer.Option(help="S3 region.")] = None,
    profile: Annotated[str | None, typer.Option(help="Profile of the AWS configuration.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a line a project.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not say which session is read.")] = False,
) -> None:
    """Compile new sessions into the project's brief, decisions, patterns and index. Without a key: by rules."""
    from monocontext.errors import MonocontextError
    from rlm.compile import compile_sessions

    url = to or place or os.environ.get("MONOCONTEXT_URL")
    base_url = base_url or os.environ.get("OPENAI_BASE_URL")
    try:
        if not url:
            raise RLMError("which archive? Give its URL, or set MONOCONTEXT_URL")
        options = {name: v for name, v in (("endpoint", endpoint), ("region", region), ("profile", profile)) if v}
        limits: dict[str, Any] = {"max_iterations": max_iterations}
        lm, sub_lm = _models(model, sub_model, base_url, extractive)
        told = (lambda *_: None) if quiet else _progress
        for each in [project] if project else _projects(url, options):
            result = compile_sessions(
                url, each, lm=lm, sub_lm=sub_lm, store_options=options, on_session=told,
                **(limits if lm else {}),
            )  # fmt: skip
            _say(result, as_json)
    except (RLMError, MonocontextError, OSError) as error:
        typer.echo(f"rlm: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None


def _models(model: str | None, sub_model: str | None, base_url: str | None, extractive: bool) -> tuple[Any, Any]:
    """The root model and that of sub-calls; None where there is no key and no endpoint."""
    if extractive or not (model or base_url or os.environ.get("OPENAI_API_KEY")):
        if not extractive:
            typer.echo("rlm: no OPENAI_API_KEY and no endpoint: lines are picked by rules, no model reads", err=True)
        return None, None
    from rlm import OpenAILM

    root = OpenAILM(model or os.environ.get("OPENAI_MODEL", "gpt-5"), base_url=base_url)
    return root, OpenAILM(sub_model, base_url=base_url) if sub_model else None


def _projects(url: str, options: dict[str, Any]) -> list[str]:
    from monocontext.sessions import Sessions

    with Sessions.open(url, **options) as archive:
        found = archive.projects()
    if not found:
        raise RLMError(f"no sessions at {url}")
    return found


def _progress(session_id: str, number: int, of: int) -> None:
    print(f"{number}/{of} {session_id}", file=sys.stderr, flush=True)


def _say(result: Any, as_json: bool) -> None:
    if as_json:
        names = ("project", "sessions", "read", "reused", "generation", "holder", "dropped", "fell_back")
        typer.echo(json.dumps({n: getattr(result, n) for n in names} | {"usage": result.usage.to_dict()}))
    elif result.holder:
        typer.echo(f"{result.project}: {result.holder} is compiling; nothing was done")
    else:
        typer.echo(
            f"{result.project}: generation {result.generation}, {result.sessions} sessions, {len(result.read)} read, "
            f"{len(result.reused)} digests reused; {result.usage!r}"
        )
