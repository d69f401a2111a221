"""The commands `sessions ...`: upload transcripts of coding agents to an archive; list, show and search them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from monocontext.cli.help import CommandGroup
from monocontext.cli.options import S3, AsJson, options_of
from monocontext.cli.parameters import Argument, Option
from monocontext.cli.printing import escape_controls, fail, say, say_row
from monocontext.cli.settings import setting_from_file
from monocontext.errors import MonocontextError
from monocontext.sessions.names import key_part

if TYPE_CHECKING:
    from monocontext.sessions.archive import Project, Sessions
    from monocontext.sessions.reader import SessionFile
    from monocontext.sessions.upload import Uploaded


To = Annotated[
    str | None, Option("--to", "--url", help="URL of the archive; by default the last argument, or MONOCONTEXT_URL.")
]
ProjectName = Annotated[str | None, Option("--project", "-p", help="Only this project.")]
Since = Annotated[str | None, Option(help="Only from this time on: 2026-02-14, or 2026-02-14T10:00:00Z.")]
Until = Annotated[str | None, Option(help="Only up to this time; a date includes the whole day.")]
Place = Annotated[str | None, Argument(metavar="[URL]", help="URL of the archive.")]


def upload(
    what: Annotated[
        list[str] | None,
        Argument(
            metavar="[SESSION]... [URL]",
            help="Ids or files, by default the latest session; then the URL of the archive.",
        ),
    ] = None,
    to: To = None,
    everything: Annotated[bool, Option("--all", help="Upload every session on this machine.")] = False,
    watch: Annotated[bool, Option("--watch", help="Keep running, and upload what sessions add.")] = False,
    interval: Annotated[float, Option(min=0.1, help="Seconds between two checks of --watch.")] = 10.0,
    agent: Annotated[
        str | None, Option(help="Only sessions of this agent; for files, the agent that wrote them.")
    ] = None,
    project: Annotated[
        str | None, Option("--project", "-p", help="Name of the project; by default that of the repository.")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Upload nothing; list what would be uploaded, and the secrets found.")
    ] = False,
    no_redact: Annotated[
        bool, Option("--no-redact", help="Keep secrets in the upload; the archive records that.")
    ] = False,
    pattern: Annotated[
        list[str] | None, Option(help="Regular expression that matches more secrets; repeatable.")
    ] = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Upload the latest session, the named ones, or all; only the new part of each."""
    from monocontext.sessions.identity import user_at_machine
    from monocontext.sessions.upload import upload_session

    names, url = _split_words(list(what or ()), to)
    with _open_archive(url, s3) as archive:
        failed = False
        while True:
            for file in _select_sessions(names, everything, agent, watch):
                try:
                    report = upload_session(
                        archive.store, file, project=project, user=user_at_machine(), redact=not no_redact,
                        patterns=pattern or (), dry_run=dry_run, is_open=watch,
                    )  # fmt: skip
                except (MonocontextError, OSError) as error:
                    # A damaged file does not stop the upload of the others.
                    if not (everything or watch):
                        raise
                    failed = True
                    told = str(error)  # an `OSError` names the file itself
                    fail("monocontext", told if str(file.path) in told else f"{file.path}: {told}")
                    continue
                if not watch or report.records:
                    _print_report(report, as_json)
            if not watch:
                break
            time.sleep(interval)
    if failed:
        raise click.exceptions.Exit(1)


def list_sessions(
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    since: Since = None,
    until: Until = None,
    branch: Annotated[str | None, Option(help="Only sessions that ended on this git branch.")] = None,
    tool: Annotated[str | None, Option(help="Only sessions that called this tool.")] = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """List sessions, the oldest first: id, time, users, number of turns, title."""
    with _open_archive(place_of(to or place), s3) as archive:
        for each in _projects(archive, project):
            for info in each.sessions(since, until, branch=branch, tool=tool):
                title = " ".join((info.title or info.first_prompt).split())
                if as_json:
                    fields = ("session_id", "project", "agent", "started", "ended", "branch", "tools", "turns", "users",
                              "redacted")  # fmt: skip
                    print(json.dumps({name: getattr(info, name) for name in fields} | {"title": title}))
                else:
                    who, when = ", ".join(info.users) or "-", info.started[:16] or "-"
                    say_row(f"{info.session_id}  {when:16}  {who}  {info.turns} turns  {title[:80]}")


def show(
    session: Annotated[str, Argument(help="The id of the session, or the beginning of it.")],
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    turn: Annotated[int | None, Option(help="Only this turn.")] = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Print the turns of a session as text."""
    from monocontext.sessions.turn import render

    with _open_archive(place_of(to or place), s3) as archive:
        found, session_id = archive.find(session, project)
        turns = [each for each in found.turns(session_id) if turn is None or each.n == turn]
    if turn is not None and not turns:
        raise MonocontextError(f"no turn {turn} in session {session_id}")
    if as_json:
        for each in turns:
            print(json.dumps(each.to_dict()))
    else:
        sys.stdout.write(escape_controls(render(turns)))


def search(
    keyword: Annotated[str, Argument(help="Text to search for; case does not matter.")],
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    most: Annotated[int, Option("--max-count", "-m", min=1, help="Stop after this many turns or sessions.")] = 50,
    ranked: Annotated[
        bool, Option("--ranked", help="KEYWORD is words, as in `monocontext search`: print sessions, the best first.")
    ] = False,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Print the turns that contain a text, or with --ranked the sessions that match words. Exit 1 if there are none."""
    count = 0
    with _open_archive(place_of(to or place), s3) as archive:
        projects = _projects(archive, project)
        if ranked:
            count = _print_ranked(projects, keyword, most, as_json)
        for each in () if ranked else projects:
            for hit in each.search_transcripts(keyword, most - count) if most > count else ():
                count += 1
                if as_json:
                    print(json.dumps(hit))
                else:
                    say_row(f"{hit['id']} {hit['role']}: {_around(str(hit['content']), keyword)}")
    if not count:
        raise click.exceptions.Exit(1)


def index(
    place: Place = None,
    to: To = None,
    project: ProjectName = None,
    rebuild: Annotated[bool, Option("--rebuild", help="Write all filters again.")] = False,
    *,
    s3: S3,
) -> None:
    """Write search filters for sessions without any, which older versions uploaded."""
    with _open_archive(place_of(to or place), s3) as archive:
        for each in _projects(archive, project):
            say(f"{each.name}: {each.index(rebuild=rebuild)} texts got search filters")


def sync(as_json: AsJson = False) -> None:
    """Upload the sessions that hooks have put into the spool of this machine. Exits with 1 if some are left."""
    from monocontext.sessions.worker import work

    log = (lambda text: say(text, err=True)) if as_json else say
    left = work(time.time(), log, (lambda report: _print_report(report, True)) if as_json else None)
    if left:
        fail("monocontext", f"{left} uploads are kept for later")
        raise click.exceptions.Exit(1)


def status(place: Place = None, to: To = None, project: ProjectName = None, *, s3: S3, as_json: AsJson = False) -> None:
    """Show this machine's hooks, its waiting uploads, and the cost of compiling each project."""
    from monocontext.sessions import spool
    from monocontext.sessions.hook_state import find_hooks
    from monocontext.sessions.spending import CostLedger, today

    waiting, failed, hooks = len(spool.jobs()), len(spool.failed_jobs()), find_hooks(Path.cwd())
    if not as_json:
        for each in hooks:
            say(f"hooks of {each.agent} in {each.path}: {each.missing or 'nothing is missing'}")
        if not hooks:
            say("no hooks for this directory: monocontext hooks install")
        say(f"this machine: {waiting} uploads wait, {failed} were put aside; log: {spool.log_path()}")
    missing = [f"{each.path}: {each.missing}" for each in hooks if each.missing]
    with _open_archive(place_of(to or place), s3) as archive:
        for one in _projects(archive, project):
            spent = CostLedger(archive.store, key_part(one.name, "project")).load()
            now, ever, calls = spent.dollars(today()), spent.dollars(), spent.calls()
            if as_json:
                fields = {"project": one.name, "waiting": waiting, "failed": failed, "calls": calls}
                print(json.dumps({**fields, "dollars_today": now, "dollars": ever, "missing": missing}))
            else:
                say(f"{one.name}: ${now:.4f} spent today, ${ever:.4f} in {len(spent.days)} days, {calls} calls")


def place_of(given: str | None) -> str:
    """The URL of the archive, by default from MONOCONTEXT_URL, then from the configuration file."""
    url = given or os.environ.get("MONOCONTEXT_URL") or setting_from_file("sessions.url")
    if not url:
        raise MonocontextError("which archive? Give its URL as the last argument, with --to, or in MONOCONTEXT_URL")
    return url


def _split_words(words: list[str], to: str | None) -> tuple[list[str], str]:
    """Split the arguments into sessions and the archive, which is a last word that looks like a URL or a directory."""
    if to is None and words and (len(words) > 1 or "://" in words[-1] or _is_place(words[-1])):
        to = words.pop()
    return words, place_of(to)


def _is_place(word: str) -> bool:
    return not os.path.isfile(word) and (os.path.isdir(word) or os.sep in word)


def _select_sessions(names: list[str], everything: bool, agent: str | None, watch: bool) -> list[SessionFile]:
    from monocontext.sessions.readers import discover_sessions, find_sessions

    if names:
        return [file for name in names for file in find_sessions(name, agent)]
    found = discover_sessions(agent)
    if not found and not watch:
        raise MonocontextError("no sessions of coding agents on this machine")
    if everything or watch:
        return found
    latest = found[0].session_id.partition("/")[0]
    return [file for file in found if file.session_id.partition("/")[0] == latest]


@contextmanager
def _open_archive(url: str, s3: S3) -> Iterator[Sessions]:
    from monocontext.sessions.archive import Sessions
    from monocontext.stores import open_store

    with closing(open_store(url, **options_of(url, s3))) as store:
        yield Sessions(store)


def _projects(archive: Sessions, name: str | None) -> list[Project]:
    return [archive.project(each) for each in ([name] if name else archive.projects())]


def _print_report(report: Uploaded, as_json: bool) -> None:
    if as_json:
        counts = {name: getattr(report, name) for name in ("session_id", "project", "records", "turns", "bytes")}
        findings = [{"kind": f.kind, "line": f.line, "where": f.where} for f in report.findings]
        print(json.dumps({**counts, "redacted": report.counts, "findings": findings, "problems": report.problems,
                          "dry_run": report.is_dry}), flush=True)  # fmt: skip
        return
    done = "would upload" if report.is_dry else "uploaded"
    say(f"{report.session_id}: {done} {report.records} records, {report.turns} turns, {report.bytes:,} bytes "
        f"to {report.project}")  # fmt: skip
    if report.counts:
        say("  redacted: " + ", ".join(f"{count} {kind}" for kind, count in report.counts.items()))
        for finding in report.findings:
            say(f"    {finding}")
    for problem in report.problems:
        say(f"  {problem}")
    sys.stdout.flush()


def _print_ranked(projects: list[Project], words: str, most: int, as_json: bool) -> int:
    """Print the sessions of projects that match words, the best first. Returns their number."""
    try:
        searched = [(each.name, each.search(words, most)) for each in projects]
    except ValueError as error:
        raise MonocontextError(str(error)) from None
    for project, passages in searched:
        if passages.note:
            say(f"monocontext: {project}: {passages.note}", err=True)
    found = [(one, project) for project, passages in searched for one in passages]
    found.sort(key=lambda row: -row[0].score)
    for one, project in found[:most]:
        if as_json:
            row = {"project": project, "session_id": one.document, "score": one.score, "content": one.text}
            print(json.dumps(row))
        else:
            say_row(f"{one.document} ({one.score:.1f}): {' '.join(one.text.split())}")
    return len(found)


def _around(text: str, keyword: str) -> str:
    at = max(0, text.lower().find(keyword.lower()))
    return " ".join(text[max(0, at - 60) : at + 140].split())


app = CommandGroup(
    "Upload sessions of coding agents without their secrets; list, show and search them.",
    {
        "upload": upload,
        "status": status,
        "list": list_sessions,
        "show": show,
        "search": search,
        "index": index,
        "sync": sync,
    },
)
