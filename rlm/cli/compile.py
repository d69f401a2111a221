"""The command `rlm compile`: summarize sessions of coding agents in a brief."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from typing import Annotated, Any

import click

from monocontext.cli.archive import ArchiveUrl, ProjectName, archive_url
from monocontext.cli.options import S3, AsJson, checked_options
from monocontext.cli.parameters import Option, OptionGroup
from monocontext.cli.printing import print_line, print_remark
from monocontext.sessions.archive import Sessions
from monocontext.sessions.session_info import BRIEF, COMPILED, key_part
from rlm.cli.options import ModelOptions, choose_models, limits, one_line_errors
from rlm.compile.compiling import CompileResult, compile_sessions
from rlm.errors import RLMError
from rlm.rlm import RLM


@one_line_errors()
def compile_command(
    model_options: ModelOptions, limits: Annotated[dict[str, Any], OptionGroup(limits, {"max_iterations": 12})],
    s3: S3, archive: ArchiveUrl = None, project: ProjectName = None,
    extractive: Annotated[bool, Option(help="Use no model, even if a key is set.")] = False, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Compile new sessions into a brief for the next ones. Without an API key, rules choose the lines."""
    url = archive_url(archive)
    options = checked_options(url, s3)
    with Sessions.open(url, **options) as sessions:
        names = [project] if project else sessions.projects()
    if not names:
        raise RLMError(f"no sessions at {url}: run `monocontext sessions upload` first")
    model_flags = None if extractive else _find_model_flags(model_options)
    with RLM(**choose_models(model_flags), **limits) if model_flags else nullcontext() as rlm:
        try:
            for name in names:
                result = compile_sessions(
                    url, name, rlm, store_options=options,
                    on_session=lambda session, number, count: print_remark(f"{number}/{count} {session}"),
                )  # fmt: skip
                _print_result(url, result, as_json)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; finished digests are kept, and the same command resumes") from None


def _find_model_flags(flags: dict[str, Any]) -> dict[str, Any] | None:
    """`flags`, completed with the model that a key or endpoint in the environment implies. None without any model."""
    if any(flags[name] is not None for name in ("model", "preset", "backend", "base_url")):
        return flags
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return {**flags, "model": os.environ.get("OPENAI_MODEL"), "backend": "openai"}
    if os.environ.get("ANTHROPIC_API_KEY"):
        return {**flags, "preset": "anthropic"}
    click.echo("rlm: rules choose the lines; to use a model, set OPENAI_API_KEY or ANTHROPIC_API_KEY", err=True)
    return None


def _print_result(url: str, result: CompileResult, as_json: bool) -> None:
    brief = f"{url.rstrip('/')}/{COMPILED}/{key_part(result.project, 'project')}/{BRIEF}"
    if as_json:
        fields = {name: getattr(result, name) for name in ("project", "sessions", "read", "dropped")}
        click.echo(json.dumps(fields | {"brief": brief, "usage": result.usage.to_dict()}))
        return
    usage = result.usage
    sessions = f"sessions: {result.sessions:,}, new: {len(result.read):,}"
    print_line(f"{result.project}: {sessions}; {usage.calls:,} calls, ${usage.known_dollars:.4f}")
    print_line(f"the brief is {brief}; the next session with hooks begins with it")
