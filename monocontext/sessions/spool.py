"""Queue uploads: one small file for each, in a directory of this user. Imports next to nothing.

Invariants:
- a job is written completely or not at all, whichever process is killed;
- a transcript is hard-linked if that is possible, so it stays when the agent removes it;
- one worker runs at a time; a job that is written while it ends is done by it or by a new one.
"""

from __future__ import annotations

import json
import os
import sys
import time

COOLDOWN_SECONDS = 60.0
"""Between two uploads of a session that goes on."""
_LOG_BYTES = 1 << 20
"""The size at which the log of the worker begins again."""


def home() -> str:
    """The folder of jobs, briefs and the log: `MONOCONTEXT_HOME`, else `~/.monocontext`."""
    return os.environ.get("MONOCONTEXT_HOME") or os.path.join(os.path.expanduser("~"), ".monocontext")


def spool_folder() -> str:
    return os.path.join(home(), "spool")


def log_path() -> str:
    return os.path.join(home(), "upload.log")


def one_line(text: object) -> str:
    """Foreign text as one line, with control characters escaped that a terminal would obey."""
    words = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def complain(error: object) -> None:
    """Print an error on stderr."""
    print(f"monocontext: {one_line(error)}", file=sys.stderr)


def word(text: str) -> str:
    """Any text as a part of a file name. Different texts may give the same part."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in text)[:80] or "-"


def write_job(job: dict[str, object], *, every_seconds: float = 0.0) -> str:
    """Write the job of an upload to the spool; returns its path. Raises `OSError`.

    `every_seconds`: given if the session goes on. The job then replaces an earlier job of the session, and is due so
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
        linked = os.path.join(folder, f"{name}.{word(ending).replace('-', '.')}")  # the ending tells the format
        try:
            os.link(str(job["transcript_path"]), linked)
            job = {**job, "linked": linked}
        except OSError:  # another file system, or no file yet: the worker looks for it
            pass
    path = os.path.join(folder, f"{name}.job")
    _write_whole(path, json.dumps(job).encode(), unique)
    return path


def rewrite_job(path: str, job: dict[str, object]) -> None:
    """Put a job back, to be tried again later."""
    _write_whole(path, json.dumps(job).encode(), f"{time.time_ns()}-{os.getpid()}")


def jobs() -> list[str]:
    """Paths of jobs, sorted by name."""
    return _files(".job")


def failed_jobs() -> list[str]:
    """Paths of jobs that were put aside, sorted by name."""
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
    """The session and the archive of a job, as a part of a file name."""
    return f"{word(str(job.get('session_id') or ''))}-{word(str(job.get('url') or '')[-60:])}"


def _last_upload_seconds(session: str) -> float:
    try:
        return os.stat(os.path.join(spool_folder(), f"last-{session}")).st_mtime
    except FileNotFoundError:
        return 0.0


def try_lock() -> int | None:
    """Take the worker's lock; returns a descriptor, which has the lock until it is closed. None if a worker has it."""
    os.makedirs(spool_folder(), mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(spool_folder(), "worker.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    is_locked = False
    try:
        is_locked = _lock(descriptor)
    finally:
        if not is_locked:
            os.close(descriptor)
    return descriptor if is_locked else None


def _lock(descriptor: int) -> bool:
    """Lock a file without waiting; returns whether it worked. `filelock` takes the same lock, but its import 30 ms."""
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
    """Start the worker unless it runs. It gets its own process session, so it outlives the agent and its terminal.

    Jobs must be written before this call.
    """
    descriptor = try_lock()
    if descriptor is None:
        return
    os.close(descriptor)
    path = log_path()
    if os.path.exists(path) and os.stat(path).st_size > _LOG_BYTES:
        os.replace(path, path + ".1")
    # -P: no module is imported from the agent's directory.
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
