"""The text that a command's CONTEXT names. An edge: it knows `monocontext`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlm.errors import RLMError


class UsageError(RLMError):
    """What a user of a command can mend; one line."""


@contextmanager
def opened(context: str) -> Iterator[Any]:
    """Lazily where CONTEXT is a context in storage, else a text file or `-` as a str. Raises UsageError."""
    if context.startswith("memory:"):
        raise UsageError(
            f"{context} lives in the memory of one process, a command cannot reach it: use a directory or S3"
        )
    if context == "-":
        yield _decoded(sys.stdin.buffer.read(), "stdin")
    elif "://" not in context and Path(context).is_file():
        yield _decoded(Path(context).read_bytes(), context)
    elif "://" not in context and not Path(context).exists():
        raise UsageError(f"{context}: no such file or directory")
    else:
        from monocontext import Monocontext

        with Monocontext.open(context) as held:
            yield held


def _decoded(data: bytes, source: str) -> str:
    """Text as it stands: line ends are kept, a byte order mark is dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UsageError(f"{source} is not UTF-8: byte 0x{data[exc.start]:02x} at offset {exc.start}") from None
