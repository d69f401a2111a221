"""Upload the session files that have changed since they were last uploaded from this machine.

What was uploaded is noted in a file: path, size and time. If that file is lost, each session is compared with the
archive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from monocontext.errors import InvalidText, InvalidUrl, MonocontextError, StoreFailure
from monocontext.sessions.machine import write_file
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.upload import Uploaded


def upload_changed(
    files: Iterable[SessionFile],
    noted: Path,
    upload: Callable[[SessionFile], Uploaded | None],
    note: Callable[[str], object],
) -> None:
    """Call `upload` with each file that has changed. It may return None for a file that is not wanted.

    What is noted of files that are not among `files` is dropped: one that was away is read again when it is back.
    A file that fails is named by `note`, and the others go on; raises `StoreFailure` if the store is down.
    """
    files, before = list(files), read_states(noted)
    states = {path: before[path] for path in (str(file.path) for file in files) if path in before}
    try:
        for file in files:
            path, seen = str(file.path), state_of(file.path)
            if seen is None or states.get(path) == seen:
                continue
            try:
                report = upload(file)
            except StoreFailure:
                raise
            except (MonocontextError, OSError, ValueError, RecursionError) as error:
                note(f"left out: {error}" if path in str(error) else f"left out: {path}: {error}")
                if not isinstance(error, InvalidText | InvalidUrl):
                    continue  # else it is no session, until it changes
                report = None
            if not (report and report.is_partial):
                states[path] = seen  # as it was before it was read: what was added since is another state
    finally:
        if states != before:
            with suppress(OSError):  # it only saves work
                write_file(noted, json.dumps(states).encode())


def read_states(noted: Path) -> dict[str, list[int]]:
    """The sizes and times of the files that were uploaded, by path."""
    try:
        result = json.loads(noted.read_bytes())
    except (OSError, ValueError):
        return {}
    return result if isinstance(result, dict) else {}


def state_of(path: Path) -> list[int] | None:
    """The size and time of a file; None if there is none."""
    with suppress(OSError):
        result = path.stat()
        return [result.st_size, result.st_mtime_ns]
    return None
