"""Build the page of a run, and serve it or write it to a file, with its data."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from monocontext.page.assembly import WebPage, data_block, load_page
from monocontext.page.serving import PageServer
from rlm.errors import RLMError, TrajectoryError
from rlm.view.feed import RowFeed

_SCRIPTS = ("python", "source", "run", "list", "timeline", "detail", "page")


@cache
def run_page() -> WebPage:
    """The page without data."""
    return load_page("rlm.view", _SCRIPTS)


class ViewServer(PageServer):
    """Serves the page at `/`, and its data as JSON at `/state`, `/turn` and `/prompt`. Writes nothing."""

    def __init__(self, feed: RowFeed, host: str = "127.0.0.1", port: int = 0) -> None:
        """`feed`: the run. `host`, `port`: the address; port 0 is any free one. Raises OSError if it cannot be used."""
        answers = {
            "/state": lambda query: feed.state(query.number_or_none("first") or 0, query.number_or_none("generation")),
            "/turn": lambda query: feed.turn(query.number("number"), query.number_or_none("generation")),
            "/prompt": lambda query: feed.prompt(query.number("number"), query.number_or_none("generation")),
        }
        super().__init__(run_page(), answers, host, port, failures=(RLMError, OSError))


def find_trajectory(run: str) -> Path:
    """The path `run`; if that is a directory, its newest trajectory. Raises TrajectoryError if that has none."""
    path = Path(run)
    if not path.is_dir():
        return path
    newest = max(path.glob("*.jsonl"), key=lambda file: file.stat().st_mtime, default=None)
    if newest is None:
        raise TrajectoryError(f"there is no trajectory in {run}: no file there ends in .jsonl")
    return newest


def export(feed: RowFeed, target: Path) -> None:
    """Write a page that needs no server, with all turns so far and the prompt of the first, which later ones repeat.
    Raises OSError, and RLMError if the target is the trajectory itself."""
    if target.exists() and target.samefile(feed.path):
        raise RLMError(f"{target} is the trajectory itself: choose another file to export to")
    with TemporaryFile("w+", encoding="ascii", newline="\n") as page:  # a failure leaves an earlier page as it is
        page.writelines(run_page().for_file(_blocks(feed)))
        page.seek(0)
        with target.open("w", encoding="ascii", newline="\n") as file:  # keeps a link, and a device such as /dev/stdout
            shutil.copyfileobj(page, file)


def _blocks(feed: RowFeed) -> Iterator[str]:
    """Yield the data of a page without a server: the state, the first prompt, and each turn."""
    state = feed.state()
    generation, still_running = state["generation"], state["live"]["status"] != "ended"
    yield data_block("state", state)
    if state["rows"]:
        yield data_block("prompt-0", feed.prompt(0, generation))
    for number in range(len(state["rows"]) + (1 if still_running else 0)):  # the turn in progress has no row yet
        yield data_block(f"turn-{number}", feed.turn(number, generation))
