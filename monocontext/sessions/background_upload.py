"""Upload every session of a project that the archive lacks, in a process that a hook starts and does not wait for.

It compares the agent's files with the archive. Per archive and project, at most one process runs and one more waits.
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
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from monocontext.errors import MonocontextError
from monocontext.sessions.claude_code import main_folder
from monocontext.sessions.hook import home, one_line
from monocontext.sessions.project_name import project_of
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import SESSION_READERS, discover_sessions, recognize_session
from monocontext.sessions.upload import Uploaded, project_of_session, upload_changed, upload_session, user_at_machine
from monocontext.stores import open_store
from monocontext.stores.protocol import Store

_COOLDOWN_SECONDS = 60.0  # the least time between two uploads of a running session
_RESTING_SECONDS = 3600.0  # a session whose file has not changed for this long is taken to have ended
_STORE_OPTIONS = ("endpoint", "region", "profile", "anonymous")


def main() -> None:
    """Run the job that the first argument of the command line describes in JSON."""
    with suppress(AttributeError, OSError):
        os.nice(10)
    try:
        upload_missing(json.loads(sys.argv[1]))
    except (MonocontextError, OSError) as error:
        _log(str(error))
        sys.exit(1)


def upload_missing(job: dict[str, Any]) -> None:
    """Upload the sessions that the archive lacks, a running one at most once a minute. Raises `StoreFailure`."""
    folder = Path(home())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = _name_of(job)
    lock = FileLock(folder / f"{name}.lock")
    try:
        if job["event"] == "stop":
            with FileLock(folder / f"{name}.stop", timeout=0), suppress(OSError):  # nothing was uploaded yet
                passed_seconds = time.time() - (folder / f"{name}.json").stat().st_mtime
                time.sleep(max(0.0, _COOLDOWN_SECONDS - max(0.0, passed_seconds)))  # the clock may be set back
        with FileLock(folder / f"{name}.next", timeout=0):
            lock.acquire()
    except Timeout:
        return  # another process waits already, and will see what this one would
    store_options: dict[str, Any] = {name: job[name] for name in _STORE_OPTIONS if job.get(name)}
    try:
        with closing(open_store(str(job["url"]), **store_options)) as store:
            upload = partial(_upload_wanted, store, job)
            reports = upload_changed(_files_of(job), folder / f"{name}.json", upload, _log)
        if job.get("compile") and job["event"] == "session-end":
            for project in sorted({job.get("project") or _project_here(job), *(item.project for item in reports)}):
                _compile(job, project)
    finally:
        lock.release()


def _name_of(job: dict[str, Any]) -> str:
    """The name of a job's locks and states, shared by jobs that would upload the same sessions in the same way."""
    options = ("url", "project", "agent", "patterns", "no_redact", "user", *_STORE_OPTIONS)
    scope = json.dumps(["" if job.get("user") else _project_here(job), *map(job.get, options)])
    return hashlib.sha256(scope.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _files_of(job: dict[str, Any]) -> Iterable[SessionFile]:
    """The session files of the hook's agent: first those of the hook's own session, then all others."""
    agent, path, files = str(job.get("agent") or ""), str(job.get("transcript_path") or ""), list[SessionFile]()
    try:
        if path:
            own = recognize_session(Path(path).expanduser().absolute(), agent if agent in SESSION_READERS else None)
            files += [own, *SESSION_READERS[own.agent].below(own)]
    except (MonocontextError, OSError) as error:
        _log(f"left out: {error}" if path in str(error) else f"left out: {path}: {error}")
    for name in [item for item in SESSION_READERS if agent in ("", item)]:
        try:
            files += discover_sessions(name)
        except (MonocontextError, OSError) as error:
            _log(f"{name}: {error}")
    return {file.path: file for file in files}.values()


def _upload_wanted(store: Store, job: dict[str, Any], file: SessionFile) -> Uploaded | None:
    """Upload a session of the hook or of its project, with `--user` any session; returns None for any other."""
    is_own = str(file.path) == job.get("transcript_path") or file.session_id.split("/")[0] == job.get("session_id")
    if not (is_own or job.get("user") or project_of_session(file) == _project_here(job)):
        return None
    has_ended = is_own and job["event"] == "session-end"
    is_open = not has_ended and file.modified_seconds > time.time() - _RESTING_SECONDS
    report = upload_session(
        store, file, project=job.get("project") or _project_of_main(file), user=user_at_machine(),
        redact=not job.get("no_redact"), patterns=job.get("patterns") or (), is_open=is_open)  # fmt: skip
    redacted = ", ".join(f"{count} {kind}" for kind, count in report.counts.items())
    remarks = (f"redacted {redacted}", *report.problems) if redacted else report.problems
    done = f"{report.session_id}: {report.records} records, {report.turns} turns to {report.project}"
    _log("; ".join([done, *remarks]))
    return report


def _project_of_main(file: SessionFile) -> str | None:
    """The project of a subagent's main session; None for any other session, or if the main one is not here."""
    main = main_folder(file.path)
    path = main.with_suffix(".jsonl") if main else None
    return project_of_session(SESSION_READERS[file.agent].file(path)) if path and path.is_file() else None


def _project_here(job: dict[str, Any]) -> str:
    return project_of(str(job.get("cwd") or os.getcwd()))


def _compile(job: dict[str, Any], project: str) -> None:
    command = shutil.which("rlm", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if command is None:
        _log("the command `rlm` is missing: install monocontext-rlm, or leave out --compile")
        return
    names = ("endpoint", "region", "profile", "max_dollars")
    options = [f"--{name.replace('_', '-')}={job[name]}" for name in names if job.get(name)]
    options += ["--anonymous"] if job.get("anonymous") else []
    done = subprocess.run(
        [command, "compile", str(job["url"]), f"--project={project}", "--quiet", *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    _log(" ".join((done.stdout + done.stderr).split()) or f"rlm compile ended with code {done.returncode}")


def _log(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {one_line(text)}", file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
