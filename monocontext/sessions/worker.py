"""Run the worker that hooks start: it uploads the jobs in the spool, retries, and writes a log. A user has one.

A job that fails stays in the spool; the next hook, or `monocontext sessions sync`, starts the worker again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText, InvalidUrl, MonocontextError, NotFound
from monocontext.sessions import spool
from monocontext.sessions.identity import user_at_machine
from monocontext.sessions.project_name import is_absolute
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import AGENTS, discover_sessions, recognize_session
from monocontext.sessions.upload import Uploaded, project_of_session, upload_session
from monocontext.stores import open_store
from monocontext.stores.protocol import Store

PATIENCE_SECONDS = 900.0
"""The longest time that a worker retries failed uploads."""
_FIRST_WAIT_SECONDS = 2.0
"""The wait after the first failure of an upload; it doubles each time."""
_LONGEST_WAIT_SECONDS = 60.0
"""The longest wait between two attempts of an upload."""
_MOST_ATTEMPTS_WITHOUT_FILE = 4
"""After this many attempts, an upload whose transcript is gone is dropped."""
_LOOK_SECONDS = 0.5
"""Between two looks for new jobs while others are not due."""


def main() -> None:
    """Do all jobs; give up after `PATIENCE_SECONDS`."""
    os.nice(10)
    work(time.time() + PATIENCE_SECONDS)


def work(
    until: float,
    log: Callable[[str], object] | None = None,
    report_upload: Callable[[Uploaded], object] | None = None,
) -> int:
    """Do the jobs in the spool; returns the number of jobs that remain.

    Failed jobs are retried until `until`, in seconds since 1970. `report_upload` receives each upload, by default the
    log does.
    """
    log = log or _log
    report_upload = report_upload or (lambda report: log(_describe(report)))
    has_postponed = False
    while spool.jobs() and not has_postponed:
        descriptor = spool.try_lock()
        if descriptor is None:  # another worker does them
            break
        try:
            has_postponed = _do_jobs(until, log, report_upload)
        finally:
            os.close(descriptor)
        # Look again: the hook of a job that was written just before this found the lock taken, and started no worker.
    return len(spool.jobs())


def _do_jobs(until: float, log: Callable[[str], object], report_upload: Callable[[Uploaded], object]) -> bool:
    """Do jobs until there are none, or all are due after `until`; returns whether there are such."""
    while paths := spool.jobs():
        due = [at for path in paths if (at := _try_job(path, log, report_upload)) is not None]
        if not due:
            continue
        if min(due) > until:
            log(f"{len(due)} uploads are kept for later")
            return True
        time.sleep(max(0.0, min(_LOOK_SECONDS, min(due) - time.time())))
    return False


def _try_job(path: str, log: Callable[[str], object], report_upload: Callable[[Uploaded], object]) -> float | None:
    """Do one job if it is due; returns the time of the next attempt, in seconds since 1970. None if the job is done or
    put aside."""
    try:
        job = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        return _give_up(path, {}, f"not a job: {error}", log)
    due = float(job.get("due", 0.0))
    if due > time.time():
        return due
    try:
        reports = upload_job(job)
        for report in reports:
            report_upload(report)
        if job.get("compile") and not job.get("goes_on"):
            _compile(job, reports[0].project, log)
    except (InvalidText, InvalidUrl) as error:
        return _give_up(path, job, str(error), log)
    except NotFound as error:
        if job.get("attempts", 0) >= _MOST_ATTEMPTS_WITHOUT_FILE and "transcript" in str(error):
            return _give_up(path, job, str(error), log)
        return _retry_later(path, job, error, log)
    except (MonocontextError, OSError) as error:
        return _retry_later(path, job, error, log)
    _finish(path, job)
    return None


def upload_job(job: dict[str, object]) -> list[Uploaded]:
    """Upload the session of a job, and its subagents. Raises the errors of `upload_session`, and `NotFound` if there is
    no transcript."""
    names = ("endpoint", "region", "profile", "anonymous")
    options: dict[str, Any] = {name: job[name] for name in names if job.get(name)}
    store = open_store(str(job["url"]), **options)
    try:
        files = _job_files(job)
        project = str(job.get("project") or project_of_session(files[0]))  # subagents belong to their session
        return [_upload_file(store, file, project, job) for file in files]
    finally:
        store.close()


def _upload_file(store: Store, file: SessionFile, project: str, job: dict[str, object]) -> Uploaded:
    patterns = job.get("patterns")
    return upload_session(
        store,
        file,
        project=project,
        user=user_at_machine(),
        redact=not job.get("no_redact"),
        patterns=[str(each) for each in patterns] if isinstance(patterns, list) else (),
        is_open=bool(job.get("goes_on")),
    )


def _job_files(job: dict[str, object]) -> list[SessionFile]:
    """The session's file and those of its subagents. Raises `NotFound` if there is no transcript."""
    original, linked = str(job.get("transcript_path") or ""), str(job.get("linked") or "")
    if not os.path.exists(linked or original):
        found = [file for file in discover_sessions() if file.session_id.partition("/")[0] == job.get("session_id")]
        if not found:
            raise NotFound(f"no transcript at {original or 'any place'} for session {job.get('session_id')}")
        return sorted(found, key=lambda file: "/" in file.session_id)
    agent = str(job["agent"]) if job.get("agent") in AGENTS else None
    folder = str(job.get("cwd") or "")
    main = recognize_session(Path(original if os.path.exists(original) else linked), agent)
    if not os.path.exists(original):
        main = replace(main, session_id=str(job.get("session_id") or Path(original).name.partition(".")[0]))
    main = replace(main, folder=main.folder if is_absolute(main.folder) else folder or main.folder)
    return [main, *AGENTS[main.agent].below(replace(main, path=Path(original)))]


def _compile(job: dict[str, object], project: str, log: Callable[[str], object]) -> None:
    """Run `rlm compile` for the project, and wait for it; its output goes to the log."""
    program = Path(sys.executable).parent / "rlm"
    command = str(program) if os.access(program, os.X_OK) else shutil.which("rlm")
    if command is None:
        log("no command `rlm` here: pip install monocontext-rlm, or leave out --compile")
        return
    names = ("endpoint", "region", "profile", "max_dollars")
    options = [f"--{name.replace('_', '-')}={job[name]}" for name in names if job.get(name)]
    options += ["--anonymous"] if job.get("anonymous") else []
    done = subprocess.run(
        [command, "compile", str(job["url"]), f"--project={project}", "--quiet", *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    log(" ".join((done.stdout + done.stderr).split()) or f"rlm compile ended with {done.returncode}")


def _retry_later(path: str, job: dict[str, object], error: Exception, log: Callable[[str], object]) -> float:
    """Put a failed job back; returns the time of its next attempt, in seconds since 1970."""
    attempts = int(str(job.get("attempts", 0))) + 1
    wait = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** min(attempts - 1, 10))
    log(f"{job.get('session_id')}: attempt {attempts} failed, again in {wait:.0f} s: {' '.join(str(error).split())}")
    due = time.time() + wait
    if json.loads(Path(path).read_bytes()).get("at") == job.get("at"):  # else a newer job has replaced it
        spool.rewrite_job(path, {**job, "attempts": attempts, "retry": True, "due": due})
    return due


def _give_up(path: str, job: dict[str, object], why: str, log: Callable[[str], object]) -> float | None:
    """Put aside a job that cannot succeed, and log the reason."""
    log(f"{job.get('session_id', path)}: put aside: {' '.join(why.split())}")
    os.replace(path, path.removesuffix(".job") + ".failed")
    return None


def _finish(path: str, job: dict[str, object]) -> None:
    if job.get("session_id"):
        spool.mark_uploaded(job)
    linked = str(job.get("linked") or "")
    if json.loads(Path(path).read_bytes()).get("at") != job.get("at"):
        return
    os.unlink(path)
    if linked:
        Path(linked).unlink(missing_ok=True)


def _describe(report: Uploaded) -> str:
    taken = ", ".join(f"{count} {kind}" for kind, count in report.counts.items())
    return (
        f"{report.session_id}: {report.records} records, {report.turns} turns to {report.project}"
        + (f"; redacted {taken}" if taken else "")
        + "".join(f"; {problem}" for problem in report.problems)
    )


def _log(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {spool.one_line(text)}", file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
