"""The command `sessions upload`: store transcripts of coding agents in an archive, once or whenever they grow."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import Annotated

import click

from monocontext.cli.archive import OwnProject, Patterns, To, archive_url, open_archive
from monocontext.cli.options import S3, AsJson, rounds
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
    agent: Annotated[str | None, Option(help="Only sessions of this agent; for files, that which wrote them.")] = None,
    project: OwnProject = None,
    dry_run: Annotated[bool, Option(help="Upload nothing; list what would be, and the secrets found.")] = False,
    no_redact: Annotated[bool, Option(help="Keep secrets in the upload; the archive records that.")] = False,
    pattern: Patterns = None,
    as_json: AsJson = False,
) -> None:
    """Upload the latest session, the named ones, or all; those that are in the archive already are left out."""
    names, url = _split_archive(list(arguments or ()), to)
    any_failed = False
    with open_archive(url, s3) as archive:
        upload_file = partial(
            upload_session, archive.store, project=project, user=user_at_machine(), redact=not no_redact,
            patterns=pattern or (), dry_run=dry_run, is_open=watch,
        )  # fmt: skip
        Redactor(pattern or ())  # raises for a wrong pattern, which else each file would name
        files: list[SessionFile] = []
        for _ in rounds(watch, interval):
            try:
                files = _select_sessions(names, everything, agent, watch)
            except (MonocontextError, OSError):
                if not files:
                    raise  # else a file is empty while it is written again: its upload says so
            for file in files:
                try:
                    report = upload_file(file)
                except (MonocontextError, OSError) as error:
                    if not (everything or watch):
                        raise
                    any_failed = True  # one damaged file does not stop the upload of the others
                    reported = str(error)  # an `OSError` names the file itself
                    print_error("monocontext", reported if str(file.path) in reported else f"{file.path}: {reported}")
                else:
                    if not watch or report.bytes:
                        _print_report(report, as_json, dry_run)
    if any_failed:
        raise click.exceptions.Exit(1)


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


def _select_sessions(names: list[str], everything: bool, agent: str | None, watch: bool) -> list[SessionFile]:
    """The sessions with these names; without names all with `--all` or `--watch`, else the latest."""
    if names:
        return [file for name in names for file in find_sessions(name, agent)]
    result = discover_sessions(agent)
    if not result and not watch:
        raise MonocontextError("no agent has sessions on this machine: name a file, or run this where the agent runs")
    if everything or watch:
        return result
    latest = result[0].session_id.partition("/")[0]
    return [file for file in result if file.session_id.partition("/")[0] == latest]


def _print_report(report: Uploaded, as_json: bool, is_dry: bool) -> None:
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
