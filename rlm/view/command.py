"""Find a trajectory, and serve its page or write it to a file, for `rlm view`."""

from __future__ import annotations

from pathlib import Path

from monocontext.cli.serving import serve_page
from rlm.errors import RLMError, TrajectoryError
from rlm.view.feed import RowFeed
from rlm.view.page import export
from rlm.view.server import ViewServer


def trajectory(run: str) -> Path:
    """The trajectory that RUN names: the file itself, or the newest in a directory. Raises TrajectoryError."""
    path = Path(run)
    if not path.is_dir():
        return path
    result = sorted(path.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    if not result:
        raise TrajectoryError(f"there is no trajectory in {run}: no file there ends in .jsonl")
    return result[-1]


def write(path: Path, target: str) -> None:
    """Write the page to a file. Raises TrajectoryError, RLMError, OSError."""
    export(RowFeed(path), Path(target))


def serve(path: Path, host: str, port: int, *, open_browser: bool | None) -> None:
    """Serve until Ctrl-C. Raises TrajectoryError, and RLMError for an address in use."""
    feed = RowFeed(path)

    def make() -> ViewServer:
        try:
            return ViewServer(feed, host, port)
        except (OSError, OverflowError) as exc:
            raise RLMError(f"cannot serve at {host} port {port}: {exc}") from exc

    serve_page(make, host, str(path), open_browser=open_browser)
