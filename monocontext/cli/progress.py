"""A bar with rate and time left on a terminal; silence elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from monocontext.segments import Progress


def total_bytes(paths: Iterable[str]) -> int | None:
    """Size of what will be read, or None where it cannot be known."""
    total = 0
    for path in paths:
        if path == "-" or "://" in path:
            return None
        if os.path.isdir(path):
            total += sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
        elif os.path.exists(path):
            total += os.path.getsize(path)
    return total


@contextmanager
def bar(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the bytes done so far."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as shown:
        task = shown.add_task(label, total=total)
        yield lambda done: shown.update(task, completed=done)


@contextmanager
def of_upload(label: str, total: int | None) -> Iterator[Callable[[Progress], None]]:
    """The same for the progress of a writer."""
    with bar(label, total) as show:
        yield lambda progress: show(progress.text_bytes)
