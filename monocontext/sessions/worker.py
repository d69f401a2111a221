"""Run the process that a hook starts: it uploads every session of the project that the archive lacks.

What is missing follows from the agent's own files alone, so nothing is queued and nothing copied: what a hook that was
killed, a machine that was off or a store that was down has left, the next hook uploads. One process at a time does so
for an archive and a project; one more waits, and begins after what made it necessary was written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from monocontext.errors import MonocontextError, StoreFailure
from monocontext.sessions.changed_files import upload_changed
from monocontext.sessions.machine import home, one_line
from monocontext.sessions.project_name import project_of
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import AGENTS, discover_sessions, reader_of, recognize_session
from monocontext.sessions.upload import Uploaded, project_of_session, upload_session, user_at_machine
from monocontext.stores import open_store
from monocontext.stores.protocol import Store

COOLDOWN_SECONDS = 60.0
"""Between two uploads of a session that goes on."""
_WAITS_SECONDS = (2.0, 8.0, 30.0)
"""The waits between attempts while the store fails: no process stays for long. Then the next hook goes on."""
_RESTING_SECONDS = 3600.0
"""A session whose file was not written for so long has ended, whether its agent said so or was killed."""
_STORE_OPTIONS = ("endpoint", "region", "profile", "anonymous")


def main() -> None:
    """Do the job in the first argument."""
    with suppress(AttributeError, OSError):
        os.nice(10)
    try:
        work(json.loads(sys.argv[1]))
    except (MonocontextError, OSError) as error:
        _log(str(error))
        sys.exit(1)


def work(job: dict[str, Any]) -> None:
    """Upload what is missing; a session that goes on waits for its time. Raises `StoreFailure` if the store is down."""
    folder = Path(home())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = _scope_of(job)
    lock = FileLock(folder / f"{name}.lock")
    try:
        if job["event"] == "stop":
            with FileLock(folder / f"{name}.stop", timeout=0):
                time.sleep(_wait_seconds(folder / f"{name}.json"))
        with FileLock(folder / f"{name}.next", timeout=0):
            lock.acquire()
    except Timeout:
        return  # another one waits already, and will see what this one would
    try:
        _upload_missing(job, folder / f"{name}.json")
    finally:
        lock.release()


def _upload_missing(job: dict[str, Any], noted: Path) -> None:
    """Upload each file that has changed, and compile the projects that got something."""
    projects = {str(job.get("project") or _project_here(job))}
    for wait in (*_WAITS_SECONDS, None):
        try:
            projects |= _upload_once(job, noted)
            break
        except StoreFailure as error:
            if wait is None:
                raise StoreFailure(f"{error}; the next hook goes on") from None
            _log(f"{error}; again in {wait:.0f} s")
            time.sleep(wait)
    if job.get("compile") and job["event"] == "session-end":
        for project in sorted(projects):
            _compile(job, project)


def _upload_once(job: dict[str, Any], noted: Path) -> set[str]:
    """Upload each file that has changed; returns the projects that got something. Raises `StoreFailure`."""
    projects = set[str]()
    options: dict[str, Any] = {name: job[name] for name in _STORE_OPTIONS if job.get(name)}
    with closing(open_store(str(job["url"]), **options)) as store:

        def upload(file: SessionFile) -> Uploaded | None:
            if not _is_wanted(file, job):
                return None
            report = _upload(store, file, job)
            _log(_describe(report))
            projects.add(report.project)
            return report

        upload_changed(_files_of(job), noted, upload, _log)
    return projects


def _files_of(job: dict[str, Any]) -> Iterable[SessionFile]:
    """The files that the agent of a hook has: first the session itself, then all others."""
    agent, path, files = str(job.get("agent") or ""), str(job.get("transcript_path") or ""), list[SessionFile]()
    if agent and agent not in AGENTS:
        _log(f"no agent {agent!r}: there are {', '.join(AGENTS)}")
    if path:
        try:
            main = recognize_session(Path(path).expanduser().absolute(), agent if agent in AGENTS else None)
            reader = AGENTS[main.agent]
            files += [file for file in (main, *reader.below(main)) if not reader.is_stub(file.path)]
        except (MonocontextError, OSError) as error:
            _log(f"left out: {path}: {error}")
    for name in [item for item in AGENTS if agent in ("", item)]:
        try:
            files += discover_sessions(name)
        except (MonocontextError, OSError) as error:
            _log(f"{name}: {error}")
    return {file.path: file for file in files}.values()


def _is_wanted(file: SessionFile, job: dict[str, Any]) -> bool:
    """Whether a hook is there for a session: its own, those of the same project, with `--user` all."""
    return bool(job.get("user")) or _is_own(file, job) or project_of_session(file) == _project_here(job)


def _is_own(file: SessionFile, job: dict[str, Any]) -> bool:
    """Whether a file is of the session in which the hook ran, or of a subagent of it."""
    main = job.get("session_id")
    return str(file.path) == job.get("transcript_path") or (bool(main) and file.session_id.split("/")[0] == main)


def _project_here(job: dict[str, Any]) -> str:
    return project_of(str(job.get("cwd") or os.getcwd()))


def _upload(store: Store, file: SessionFile, job: dict[str, Any]) -> Uploaded:
    patterns = job.get("patterns")
    has_ended = job["event"] == "session-end" and _is_own(file, job)
    return upload_session(
        store,
        file,
        project=str(job["project"]) if job.get("project") else _main_project(file),
        user=user_at_machine(),
        redact=not job.get("no_redact"),
        patterns=[str(pattern) for pattern in patterns] if isinstance(patterns, list) else (),
        is_open=not has_ended and file.modified_seconds > time.time() - _RESTING_SECONDS,
    )


def _main_project(file: SessionFile) -> str | None:
    """The project of the session that a subagent belongs to, if its file tells; None for a session itself."""
    above = next((parent.parent for parent in file.path.parents if parent.name == "subagents"), None)
    main = above.with_suffix(".jsonl") if above is not None else None
    return project_of_session(reader_of(file).file(main)) if main is not None and main.is_file() else None


def _compile(job: dict[str, Any], project: str) -> None:
    """Run `rlm compile` for the project, and wait for it; its output goes to the log."""
    program = Path(sys.executable).parent / "rlm"
    command = str(program) if os.access(program, os.X_OK) else shutil.which("rlm")
    if command is None:
        _log("no command `rlm` here: install monocontext-rlm, or leave out --compile")
        return
    names = ("endpoint", "region", "profile", "max_dollars")
    options = [f"--{name.replace('_', '-')}={job[name]}" for name in names if job.get(name)]
    options += ["--anonymous"] if job.get("anonymous") else []
    done = subprocess.run(
        [command, "compile", str(job["url"]), f"--project={project}", "--quiet", *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    _log(" ".join((done.stdout + done.stderr).split()) or f"rlm compile ended with {done.returncode}")


def _scope_of(job: dict[str, Any]) -> str:
    """One name for what two hooks would both upload, in the same way."""
    names = ("url", "project", "agent", "patterns", "no_redact", "user", *_STORE_OPTIONS)
    where = "" if job.get("user") else _project_here(job)
    text = json.dumps([where, *(job.get(name) for name in names)])
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _wait_seconds(noted: Path) -> float:
    """The rest of the cooldown since the last upload. A clock that was set back makes it no longer."""
    try:
        since = time.time() - noted.stat().st_mtime
    except OSError:
        return 0.0
    return min(COOLDOWN_SECONDS, max(0.0, COOLDOWN_SECONDS - since))


# -- the log -----------------------------------------------------------------------------------------------------------


def _describe(report: Uploaded) -> str:
    taken = ", ".join(f"{count} {kind}" for kind, count in report.counts.items())
    return (
        f"{report.session_id}: {report.records} records, {report.turns} turns to {report.project}"
        + (f"; redacted {taken}" if taken else "")
        + "".join(f"; {problem}" for problem in report.problems)
    )


def _log(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {one_line(text)}", file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
