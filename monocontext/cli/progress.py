"""Show a progress bar on a terminal, and measure the input of a command for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

from monocontext import notebook
from monocontext.cli.printing import is_quiet


def shows_progress() -> bool:
    """Whether stderr shows progress: on a terminal, without `--quiet`."""
    return sys.stderr.isatty() and not is_quiet()


def progress_bar(label: str, total: int | None = None) -> AbstractContextManager[Callable[..., None]]:
    """Yield the `progress` callback of a long operation. It draws a bar on a terminal, and else does nothing."""
    return notebook.progress_bar(label, total) if shows_progress() else nullcontext(lambda *_: None)


def total_bytes(paths: Iterable[str], follow_links: bool = False) -> int | None:
    """The approximate size of the input in bytes; None for stdin and for URLs."""
    total = 0
    for path in paths:
        if path == "-" or "://" in path:
            return None
        if os.path.isdir(path):
            from monocontext.writing.folder import Folder

            folder = Folder(path, follow_links=follow_links)
            total += sum(os.path.getsize(os.path.join(folder.path, name)) for name in folder.files())
        elif os.path.exists(path):
            total += os.path.getsize(path)
    return total
