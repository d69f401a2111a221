"""Queue uploads: one small file for each, in a directory of this user. Imports next to nothing.

Invariants:
- a job is there whole or not at all, whichever process is killed;
- a transcript is hard-linked where that is possible, so it stays when the agent removes it;
- one worker works at a time; a job that is written while it ends is seen by it or by a new one.
"""

from __future__ import annotations

import json
import os
import sys
import time

COOLDOWN_SECONDS = 60.0
"""Between two uploads of a session that goes on."""
_LOG_BYTES = 1 << 20


def home() -> str:
    """Where jobs, briefs and the log are: `MONOCONTEXT_HOME`, else `~/.monocontext`."""
    return os.environ.get("MONOCONTEXT_HOME") or os.path.join(os.path.expanduser("~"), ".monocontext")


def spool_folder() -> str:
    return os.path.join(home(), "spool")


def log_path() -> str:
    return os.path.join(home(), "upload.log")


def one_line(text: object) -> str:
    """Text from outside as one line that steers no terminal."""
    words = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def complain(error: object) -> None:
    """Print an error on stderr."""
    print(f"monocontext: {one_line(error)}", file=sys.stderr)


def word(text: str) -> str:
    """Any text as a part of a file name; two texts may share one."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in text)[:80] or "-"


def write_job(job: dict[str, object], *, every_seconds: float = 0.0) -> str:
    """Write the job of an upload to the spool, and return its path. Raises `OSError`.

    `every_seconds`: the session is still going on. The job then replaces the session's earlier one, and is due this
    long after its last upload.
    """
    folder = spool_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    session = _session_word(job)
    unique = f"{time.time_ns()}-{os.getpid()}"
    if every_seconds:
        name = f"goes-on-{session}"
        job = {**job, "goes_on": True, "due": _last_upload_seconds(session) + every_seconds}
    else:
        name = f"ended-{unique}"
        ending = os.path.basename(str(job["transcript_path"])).partition(".")[2]
        linked = os.path.join(folder, f"{name}.{word(ending).replace('-', '.')}")  # readers go by it
        try:
            os.link(str(job["transcript_path"]), linked)
            job = {**job, "linked": linked}
        except OSError:  # another file system, or not there yet: the worker looks for it
            pass
    path = os.path.join(folder, f"{name}.job")
    _write_whole(path, json.dumps(job).encode(), unique)
    return path


def rewrite_job(path: str, job: dict[str, object]) -> None:
    """Put a job back, to be tried again later."""
    _write_whole(path, json.dumps(job).encode(), f"{time.time_ns()}-{os.getpid()}")


def jobs() -> list[str]:
    """Files of jobs, the oldest names first."""
    return _files(".job")


def failed_jobs() -> list[str]:
    """Files of jobs that were put aside, the oldest names first."""
    return _files(".failed")


def _files(ending: str) -> list[str]:
    try:
        return sorted(
            os.path.join(spool_folder(), name) for name in os.listdir(spool_folder()) if name.endswith(ending)
        )
    except FileNotFoundError:
        return []


def mark_uploaded(job: dict[str, object]) -> None:
    """Record that the session of a job was uploaded now."""
    path = os.path.join(spool_folder(), f"last-{_session_word(job)}")
    with open(path, "wb"):
        os.utime(path)


def _session_word(job: dict[str, object]) -> str:
    """A session and where it goes, as a part of a file name."""
    return f"{word(str(job.get('session_id') or ''))}-{word(str(job.get('url') or '')[-60:])}"


def _last_upload_seconds(session: str) -> float:
    try:
        return os.stat(os.path.join(spool_folder(), f"last-{session}")).st_mtime
    except FileNotFoundError:
        return 0.0


def try_lock() -> int | None:
    """Become the one worker: a descriptor that holds the lock while it is open; None where there is one already."""
    os.makedirs(spool_folder(), mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(spool_folder(), "worker.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        is_ours = _lock(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    if not is_ours:
        os.close(descriptor)
        return None
    return descriptor


def _lock(descriptor: int) -> bool:
    """Lock a file while it is open, without waiting. `filelock` takes the same lock, 30 ms of imports later."""
    try:
        import fcntl
    except ModuleNotFoundError:
        from filelock import lock_descriptor

        return lock_descriptor(descriptor, blocking=False)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start_worker() -> None:
    """Start the worker in its own process session, unless it runs, so that it outlives the agent and its terminal. Jobs
    are written before this call."""
    descriptor = try_lock()
    if descriptor is None:
        return
    os.close(descriptor)
    path = log_path()
    if os.path.exists(path) and os.stat(path).st_size > _LOG_BYTES:
        os.replace(path, path + ".1")
    # -P: the agent's directory is not where modules are looked for.
    command = [sys.executable, "-P", "-m", "monocontext.sessions.worker"]
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        streams = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        os.posix_spawn(sys.executable, command, os.environ, file_actions=streams, setsid=True)
    except (NotImplementedError, AttributeError):  # no setsid for posix_spawn here, or no posix_spawn
        import subprocess

        subprocess.Popen(command, stdin=null, stdout=log, stderr=log, start_new_session=True)
    finally:
        os.close(log)
        os.close(null)


def _write_whole(path: str, data: bytes, unique: str) -> None:
    temporary = f"{path}.{unique}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)
