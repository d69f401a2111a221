"""Define the command `rlm compile`, which summarizes sessions of coding agents into a brief."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import click

from monocontext.cli import options as storing
from monocontext.cli.options import parse_seconds, with_options
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import fail, remark, say
from monocontext.cli.settings import setting_from_file
from monocontext.options import StoreOptions
from rlm.cli.options import Limits, ModelOptions, choose_models, limits, model_flags, with_settings
from rlm.cli.reporting import one_line_errors
from rlm.errors import RLMError

TOKEN_VARIABLE = "RLM_WATCH_TOKEN"
"""The environment variable with the token of `--listen`."""
Duration = partial(Option, parser=parse_seconds, metavar="DURATION")
"""An option that takes `90s`, `10m`, `2h`; its value is in seconds."""


@with_options("model_options", model_flags)
@with_options("limits", limits, max_iterations=12)
@storing.with_s3_options
@one_line_errors()
def compile_command(
    place: Annotated[
        str | None, Argument(metavar="[URL]", help="URL of the archive; by default MONOCONTEXT_URL.")
    ] = None,
    project: Annotated[
        str | None, Option("--project", "-p", help="Only this project; by default every project of the archive.")
    ] = None,
    to: Annotated[str | None, Option("--url", "--to", help="URL of the archive, as an option.")] = None,
    extractive: Annotated[bool, Option("--extractive", help="Use no model, even if a key is set.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print a line of JSON for each project.")] = False,
    max_dollars_per_day: Annotated[
        float | None,
        Option(min=0, help="Limit of cost for each day (UTC), over all machines that compile the project."),
    ] = None,
    watch: Annotated[bool, Option("--watch", help="Keep running, and compile what agents upload.")] = False,
    every: Annotated[float, Duration(help="With --watch: time between two checks of the archive.")] = "1m",  # type: ignore[assignment]
    settle: Annotated[
        float, Duration(help="With --watch: wait this long after the last upload of an unfinished session.")
    ] = "10m",  # type: ignore[assignment]
    span: Annotated[float | None, Duration("--for", help="With --watch: stop after this time.")] = None,
    once: Annotated[bool, Option("--once", help="With --watch: check once and stop.")] = False,
    lease: Annotated[float, Duration(help="Time after which others take over from a machine that died.")] = "3m",  # type: ignore[assignment]
    listen: Annotated[
        int | None,
        Option(min=0, max=65535, help="With --watch: also check at each POST to this port; 0 takes a free one."),
    ] = None,
    host: Annotated[str, Option(help="With --listen: address to listen on.")] = "127.0.0.1",
    token: Annotated[
        str | None, Option(help=f"Bearer token of POSTs; by default {TOKEN_VARIABLE}, or else a new one.")
    ] = None,
    *,
    model_options: ModelOptions,
    limits: Limits,
    s3: storing.S3,
) -> None:
    """Compile new sessions into a brief for the next ones. Also writes decisions, patterns and an index.

    Without a key of a model, rules pick the lines.
    """
    from rlm.compile import compile_sessions

    url = to or place or os.environ.get("MONOCONTEXT_URL") or setting_from_file("sessions.url")
    if not url:
        raise RLMError("which archive? Give its URL, or set MONOCONTEXT_URL")
    models = choose_models(with_settings(model_options)) if _has_model(model_options, extractive) else {}
    options = {
        **models, **(limits if models else {}), "store_options": s3, "lease_seconds": lease,
        "max_dollars_per_day": max_dollars_per_day, "on_session": _progress,
    }  # fmt: skip
    try:
        if watch:
            times = {"every_seconds": every, "settle_seconds": settle, "for_seconds": span, "once": once}
            with _listening(listen, host, token) as wake:
                failed = _watch(url, project, as_json, {**options, **times, "wake": wake})
            if failed and once:
                raise click.exceptions.Exit(1)
            return
        for each in [project] if project else _projects(url, s3):
            _print_outcome(url, compile_sessions(url, each, **options), as_json)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the digests made so far are kept, and the same command resumes") from None


def _watch(url: str, project: str | None, as_json: bool, options: dict[str, Any]) -> bool:
    """Watch the archive until Ctrl-C, SIGTERM, or the end of `--for` or `--once`. Returns whether a project failed."""
    from rlm.compile.watching import watch_sessions

    failures: list[str] = []

    def say_outcome(name: str, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            failures.append(name)
            fail("rlm", f"{name or url}: {outcome}")
        else:
            _print_outcome(url, outcome, as_json)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM stops as Ctrl-C does
    watch_sessions(url, project, on_outcome=say_outcome, **options)
    return bool(failures)


@contextmanager
def _listening(port: int | None, host: str, token: str | None) -> Iterator[threading.Event]:
    """Yield an event that each POST to the port sets; with None nothing sets it."""
    from rlm.compile.webhook_listener import WebhookListener

    wake = threading.Event()
    if port is None:
        yield wake
        return
    given_token = token or os.environ.get(TOKEN_VARIABLE) or None
    with WebhookListener(host, port, wake, given_token) as listener:
        click.echo(f"rlm: a POST to {listener.url} starts a check", err=True)
        if given_token is None:
            click.echo(f"Authorization: Bearer {listener.token}", err=True)
        yield wake


def _has_model(flags: ModelOptions, extractive: bool) -> bool:
    """Whether to use a model. If only the environment has a key or an endpoint, also writes its model and backend, or
    preset, into `flags`.

    A base URL in the configuration file does not count.
    """
    if extractive:
        return False
    given = flags["model"], flags["preset"], flags["backend"], flags["base_url"]
    if setting_from_file("models.model") or any(value is not None for value in given):
        return True
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        flags |= {"model": os.environ.get("OPENAI_MODEL"), "backend": "openai"}
    elif os.environ.get("ANTHROPIC_API_KEY"):
        flags["preset"] = "anthropic"
    else:
        click.echo("rlm: no key and no endpoint, so no model is used: rules pick the lines", err=True)
        return False
    return True


def _projects(url: str, options: StoreOptions) -> list[str]:
    """The projects of the archive. Raises `RLMError` if it has none."""
    from monocontext.sessions.archive import Sessions

    with Sessions.open(url, **options) as archive:
        found = archive.projects()
    if not found:
        raise RLMError(f"no sessions at {url}")
    return found


def _progress(session_id: str, number: int, of: int) -> None:
    remark(f"{number}/{of} {session_id}")


def _print_outcome(url: str, result: Any, as_json: bool) -> None:
    """Print a line of JSON, or the outcome in words."""
    from monocontext.sessions.names import BRIEF, COMPILED, key_part

    brief = f"{url.rstrip('/')}/{COMPILED}/{key_part(result.project, 'project')}/{BRIEF}"
    if as_json:
        names = ("project", "sessions", "read", "reused", "generation", "holder", "dropped", "fell_back")
        fields = {name: getattr(result, name) for name in names} | {"brief": brief}
        click.echo(json.dumps(fields | {"usage": result.usage.to_dict()}))
    elif result.holder:
        say(f"{result.project}: {result.holder} is compiling; nothing was done")
    else:
        new = len(result.read) + len(result.reused)
        added = f"{_count(result.sessions, 'session')}, {new or 'nothing'} new"
        say(f"{result.project}: {added}; {_cost(result.usage)}")
        say(f"the brief is {brief}; the next session with hooks begins with it")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _cost(usage: Any) -> str:
    """The calls, tokens and dollars of models, in words."""
    if not usage.calls:
        return "no model was called"
    cost = f"no price known for {', '.join(usage.unpriced)}" if usage.unpriced else f"${usage.known_dollars:.4f}"
    calls = f"{_count(usage.calls, 'call')} of models"
    return f"{calls}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {cost}"
