"""Build the page of a run, and write it with its data to a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from monocontext.page.assembly import Page, data_block, load_page
from rlm.errors import RLMError
from rlm.view.feed import RowFeed

SCRIPTS = ("python", "source", "run", "list", "timeline", "coverage", "detail", "page")


@cache
def run_page() -> Page:
    """The page without data."""
    return load_page("rlm.view", SCRIPTS)


def export(feed: RowFeed, target: Path) -> None:
    """Write a page with all turns so far, which needs no server.

    It contains the first prompt only, since each later one repeats the turns before it. Raises OSError, and RLMError if
    the target is the trajectory itself.
    """
    if target.exists() and target.samefile(feed.path):
        raise RLMError(f"{target} is the trajectory itself: give another file to export to")
    state = feed.state()

    def data() -> Iterator[str]:
        yield data_block("state", state)
        if state["rows"]:
            yield data_block("prompt-0", feed.prompt(0))
        for number in range(len(state["rows"]) + (state["live"]["status"] != "ended")):
            yield data_block(f"turn-{number}", feed.turn(number))

    with target.open("w", encoding="ascii", newline="\n") as file:
        file.writelines(run_page().written(data()))
