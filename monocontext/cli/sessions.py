"""The commands `sessions ...`: list, show, search and pull sessions of an archive, and show this machine's hooks."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, NamedTuple, cast

import click

from monocontext.cli.archive import ArchiveUrl, OwnProject, ProjectName, To, archive_url, find_archive_url, open_archive
from monocontext.cli.help import CommandGroup
from monocontext.cli.hooks import CODEX_TRUST, describe_clean_up
from monocontext.cli.options import S3, AsJson
from monocontext.cli.parameters import AT_LEAST_1, Argument, Option
from monocontext.cli.printing import escape_controls, print_line, print_note, print_record
from monocontext.cli.sessions_upload import upload
from monocontext.errors import MonocontextError
from monocontext.options import StoreOptions
from monocontext.sessions import settings
from monocontext.sessions.archive import Project, Sessions
from monocontext.sessions.hook import log_path
from monocontext.sessions.pull import Pulled, pull_session
from monocontext.sessions.turn import render

Since = Annotated[str | None, Option(help="Only from this time on: 2026-02-14, or 2026-02-14T10:00:00Z.")]
Until = Annotated[str | None, Option(help="Only up to this time; a date includes the whole day.")]
_LISTED_FIELDS = ("session_id", "project", "agent", "started", "ended", "branch", "tools", "turns", "users", "redacted")


def list_sessions(
    s3: S3,
    url: ArchiveUrl = None,
    to: To = None,
    project: ProjectName = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """List sessions, the oldest first: id, time, users, number of turns, title."""
    with open_archive(archive_url(url, to), s3) as archive:
        infos = [info for listed in _projects(archive, project) for info in listed.sessions(since, until)]
        for info in infos:
            title = " ".join((info.title or info.first_prompt).split())
            row = {name: getattr(info, name) for name in _LISTED_FIELDS} | {"title": title}
            users, started = ", ".join(info.users) or "-", info.started[:16] or "-"
            print_record(as_json, row, f"{info.session_id}  {started:16}  {users}  {info.turns} turns  {title[:80]}")
        if not infos:
            print_note(f"{archive.url}: no sessions{' of that project or time' if project or since or until else ''}")


def show(
    session: Annotated[str, Argument(help="The id of the session, or its beginning.")],
    s3: S3,
    url: ArchiveUrl = None,
    to: To = None,
    project: ProjectName = None,
    turn: Annotated[int | None, Option(help="Only this turn.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the turns of a session as text."""
    with open_archive(archive_url(url, to), s3) as archive:
        archived, session_id = archive.find(session, project)
        turns = [item for item in archived.turns(session_id) if turn is None or item.number == turn]
    if turn is not None and not turns:
        raise MonocontextError(f"no turn {turn} in session {session_id}: leave out --turn to see all turns")
    if as_json:
        for entry in turns:
            print(json.dumps(entry.to_dict()))
    else:
        sys.stdout.write(escape_controls(render(turns)))


def search(
    keyword: Annotated[str, Argument(help="Text to search for; case does not matter.")],
    s3: S3,
    url: ArchiveUrl = None,
    to: To = None,
    project: ProjectName = None,
    most: Annotated[int, Option("--max-count", "-m", type=AT_LEAST_1, help="Print at most this many.")] = 50,
    ranked: Annotated[bool, Option(help="Take KEYWORD as words, and print the sessions that match best.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print turns that contain a text, or with --ranked sessions that match words. Exits with 1 if there are none."""
    with open_archive(archive_url(url, to), s3) as archive:
        projects = _projects(archive, project)
        if ranked:
            count = _print_ranked(projects, keyword, most, as_json=as_json)
        else:
            count = _print_turns(projects, keyword, most, as_json=as_json)
    if not count:
        raise click.exceptions.Exit(1)


def pull(
    s3: S3,
    session: Annotated[str | None, Argument(help="The id of the session, or its beginning.")] = None,
    url: ArchiveUrl = None,
    to: To = None,
    into: Annotated[str, Option(metavar="DIR", help="Clone in which to continue the session.")] = ".",
    latest: Annotated[bool, Option(help="The last session of this repository, from any machine.")] = False,
    project: OwnProject = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a session, so that Claude Code or Codex can continue it in this clone of its repository."""
    is_archive = session is not None and ("://" in session or os.path.isdir(session))
    if session and url is None and (is_archive or (latest and to is None)):  # the one argument is the archive
        session, url = None, session
    if (session is not None) == latest:  # both, or neither
        raise MonocontextError("name one session by its id, or take the last session of this repository with --latest")
    with open_archive(archive_url(url, to), s3) as archive:
        pulled = pull_session(archive, session, Path(into), project)
    if as_json:
        fields = {name: str(getattr(pulled, name)) for name in ("session_id", "agent", "path", "folder")}
        print(json.dumps({**fields, "new": pulled.is_new, "records": pulled.records, "redacted": pulled.redacted}))
    else:
        _print_pulled(pulled)


def _print_pulled(pulled: Pulled) -> None:
    """Print where a session is now, and the command that continues it."""
    if not pulled.is_new:
        print_line(f"{pulled.session_id} is here already, with as many records or more: {pulled.path}")
    else:
        print_line(f"{pulled.session_id}: {pulled.records} records in {pulled.path}")
    if pulled.redacted:
        print_line(f"redacted secrets: {pulled.redacted}; the agent sees [REDACTED:...] in their place")
    change_folder = "" if pulled.folder == Path.cwd().resolve() else f"cd {shlex.quote(str(pulled.folder))} && "
    print_line(f"continue it with: {change_folder}{shlex.join(pulled.command)}")


def status(s3: S3, url: ArchiveUrl = None, to: To = None, as_json: AsJson = False) -> None:
    """Show hooks of this machine, when its agents delete sessions, and the sessions of each project in the archive."""
    url = find_archive_url(url, to)
    hooks, notes = _find_hooks(Path.cwd())
    labels = [hook.label for hook in hooks]
    if not as_json:
        for line in [*(labels or ["no hooks for this directory: `monocontext hooks install` adds them"]), *notes]:
            print_line(line)
        print_line(f"log of uploads: {log_path()}")
    hook = next((hook for hook in hooks if hook.url), None)
    if not url and hook:
        url, s3 = hook.url, cast("StoreOptions", {**hook.store_options, **s3})
    counts: list[tuple[str | None, int]] = []
    if url:
        with open_archive(url, s3) as archive:
            counts = [(project.name, len(project.list_sessions())) for project in _projects(archive, None)]
    elif not as_json:
        print_line("no archive is named: give its URL, or set MONOCONTEXT_URL, to count its sessions")
    if as_json and not counts:
        counts = [(None, 0)]  # one row, for the hooks and the notes
    for name, count in counts:
        row = {"project": name, "sessions": count, "hooks": labels, "notes": notes}
        print_record(as_json, row, f"{name}: {count} sessions")


class _Hooks(NamedTuple):
    """Hooks of monocontext in a settings file of an agent."""

    label: str  # names the agent and the file
    url: str  # of the archive; empty if the hooks do not name it
    store_options: StoreOptions


def _find_hooks(folder: Path) -> tuple[list[_Hooks], list[str]]:
    """The hooks that apply in a folder, and notes for the user."""
    hooks, notes = list[_Hooks](), list[str]()
    for agent in settings.AGENTS.values():
        for path in (agent.settings_path(folder, is_user) for is_user in (False, True)):
            options = settings.hook_options(settings.read_settings(path))
            if options is None:
                continue
            s3 = cast("StoreOptions", {name: options[name] for name in StoreOptions.__annotations__ if name in options})
            hooks.append(_Hooks(f"hooks of {agent.name} in {path}", str(options.get("url") or ""), s3))
            if agent.name == "codex" and CODEX_TRUST not in notes:
                notes.append(CODEX_TRUST)
        clean_up = describe_clean_up(agent, folder)
        if clean_up:
            notes.append(clean_up)
    return hooks, notes


def _projects(archive: Sessions, only: str | None) -> list[Project]:
    return [archive.project(name) for name in ([only] if only else archive.projects())]


def _print_turns(projects: list[Project], keyword: str, most: int, *, as_json: bool) -> int:
    """Print the turns in these projects that contain a text. Returns the number printed."""
    count = 0
    for project in projects:
        if count == most:
            break
        for hit in project.search_transcripts(keyword, most - count):
            count += 1
            print_record(as_json, hit, f"{hit['id']} {hit['role']}: {_excerpt(str(hit['content']), keyword)}")
    return count


def _print_ranked(projects: list[Project], words: str, most: int, *, as_json: bool) -> int:
    """Print the sessions in these projects that match words, the best first. Returns how many match."""
    try:
        searched = [(item.name, item.search(words, most)) for item in projects]
    except ValueError as error:
        raise MonocontextError(str(error)) from None
    for project, passages in searched:
        if passages.note:
            print_line(f"monocontext: {project}: {passages.note}", err=True)
    results = [(passage, project) for project, passages in searched for passage in passages]
    results.sort(key=lambda pair: pair[0].score, reverse=True)
    for passage, project in results[:most]:
        row = {"project": project, "session_id": passage.document, "score": passage.score, "content": passage.text}
        print_record(as_json, row, f"{passage.document} ({passage.score:.1f}): {' '.join(passage.text.split())}")
    return len(results)


def _excerpt(text: str, keyword: str) -> str:
    """The text around the first match of a keyword, on one line: 60 characters before it and 140 from there on."""
    offset = max(0, text.lower().find(keyword.lower()))
    return " ".join(text[max(0, offset - 60) : offset + 140].split())


app = CommandGroup(
    "Upload sessions of coding agents without their secrets; list, show, search and continue them.",
    {"upload": upload, "pull": pull, "status": status, "list": list_sessions, "show": show, "search": search},
)
