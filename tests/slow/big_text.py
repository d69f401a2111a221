"""A long text for the slow tests: lines as logs have them, some of them not ASCII, the same for the same seed."""

from __future__ import annotations

import bisect
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK_LINES = 10_000
_LEVELS = ("INFO ", "INFO ", "INFO ", "DEBUG", "WARN ", "ERROR")
_ASCII = (
    "connection from 10.0.3.17 accepted, 14 of 256 in use, queue empty",
    "cache miss for /var/lib/app/objects, fetching it from the second tier",
    'GET /api/v1/items?page=3&per_page=100 HTTP/1.1" 200 18231 "curl/8.4.0"',
    "request failed with 503, retry in 250 ms (attempt 2 of 4)",
)
_OTHER = (
    "Überprüfung abgeschlossen, keine Einträge geändert, nächster Lauf in fünf Minuten",
    "Η σύνδεση με τον διακομιστή αποκαταστάθηκε",
    "サーバーに接続しました。応答を待っています",
    "re\u0301ussi e\u0301galement \U0001f600 \U0001f680",
)
ABSENT = "this needle is nowhere"


def memory_bytes(pid: int | str = "self") -> int:
    """The most memory a process has had resident since its program started (VmHWM), 0 once it has ended. `ru_maxrss`
    is inherited from whoever forked it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    result = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(result[0][1]) << 10 if result else 0


def blocks(size_bytes: int, seed: int = 1) -> Iterator[bytes]:
    """UTF-8 in pieces of about a megabyte, each ending a line, until `size_bytes` are there or a little more."""
    rng = random.Random(seed)
    written = number = 0
    while written < size_bytes:
        # In one block out of eight every line may hold other characters: whole frames are ASCII, whole frames are not.
        said = _ASCII + _OTHER if number % 8 == 5 else _ASCII
        ids = rng.randbytes(8 * _BLOCK_LINES).hex()
        levels, messages = rng.choices(_LEVELS, k=_BLOCK_LINES), rng.choices(said, k=_BLOCK_LINES)
        second = f"2025-11-{number % 28 + 1:02d}T{number % 24:02d}"
        text = "".join(
            f"{second}:{i // 167:02d}:{i % 60:02d} {level} [{ids[16 * i : 16 * i + 16]}] {message} #{number}.{i}\n"
            for i, (level, message) in enumerate(zip(levels, messages, strict=True))
        )
        yield text.encode()
        written += len(text.encode())
        number += 1


@dataclass(frozen=True, slots=True)
class BigText:
    """The text as a file, and what a test has to know of it."""

    path: Path
    characters: int
    bytes: int
    lines: int
    sha256: str
    starts: list[list[int]]
    """First character and first byte of each block, and of the end."""

    @classmethod
    def write(cls, path: Path, size_bytes: int, seed: int = 1) -> BigText:
        digest, starts, characters, size, lines = hashlib.sha256(), [[0, 0]], 0, 0, 0
        with path.open("wb") as file:
            for block in blocks(size_bytes, seed):
                file.write(block)
                digest.update(block)
                characters += len(block.decode())
                size += len(block)
                lines += block.count(b"\n")
                starts.append([characters, size])
        path.with_suffix(".json").write_text(json.dumps([characters, size, lines, digest.hexdigest(), starts]))
        return cls(path, characters, size, lines, digest.hexdigest(), starts)

    @classmethod
    def load(cls, path: Path) -> BigText:
        """The description of a file that `write` made."""
        return cls(path, *json.loads(path.with_suffix(".json").read_text()))

    def slice(self, start: int, stop: int) -> str:
        """Characters [start, stop), from the file."""
        low = bisect.bisect_right(self.starts, start, key=lambda item: item[0]) - 1
        high = bisect.bisect_left(self.starts, stop, key=lambda item: item[0])
        with self.path.open("rb") as file:
            file.seek(self.starts[low][1])
            text = file.read(self.starts[high][1] - self.starts[low][1]).decode()
        return text[start - self.starts[low][0] : stop - self.starts[low][0]]
