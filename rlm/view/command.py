"""Find a trajectory, and serve its page or write it to a file, for `rlm view`."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from rlm.errors import RLMError, TrajectoryError
from rlm.view.feed import RowFeed
from rlm.view.page import export
from rlm.view.server import ViewServer, is_loopback


def trajectory(run: str) -> Path:
    """The file that RUN names: itself, or the newest of a directory. Raises TrajectoryError."""
    path = Path(run)
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    if not found:
        raise TrajectoryError(f"there is no trajectory in {run}: no file there ends in .jsonl")
    return found[-1]


def write(path: Path, target: str) -> None:
    """Write the page to a file. Raises TrajectoryError, RLMError, OSError."""
    export(RowFeed(path), Path(target))


def serve(path: Path, host: str, port: int, *, open_browser: bool) -> None:
    """Serve until Ctrl-C; the address goes to stdout. Raises TrajectoryError, and RLMError for an address in use."""
    feed = RowFeed(path)
    try:
        server = ViewServer(feed, host, port)
    except (OSError, OverflowError) as exc:
        raise RLMError(f"cannot serve at {host} port {port}: {exc}") from exc
    with server:
        if not is_loopback(host):
            click.echo(f"warning: anyone who reaches {host} can read this run", err=True)
        print(server.url, flush=True)
        click.echo(f"serving {path}; Ctrl-C ends it", err=True)
        if open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            click.echo("", err=True)
