"""The commands `sessions ...`: upload transcripts of coding agents to an archive; list, show, search, pull them."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple, cast

import click

from monocontext.cli.agent_notes import CODEX_TRUST, describe_clean_up
from monocontext.cli.help import CommandGroup
from monocontext.cli.options import S3, AsJson, open_place, rounds
from monocontext.cli.parameters import AT_LEAST_1, INTERVAL, Argument, Option
from monocontext.cli.printing import escape_controls, print_error, print_line, print_note, print_record
from monocontext.errors import MonocontextError
from monocontext.options import StoreOptions
from monocontext.sessions import settings
from monocontext.sessions.archive import Project, Sessions
from monocontext.sessions.hook import log_path
from monocontext.sessions.pull import Pulled, pull_session
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import discover_sessions, find_sessions
from monocontext.sessions.redaction import Redactor
from monocontext.sessions.turn import render
from monocontext.sessions.upload import Uploaded, upload_session, user_at_machine

To = Annotated[str | None, Option("--to", "--url", help="URL of the archive, if not the last argument.")]
ProjectName = Annotated[str | None, Option("--project", "-p", help="Only this project.")]
OwnProject = Annotated[str | None, Option("--project", "-p", help="Its project; by default that of the repository.")]
Patterns = Annotated[list[str] | None, Option(help="Regular expression that matches more secrets; repeatable.")]
Since = Annotated[str | None, Option(help="Only from this time on: 2026-02-14, or 2026-02-14T10:00:00Z.")]
Until = Annotated[str | None, Option(help="Only up to this time; a date includes the whole day.")]
_LISTED = ("session_id", "project", "agent", "started", "ended", "branch", "tools", "turns", "users", "redacted")
Place = Annotated[str | None, Argument(metavar="[URL]", help="URL of the archive; by default MONOCONTEXT_URL.")]


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
    with _open_archive(url, s3) as archive:
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
                    _print_failure(file, error)
                else:
                    if not watch or report.bytes:
                        _print_report(report, as_json, dry_run)
    if any_failed:
        raise click.exceptions.Exit(1)


def list_sessions(
    s3: S3,
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """List sessions, the oldest first: id, time, users, number of turns, title."""
    with _open_archive(place_of(place, to), s3) as archive:
        is_empty = True
        for item in _projects(archive, project):
            for info in item.sessions(since, until):
                is_empty = False
                title = " ".join((info.title or info.first_prompt).split())
                row = {name: getattr(info, name) for name in _LISTED} | {"title": title}
                who, when = ", ".join(info.users) or "-", info.started[:16] or "-"
                print_record(as_json, row, f"{info.session_id}  {when:16}  {who}  {info.turns} turns  {title[:80]}")
        if is_empty:
            print_note(f"{archive.url}: no sessions{' of that project or time' if project or since or until else ''}")


def show(
    session: Annotated[str, Argument(help="The id of the session, or the beginning of it.")],
    s3: S3,
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    turn: Annotated[int | None, Option(help="Only this turn.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the turns of a session as text."""
    with _open_archive(place_of(place, to), s3) as archive:
        archived, session_id = archive.find(session, project)
        turns = [item for item in archived.turns(session_id) if turn is None or item.n == turn]
    if turn is not None and not turns:
        raise MonocontextError(f"no turn {turn} in session {session_id}: show it without --turn")
    if as_json:
        for entry in turns:
            print(json.dumps(entry.to_dict()))
    else:
        sys.stdout.write(escape_controls(render(turns)))


def search(
    keyword: Annotated[str, Argument(help="Text to search for; case does not matter.")],
    s3: S3,
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    most: Annotated[int, Option("--max-count", "-m", type=AT_LEAST_1, help="Print at most so many.")] = 50,
    ranked: Annotated[bool, Option(help="KEYWORD is words to search for: print sessions, the best first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the turns that contain a text, or with --ranked the sessions that match words. Exit 1 if there are none."""
    with _open_archive(place_of(place, to), s3) as archive:
        projects = _projects(archive, project)
        if ranked:
            count = _print_ranked(projects, keyword, most, as_json)
        else:
            count = _print_turns(projects, keyword, most, as_json)
    if not count:
        raise click.exceptions.Exit(1)


def pull(
    s3: S3,
    session: Annotated[str | None, Argument(help="The id of the session, or the beginning of it.")] = None,
    place: Place = None,
    to: To = None,
    into: Annotated[str, Option(metavar="DIR", help="Clone in which the session goes on.")] = ".",
    latest: Annotated[bool, Option(help="The last session of this repository, from any machine.")] = False,
    project: OwnProject = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a session, so that Claude Code or Codex goes on with it in this clone of its repository."""
    is_archive = session is not None and ("://" in session or os.path.isdir(session))
    if session and place is None and (is_archive or (latest and to is None)):  # the one argument is the archive
        session, place = None, session
    if (session is not None) == latest:  # both, or neither
        raise MonocontextError("name one session by its id, or take the last one of this repository with --latest")
    with _open_archive(place_of(place, to), s3) as archive:
        pulled = pull_session(archive, session, Path(into), project)
    if as_json:
        fields = {name: str(getattr(pulled, name)) for name in ("session_id", "agent", "path", "folder")}
        print(json.dumps({**fields, "new": pulled.is_new, "records": pulled.records, "redacted": pulled.redacted}))
    else:
        _print_pulled(pulled)


def _print_pulled(pulled: Pulled) -> None:
    """Say where a session is now, and the command that goes on with it."""
    if not pulled.is_new:
        print_line(f"{pulled.session_id} is here already, as long or longer: {pulled.path}")
    else:
        print_line(f"{pulled.session_id}: {pulled.records} records in {pulled.path}")
    if pulled.redacted:
        print_line(f"{pulled.redacted} secrets are redacted, here too: the agent sees [REDACTED:...]")
    change_folder = "" if pulled.folder == Path.cwd().resolve() else f"cd {shlex.quote(str(pulled.folder))} && "
    print_line(f"go on with it: {change_folder}{shlex.join(pulled.command)}")


def status(s3: S3, place: Place = None, to: To = None, as_json: AsJson = False) -> None:
    """Show this machine's hooks, when its agents delete their sessions, and what the archive has of each project."""
    url = _named_place(place, to)
    hooks, notes = _find_hooks(Path.cwd())
    labels = [hook.label for hook in hooks]
    if not as_json:
        for line in [*(labels or ["no hooks for this directory: monocontext hooks install"]), *notes]:
            print_line(line)
        print_line(f"log of uploads: {log_path()}")
    options_with_url = [hook.options for hook in hooks if hook.options.get("url")]
    if not url and options_with_url:
        hook_options = options_with_url[0]
        url = str(hook_options["url"])
        store_options = {name: hook_options[name] for name in StoreOptions.__annotations__ if name in hook_options}
        s3 = cast("StoreOptions", store_options | dict(s3))
    counts: list[tuple[str | None, int]] = []
    if url:
        with _open_archive(url, s3) as archive:
            counts = [(project.name, len(project.list_sessions())) for project in _projects(archive, None)]
    elif not as_json:
        print_line("no archive is named: give its URL, or set MONOCONTEXT_URL, to see what it has")
    if as_json and not counts:
        counts = [(None, 0)]  # one row, for the hooks and the notes
    for name, count in counts:
        row = {"project": name, "sessions": count, "hooks": labels, "notes": notes}
        print_record(as_json, row, f"{name}: {count} sessions")


class _Hooks(NamedTuple):
    """Our hooks in a file of settings."""

    label: str  # names the agent and the file
    options: dict[str, object]  # those of the hooks, such as `url`


def _find_hooks(folder: Path) -> tuple[list[_Hooks], list[str]]:
    """The hooks that apply in a folder, and notes for the user."""
    hooks, notes = list[_Hooks](), list[str]()
    for agent in settings.AGENTS.values():
        for path in (agent.settings_path(folder, is_user) for is_user in (False, True)):
            options = settings.hook_options(settings.read_settings(path))
            if options is None:
                continue
            hooks.append(_Hooks(f"hooks of {agent.name} in {path}", options))
            if agent.name == "codex":
                notes.append(CODEX_TRUST)
        clean_up = describe_clean_up(agent, folder)
        if clean_up:
            notes.append(clean_up)
    return hooks, notes


def place_of(place: str | None, to: str | None = None) -> str:
    """The URL of the archive, as an argument or as `--to`; by default that of MONOCONTEXT_URL."""
    url = _named_place(place, to)
    if not url:
        raise MonocontextError("no archive: give its URL as the last argument, or in MONOCONTEXT_URL")
    return url


def _named_place(place: str | None, to: str | None) -> str | None:
    """The URL of the archive; None if none is named. Raises `MonocontextError` if it is named twice."""
    if place and to:
        raise MonocontextError(f"give the archive once: {place!r} or --to {to!r}")
    return place or to or os.environ.get("MONOCONTEXT_URL")


def _split_archive(words: list[str], to: str | None) -> tuple[list[str], str]:
    """Split the arguments into sessions and the archive: a last word that looks like a URL or a directory, or the last
    of several where MONOCONTEXT_URL is not set. The name of a session's file is never the archive."""
    last = words[-1] if words else ""
    is_file = os.path.isfile(last) or last.endswith((".jsonl", ".jsonl.zst"))
    is_last_of_several = len(words) > 1 and not os.environ.get("MONOCONTEXT_URL")
    is_place = "://" in last or os.path.isdir(last) or os.sep in last
    if to is None and words and not is_file and (is_place or is_last_of_several):
        to = words.pop()
    return words, place_of(None, to)


def _select_sessions(names: list[str], everything: bool, agent: str | None, watch: bool) -> list[SessionFile]:
    """The named sessions, all with `--all` or `--watch`, else the latest."""
    if names:
        return [file for name in names for file in find_sessions(name, agent)]
    result = discover_sessions(agent)
    if not result and not watch:
        raise MonocontextError("no agent has sessions on this machine: name a file, or run this where the agent runs")
    if everything or watch:
        return result
    latest = result[0].session_id.partition("/")[0]
    return [file for file in result if file.session_id.partition("/")[0] == latest]


@contextmanager
def _open_archive(url: str, s3: StoreOptions) -> Iterator[Sessions]:
    with open_place(url, s3) as store:
        yield Sessions(store)


def _projects(archive: Sessions, name: str | None) -> list[Project]:
    return [archive.project(item) for item in ([name] if name else archive.projects())]


def _print_report(report: Uploaded, as_json: bool, is_dry: bool) -> None:
    if as_json:
        counts = {name: getattr(report, name) for name in ("session_id", "project", "records", "turns", "bytes")}
        findings = [{"kind": f.kind, "line": f.line, "where": f.where} for f in report.findings]
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


def _print_failure(file: SessionFile, error: Exception) -> None:
    reported = str(error)  # an `OSError` names the file itself
    print_error("monocontext", reported if str(file.path) in reported else f"{file.path}: {reported}")


def _print_turns(projects: list[Project], keyword: str, most: int, as_json: bool) -> int:
    """Print the turns of projects that contain a text. Returns the number printed."""
    count = 0
    for project in projects:
        if count == most:
            break
        for hit in project.search_transcripts(keyword, most - count):
            count += 1
            print_record(as_json, hit, f"{hit['id']} {hit['role']}: {_around(str(hit['content']), keyword)}")
    return count


def _print_ranked(projects: list[Project], words: str, most: int, as_json: bool) -> int:
    """Print the sessions of projects that match words, the best first. Returns the number found."""
    try:
        searched = [(item.name, item.search(words, most)) for item in projects]
    except ValueError as error:
        raise MonocontextError(str(error)) from None
    for project, passages in searched:
        if passages.note:
            print_line(f"monocontext: {project}: {passages.note}", err=True)
    results = [(passage, project) for project, passages in searched for passage in passages]
    results.sort(key=lambda row: -row[0].score)
    for entry, project in results[:most]:
        row = {"project": project, "session_id": entry.document, "score": entry.score, "content": entry.text}
        print_record(as_json, row, f"{entry.document} ({entry.score:.1f}): {' '.join(entry.text.split())}")
    return len(results)


def _around(text: str, keyword: str) -> str:
    """60 characters before a keyword, and 140 from it on, on one line."""
    offset = max(0, text.lower().find(keyword.lower()))
    return " ".join(text[max(0, offset - 60) : offset + 140].split())


app = CommandGroup(
    "Upload sessions of coding agents without their secrets; list, show, search and go on with them.",
    {"upload": upload, "pull": pull, "status": status, "list": list_sessions, "show": show, "search": search},
)
