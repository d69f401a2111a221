"""`sessions`: transcripts of coding agents into an archive, and out of it."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from monocontext.cli.options import Anonymous, AsJson, Endpoint, Profile, Region, options_of
from monocontext.errors import MonocontextError

if TYPE_CHECKING:
    from monocontext.sessions.archive import Project, Sessions
    from monocontext.sessions.reader import SessionFile
    from monocontext.sessions.upload import Uploaded
    from monocontext.store import Store

app = typer.Typer(
    help="Sessions of coding agents: upload them without their secrets, list, show and search them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

To = Annotated[
    str | None, typer.Option("--to", "--url", help="The archive; else the last argument or MONOCONTEXT_URL.")
]
ProjectName = Annotated[str | None, typer.Option("--project", "-p", help="Only this project.")]
Since = Annotated[str | None, typer.Option(help="Only from this time on: 2026-02-14, or with T10:00:00Z.")]
Until = Annotated[str | None, typer.Option(help="Only to this time; a day is the whole of it.")]
Place = Annotated[str | None, typer.Argument(metavar="[URL]", help="The archive.")]


def upload(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SESSION]... [URL]", help="Ids or files, by default the latest; where."),
    ] = None,
    to: To = None,
    everything: Annotated[bool, typer.Option("--all", help="Every session on this machine.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and upload what is added.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks of --watch.")] = 10.0,
    agent: Annotated[str | None, typer.Option(help="Only of this agent; of files, who wrote them.")] = None,
    project: Annotated[str | None, typer.Option("--project", "-p", help="Instead of the repository's name.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; say what would be, and which secrets.")
    ] = False,
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Leave secrets in; the archive says so.")] = False,
    pattern: Annotated[list[str] | None, typer.Option(help="Regular expression of more secrets.")] = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Upload sessions: the latest, those that are named, or all; only what is new of each."""
    from monocontext.sessions.identity import user_at_machine
    from monocontext.sessions.upload import upload_session

    names, url = _named(list(what or ()), to)
    with _archive(url, endpoint, region, profile, anonymous) as archive:
        failed = False
        while True:
            for file in _chosen(names, everything, agent, watch):
                try:
                    report = upload_session(
                        archive.store, file, project=project, user=user_at_machine(), redact=not no_redact,
                        patterns=pattern or (), dry_run=dry_run, is_open=watch,
                    )  # fmt: skip
                except (MonocontextError, OSError) as error:
                    # One file in a hundred that is damaged does not keep the others here.
                    if not (everything or watch):
                        raise
                    failed = True
                    print(f"monocontext: {file.path}: {' '.join(str(error).split())}", file=sys.stderr)
                    continue
                if not watch or report.records:
                    _say(report, as_json)
            if not watch:
                break
            time.sleep(interval)
    if failed:
        raise typer.Exit(1)


def listing(
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    since: Since = None,
    until: Until = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """List sessions, the oldest first: when, who, how many turns, and what about."""
    with _archive(place_of(to or place), endpoint, region, profile, anonymous) as archive:
        for each in _projects(archive, project):
            for info in each.sessions(since, until):
                title = " ".join((info.title or info.first_prompt).split())
                if as_json:
                    fields = ("session_id", "project", "agent", "started", "ended", "turns", "users", "redacted")
                    print(json.dumps({name: getattr(info, name) for name in fields} | {"title": title}))
                else:
                    who = ", ".join(info.users) or "-"
                    print(f"{info.session_id}  {info.started[:16] or '-':16}  {who}  {info.turns} turns  {title[:80]}")


def show(
    session: Annotated[str, typer.Argument(help="Its id, or the beginning of it.")],
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    turn: Annotated[int | None, typer.Option(help="Only this turn.")] = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Print a session: its turns as text."""
    from monocontext.sessions.turn import render

    with _archive(place_of(to or place), endpoint, region, profile, anonymous) as archive:
        found, session_id = archive.find(session, project)
        turns = [each for each in found.turns(session_id) if turn is None or each.n == turn]
    if turn is not None and not turns:
        raise MonocontextError(f"no turn {turn} in session {session_id}")
    if as_json:
        for each in turns:
            print(json.dumps(each.to_dict()))
    else:
        sys.stdout.write(render(turns))


def search(
    keyword: Annotated[str, typer.Argument(help="Text to look for, in any case.")],
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    most: Annotated[int, typer.Option("--max-count", "-m", min=1, help="End after so many turns.")] = 50,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Print the turns that hold a text. Exits with 1 if none does."""
    count = 0
    with _archive(place_of(to or place), endpoint, region, profile, anonymous) as archive:
        for each in _projects(archive, project):
            for hit in each.search_transcripts(keyword, most - count) if most > count else ():
                count += 1
                if as_json:
                    print(json.dumps(hit))
                else:
                    print(f"{hit['id']} {hit['role']}: {_around(str(hit['content']), keyword)}")
    if not count:
        raise typer.Exit(1)


def sync(as_json: AsJson = False) -> None:
    """Do what hooks have left to do: upload what is in the spool of this machine. Exits with 1 if something is left."""
    from monocontext.sessions.worker import work

    left = work(time.time(), print)
    if left:
        print(f"monocontext: {left} uploads are kept for later", file=sys.stderr)
        raise typer.Exit(1)


def place_of(given: str | None) -> str:
    """The archive that is meant. Raises `MonocontextError` where none is named."""
    url = given or os.environ.get("MONOCONTEXT_URL")
    if not url:
        raise MonocontextError("which archive? Give its URL as last argument, with --to, or in MONOCONTEXT_URL")
    return url


def _named(words: list[str], to: str | None) -> tuple[list[str], str]:
    """Sessions and the archive: what looks like a place at the end is one."""
    if to is None and words and (len(words) > 1 or "://" in words[-1] or _is_place(words[-1])):
        to = words.pop()
    return words, place_of(to)


def _is_place(word: str) -> bool:
    return not os.path.isfile(word) and (os.path.isdir(word) or os.sep in word)


def _chosen(names: list[str], everything: bool, agent: str | None, watch: bool) -> list[SessionFile]:
    from monocontext.sessions.readers import discovered, named

    if names:
        return [file for name in names for file in named(name, agent)]
    found = discovered(agent)
    if not found and not watch:
        raise MonocontextError("no sessions of an agent on this machine")
    if everything or watch:
        return found
    latest = found[0].session_id.partition("/")[0]
    return [file for file in found if file.session_id.partition("/")[0] == latest]


class _Opened:
    """An archive for the length of a command."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        from monocontext.sessions.archive import Sessions
        from monocontext.stores import open_store

        self._store: Store = open_store(url, **options)
        self._sessions = Sessions(self._store)

    def __enter__(self) -> Sessions:
        return self._sessions

    def __exit__(self, *_: object) -> None:
        self._store.close()


def _archive(url: str, endpoint: str | None, region: str | None, profile: str | None, anonymous: bool) -> _Opened:
    return _Opened(url, options_of(url, endpoint, region, profile, anonymous))


def _projects(archive: Sessions, name: str | None) -> list[Project]:
    return [archive.project(each) for each in ([name] if name else archive.projects())]


def _say(report: Uploaded, as_json: bool) -> None:
    if as_json:
        told = {name: getattr(report, name) for name in ("session_id", "project", "records", "turns", "bytes")}
        findings = [{"kind": f.kind, "line": f.line, "where": f.where} for f in report.findings]
        print(json.dumps({**told, "redacted": report.counts, "findings": findings, "problems": report.problems,
                          "dry_run": report.is_dry}), flush=True)  # fmt: skip
        return
    done = "would upload" if report.is_dry else "uploaded"
    print(f"{report.session_id}: {done} {report.records} records, {report.turns} turns, {report.bytes:,} bytes "
          f"to {report.project}", flush=True)  # fmt: skip
    if report.counts:
        print("  redacted: " + ", ".join(f"{count} {kind}" for kind, count in report.counts.items()))
        for finding in report.findings:
            print(f"    {finding}")
    for problem in report.problems:
        print(f"  {problem}")


def _around(text: str, keyword: str) -> str:
    at = max(0, text.lower().find(keyword.lower()))
    return " ".join(text[max(0, at - 60) : at + 140].split())


commands = {"upload": upload, "list": listing, "show": show, "search": search, "sync": sync}
