"""The command `rlm compile`. An edge: it reads the environment."""

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
from monocontext.cli.settings import from_file
from monocontext.options import StoreOptions
from rlm.cli.asking import Limits, ModelChoice, choose_models, limits, model_flags, with_settings
from rlm.errors import RLMError

TOKEN_VARIABLE = "RLM_WATCH_TOKEN"
Duration = partial(Option, parser=parse_seconds, metavar="DURATION")


@with_options("who", model_flags)
@with_options("limits", limits, max_iterations=12)
@storing.with_s3_options
def compile_command(
    place: Annotated[str | None, Argument(metavar="[URL]", help="The archive; else MONOCONTEXT_URL.")] = None,
    project: Annotated[str | None, Option("--project", "-p", help="By default every project in the archive.")] = None,
    to: Annotated[str | None, Option("--url", "--to", help="The archive, as an option.")] = None,
    extractive: Annotated[bool, Option("--extractive", help="No model, even where there is a key.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON, a line a project.")] = False,
    max_dollars_per_day: Annotated[
        float | None, Option(min=0, help="Dollars of a day (UTC), over all who compile the project.")
    ] = None,
    watch: Annotated[bool, Option("--watch", help="Go on, and compile what agents upload.")] = False,
    every: Annotated[float, Duration(help="With --watch, the time between two looks.")] = "1m",  # type: ignore[assignment]
    settle: Annotated[float, Duration(help="With --watch, how long a session rests that has no end.")] = "10m",  # type: ignore[assignment]
    span: Annotated[float | None, Duration("--for", help="With --watch, end after this long.")] = None,
    once: Annotated[bool, Option("--once", help="With --watch, look once.")] = False,
    lease: Annotated[float, Duration(help="When others go on for a machine that died.")] = "3m",  # type: ignore[assignment]
    listen: Annotated[
        int | None, Option(min=0, max=65535, help="With --watch, look at each POST to this port; 0: a free one.")
    ] = None,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    token: Annotated[str | None, Option(help=f"Bearer token of POSTs; else {TOKEN_VARIABLE}, else new.")] = None,
    *,
    who: ModelChoice,
    limits: Limits,
    s3: storing.S3,
) -> None:
    """Compile new sessions into a brief for the next ones. Decisions, patterns, index too; without a key by rules."""
    from monocontext.errors import MonocontextError
    from rlm.compile import compile_sessions

    url = to or place or os.environ.get("MONOCONTEXT_URL") or from_file("sessions.url")
    try:
        if not url:
            raise RLMError("which archive? Give its URL, or set MONOCONTEXT_URL")
        models = {} if not _has_model(who, extractive) else choose_models(with_settings(who))
        options = {
            **models, **(limits if models else {}), "store_options": s3, "lease_seconds": lease,
            "max_dollars_per_day": max_dollars_per_day,
            "on_session": _progress,
        }  # fmt: skip
        if watch:
            with _listening(listen, host, token) as wake:
                failed = _watch(url, project, as_json, {**options, "every_seconds": every, "settle_seconds": settle,
                                "for_seconds": span, "once": once, "wake": wake})  # fmt: skip
            if failed and once:
                raise click.exceptions.Exit(1)
            return
        for each in [project] if project else _projects(url, s3):
            _say(url, compile_sessions(url, each, **options), as_json)
    except (RLMError, MonocontextError, OSError) as error:
        from rlm.trajectory.flags import in_flags

        fail("rlm", in_flags(str(error)))
        raise click.exceptions.Exit(2) from None
    except KeyboardInterrupt:
        fail("rlm", "interrupted; the digests made so far are kept: the same command goes on from them")
        raise click.exceptions.Exit(130) from None


def _watch(url: str, project: str | None, as_json: bool, options: dict[str, Any]) -> bool:
    """Watch until it is over; whether something failed. SIGTERM, by which services are ended, is as Ctrl-C."""
    from rlm.compile.watching import watch_sessions
    from rlm.trajectory.flags import in_flags

    failures: list[str] = []

    def say_outcome(name: str, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            failures[:] = [name]
            fail("rlm", in_flags(f"{name or url}: {outcome}"))
        else:
            _say(url, outcome, as_json)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    watch_sessions(url, project, on_outcome=say_outcome, **options)
    return bool(failures)


@contextmanager
def _listening(port: int | None, host: str, token: str | None) -> Iterator[threading.Event]:
    """Listen on the port; each POST sets the event."""
    from rlm.compile.webhook_listener import WebhookListener

    wake = threading.Event()
    if port is None:
        yield wake
        return
    given = token or os.environ.get(TOKEN_VARIABLE) or None
    with WebhookListener(host, port, wake, given) as notices:
        click.echo(f"rlm: a POST to {notices.url} makes it look", err=True)
        if given is None:
            click.echo(f"Authorization: Bearer {notices.token}", err=True)
        yield wake


def _has_model(who: ModelChoice, extractive: bool) -> bool:
    """Whether a model is named, or a key exists; then `who` names its maker. A base URL in the file does not name
    one."""
    who_answers = who["model"], who["preset"], who["backend"], who["base_url"]
    named = from_file("models.model") or any(said is not None for said in who_answers)
    if extractive or named:
        return not extractive
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        who |= {"model": os.environ.get("OPENAI_MODEL"), "backend": "openai"}
    elif os.environ.get("ANTHROPIC_API_KEY"):
        who["preset"] = "anthropic"
    else:
        click.echo("rlm: no key and no endpoint: lines are picked by rules, no model reads", err=True)
        return False
    return True


def _projects(url: str, options: StoreOptions) -> list[str]:
    from monocontext.sessions.archive import Sessions

    with Sessions.open(url, **options) as archive:
        found = archive.projects()
    if not found:
        raise RLMError(f"no sessions at {url}")
    return found


def _progress(session_id: str, number: int, of: int) -> None:
    remark(f"{number}/{of} {session_id}")


def _say(url: str, result: Any, as_json: bool) -> None:
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
