"""Send messages between processes: the length of each (4 bytes, big endian), then its bytes."""

from __future__ import annotations

from typing import IO


def write_message(file: IO[bytes], message: bytes) -> None:
    file.write(len(message).to_bytes(4, "big") + message)
    file.flush()


def read_message(file: IO[bytes]) -> bytes:
    """Read a message; empty if the other side has closed the pipe."""
    size = file.read(4)
    return file.read(int.from_bytes(size, "big")) if len(size) == 4 else b""
