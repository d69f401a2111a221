"""The command `sessions upload`: store transcripts of coding agents in an archive, once or whenever they grow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated

import click

from monocontext.cli.archive import OwnProject, Patterns, To, archive_url, open_archive
from monocontext.cli.options import S3, AsJson, repeat
from monocontext.cli.parameters import INTERVAL, Argument, Option
from monocontext.cli.printing import print_error, print_line
from monocontext.errors import MonocontextError
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import discover_sessions, find_sessions
from monocontext.sessions.redaction import Redactor
from monocontext.sessions.upload import Uploaded, upload_session, user_at_machine


def upload(
    s3: S3,
    arguments: Annotated[
        list[str] | None,
        Argument(metavar="[SESSION]... [URL]", help="Ids or files, by default the latest; then the archive's URL."),
    ] = None,
    to: To = None,
    everything: Annotated[bool, Option("--all", help="Upload every session on this machine.")] = False,
    watch: Annotated[bool, Option(help="Keep running, and upload what sessions add.")] = False,
    interval: Annotated[float, Option(type=INTERVAL, help="Seconds between two checks of --watch.")] = 10.0,
    agent: Annotated[str | None, Option(help="The agent whose sessions to upload, or that wrote a file.")] = None,
    project: OwnProject = None,
    dry_run: Annotated[bool, Option(help="Upload nothing; list what would be uploaded, and its secrets.")] = False,
    no_redact: Annotated[bool, Option(help="Keep secrets in the upload; the archive records that.")] = False,
    pattern: Patterns = None,
    as_json: AsJson = False,
) -> None:
    """Upload the latest session, the named ones, or all. Sessions that are already in the archive are skipped."""
    names, url = _split_archive(list(arguments or ()), to)
    any_failed = False
    with open_archive(url, s3) as archive:
        upload_file = partial(
            upload_session, archive.store, project=project, user=user_at_machine(), redact=not no_redact,
            patterns=pattern or (), dry_run=dry_run, is_open=watch,
        )  # fmt: skip
        Redactor(pattern or ())  # raises for an invalid pattern, once instead of for each file
        files: list[SessionFile] = []
        for _ in repeat(watch, interval):
            try:
                files = _select_sessions(names, agent, takes_all=everything or watch, may_be_none=watch)
            except (MonocontextError, OSError):
                if not files:
                    raise  # else an agent may be rewriting a file: its upload reports that
            for file in files:
                report = _upload_or_explain(upload_file, file, keeps_going=everything or watch)
                if report is None:
                    any_failed = True
                elif report.bytes or not watch:
                    _print_report(report, as_json=as_json, is_dry=dry_run)
    if any_failed:
        raise click.exceptions.Exit(1)


def _upload_or_explain(
    upload_file: Callable[[SessionFile], Uploaded], file: SessionFile, *, keeps_going: bool
) -> Uploaded | None:
    """Upload a file. With `keeps_going`, an error is printed rather than raised, and None is returned."""
    try:
        return upload_file(file)
    except (MonocontextError, OSError) as error:
        if not keeps_going:
            raise
        message = str(error)  # an `OSError` names the file itself
        print_error("monocontext", message if str(file.path) in message else f"{file.path}: {message}")
        return None


def _split_archive(words: list[str], to: str | None) -> tuple[list[str], str]:
    """Split the arguments into the names of sessions and the URL of the archive.

    The URL is the last word if it looks like a URL or a directory, or if there are several words and MONOCONTEXT_URL is
    not set. The name of a session's file is never the URL.
    """
    last = words[-1] if words else ""
    is_file = os.path.isfile(last) or last.endswith((".jsonl", ".jsonl.zst"))
    is_last_of_several = len(words) > 1 and not os.environ.get("MONOCONTEXT_URL")
    is_location = "://" in last or os.path.isdir(last) or os.sep in last
    if to is None and words and not is_file and (is_location or is_last_of_several):
        to = words.pop()
    return words, archive_url(None, to)


def _select_sessions(names: list[str], agent: str | None, *, takes_all: bool, may_be_none: bool) -> list[SessionFile]:
    """The sessions with these names. Without names: all if `takes_all`, else the latest with its subagents."""
    if names:
        return [file for name in names for file in find_sessions(name, agent)]
    files = discover_sessions(agent)
    if not files and not may_be_none:
        raise MonocontextError("no agent has sessions on this machine: name a file, or run this where the agent runs")
    if takes_all:
        return files
    parents = [file.session_id.partition("/")[0] for file in files]  # `id` for `id/agent`, a subagent of it
    return [file for file, parent in zip(files, parents, strict=True) if parent == parents[0]]


def _print_report(report: Uploaded, *, as_json: bool, is_dry: bool) -> None:
    if as_json:
        counts = {name: getattr(report, name) for name in ("session_id", "project", "records", "turns", "bytes")}
        findings = [{"kind": item.kind, "line": item.line, "where": item.where} for item in report.findings]
        print(json.dumps({**counts, "redacted": report.counts, "findings": findings, "problems": report.problems,
                          "dry_run": is_dry}), flush=True)  # fmt: skip
        return
    verb = "would upload" if is_dry else "uploaded"
    print_line(f"{report.session_id}: {verb} {report.records} records, {report.turns} turns, {report.bytes:,} bytes "
        f"to {report.project}")  # fmt: skip
    if report.counts:
        print_line("  redacted: " + ", ".join(f"{count} {kind}" for kind, count in report.counts.items()))
        for finding in report.findings:
            print_line(f"    {finding}")
    for problem in report.problems:
        print_line(f"  {problem}")
    sys.stdout.flush()
