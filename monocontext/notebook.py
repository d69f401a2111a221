"""Show contexts, counts and progress bars in notebooks.

A notebook shows the `_repr_html_` of the last value in a cell. This HTML needs no network, style sheet or script, takes
the colours of the page, and escapes all text from outside.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress_bar"]

_UPDATE_SECONDS = 0.1  # the least time between two drawings of a bar
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


@contextmanager
def progress_bar(label: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a bar. Yields a `progress` callback for `publish`, `append`, `index`, `compact`, `verify` and `gc`.

        with progress_bar("upload", total_bytes) as progress:
            publish(path, url, progress=progress)

    The bar appears in a notebook or on a terminal; elsewhere nothing is printed. `total` is in bytes; without it,
    only a count is shown.
    """
    if _in_notebook():
        bar = _NotebookBar(label, total)
        try:
            yield lambda done: bar.show(_count_of(done))
        finally:
            bar.draw()
    elif sys.stderr.isatty():
        with _bar_on_terminal(label, total) as show:
            yield lambda done: show(_count_of(done))
    else:
        yield lambda done: None


def context_card(kind: str, characters: int, facts: Iterable[str]) -> str:
    """HTML that shows the kind and the size of a context, and facts about it."""
    return _card([f"<b>{_escape(kind)}</b> {characters:,} characters", _faint(", ".join(facts))])


def counts_card(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """HTML that shows a title above a table of names and values."""
    cells = "".join(
        f'<tr><td style="text-align:left">{_escape(name)}</td><td style="text-align:right">{_escape(value)}</td></tr>'
        for name, value in rows
    )
    return _card([f"<b>{_escape(title)}</b>", f"<table>{cells}</table>"])


def _escape(text: str) -> str:
    """Escape a text as `html.escape` does, whose import takes 2 ms."""
    return text.translate(_ESCAPES)


def _faint(text: str) -> str:
    return f'<span style="opacity:0.7">{_escape(text)}</span>' if text else ""


def _card(lines: Iterable[str]) -> str:
    body = "".join(f"<div>{line}</div>" for line in lines if line)
    return f'<div style="max-width:60em;font-family:monospace">{body}</div>'


def _count_of(done: Any) -> int:
    """The count in the argument of a `progress` callback: an int, or a report with `text_bytes`."""
    return int(getattr(done, "text_bytes", done))


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, whose cells show HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel")


class _NotebookBar:
    """A bar in the output of a cell, redrawn at most ten times a second."""

    def __init__(self, label: str, total: int | None) -> None:
        import IPython.display

        self._ipython: Any = IPython.display  # it has no types
        self._label, self._total, self._count = label, total, 0
        self._began, self._drawn_at = time.monotonic(), 0.0
        self._handle = self._ipython.display(self._html(), display_id=True)

    def show(self, count: int) -> None:
        self._count = count
        if time.monotonic() - self._drawn_at >= _UPDATE_SECONDS:
            self.draw()

    def draw(self) -> None:
        self._drawn_at = time.monotonic()
        self._handle.update(self._html())

    def _html(self) -> Any:
        of_total = f" of {self._total:,}" if self._total else ""
        text = f"{self._label}: {self._count:,}{of_total} bytes, {time.monotonic() - self._began:.1f} s"
        bar = f'<progress value="{self._count}" max="{self._total}"></progress> ' if self._total else ""
        return self._ipython.HTML(_card([bar + _faint(text)]))


@contextmanager
def _bar_on_terminal(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"), rich.BarColumn(), rich.DownloadColumn(True), rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
    )  # fmt: skip
    with rich.Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.update(task, completed=done)
