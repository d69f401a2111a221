"""Keep a snapshot of the memory of a module that has imported what a worker needs, so that workers start faster.

A snapshot contains public code and no context. A process with an empty environment makes it, and runs no code of a
model. The name of its file is a digest of its inputs. Its first bytes are a digest of the rest; a damaged snapshot is
made again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

MOST_KEPT = 4
"""The most snapshots in the folder, of 31 MB each: those used last."""
_SUFFIX = ".snapshot"
_DIGEST_BYTES = sha256().digest_size
_making = threading.Lock()


def load_snapshot(folder: Path, depends_on: tuple[bytes, ...], make: Callable[[], bytes]) -> bytes:
    """The snapshot for these inputs. `make` makes it if the folder has none. Empty if the folder cannot keep one."""
    name = sha256(b"".join(sha256(item).digest() for item in depends_on)).hexdigest()
    path = folder / f"{name}{_SUFFIX}"
    if (result := _read(path)) is not None:
        return result
    with _making:  # a waiting thread then finds the file
        if (result := _read(path)) is not None:
            return result
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return b""
        created = make()
        with suppress(OSError):  # a full disk: the next start makes it again
            _write(path, created)
        return created


def _drop_old(folder: Path) -> None:
    """Remove all snapshots but those used last, including files that a killed process left half-written."""
    results = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(FileNotFoundError):  # another process drops them, too
            results.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(results, reverse=True)[MOST_KEPT:]:
        path.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    """The content of the file; None if it is missing or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a folder of another user
        os.utime(path)  # it is in use
    body = data[_DIGEST_BYTES:]
    return body if sha256(body).digest() == data[:_DIGEST_BYTES] else None


def _write(path: Path, data: bytes) -> None:
    """Write it whole or not at all. Raises OSError."""
    with NamedTemporaryFile(dir=path.parent, suffix=_SUFFIX, delete=False) as file:
        try:
            file.write(sha256(data).digest() + data)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    _drop_old(path.parent)
