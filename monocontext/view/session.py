"""Record which parts of a text the page reads, and combine them with the reads of recorded runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from monocontext.engine.read_log import MOST_RANGES, merge
from monocontext.page.coverage import shares_read
from monocontext.text.monocontext import Monocontext
from monocontext.view.recorded_runs import RecordedTurn

Kind = Literal["opened", "searched"]
KEPT_ACTIONS = 500
"""The most actions that the page lists."""
_SHOWN_RANGES = 20
"""The most ranges that an answer lists for an action. Maps show all."""
_QUESTION_CHARACTERS = 300


class ReadingSession:
    """The actions of the users of a page, each with its reads.

    Safe for use by many threads, but actions at the same time count each other's reads.
    """

    def __init__(self, text: Monocontext, runs: Sequence[RecordedTurn]) -> None:
        """`runs` are listed after the session's own actions."""
        self._text = text
        self._runs = [_action_of(turn) for turn in runs]
        self._read_by_runs = merge([pair for turn in runs for pair in turn.ranges], MOST_RANGES)
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._actions: deque[dict[str, Any]] = deque(maxlen=KEPT_ACTIONS)
        self._read: dict[Kind, list[tuple[int, int]]] = {"opened": [], "searched": []}

    @contextmanager
    def recording(self, kind: Kind, what: str) -> Iterator[None]:
        """Record the reads of a `with` block as one action, even if the block fails."""
        stats = self._text.stats
        mark, _ = self._text.reads_since()
        gets, size = stats.gets, stats.bytes_fetched
        try:
            yield
        finally:
            _, ranges = self._text.reads_since(mark)
            action = {
                "kind": kind,
                "what": what,
                "seconds": time.monotonic() - self._began,
                "characters": _size(ranges),
                "ranges": ranges[:_SHOWN_RANGES],
                "gets": stats.gets - gets,
                "bytes": stats.bytes_fetched - size,
            }
            with self._lock:
                self._actions.appendleft(action)
                self._read[kind] = merge([*self._read[kind], *ranges], MOST_RANGES)

    def summary(self, first: int, most: int) -> dict[str, Any]:
        """At most `most` actions from number `first` on, the newest first, and maps of the reads (no GET)."""
        stats, size = self._text.stats, len(self._text)
        with self._lock:
            actions = [*self._actions, *self._runs]
            read = {kind: [*ranges] for kind, ranges in self._read.items()}
        whole = merge([pair for ranges in read.values() for pair in ranges], MOST_RANGES)
        maps = [*read.items(), *([("runs", self._read_by_runs)] if self._runs else [])]
        return {
            "actions": actions[first : first + most],
            "next": first + most if len(actions) > first + most else None,
            "characters": _size(whole),
            "map": {kind: shares_read(ranges, size) for kind, ranges in maps},
            "gets": stats.gets,
            "bytes": stats.bytes_fetched,
            "from_memory": stats.hits,
            "seconds": stats.wait_seconds,
        }


def _action_of(turn: RecordedTurn) -> dict[str, Any]:
    return {
        "kind": "run",
        "what": turn.question[:_QUESTION_CHARACTERS],
        "turn": turn.number,
        "when": turn.when,
        "characters": _size(turn.ranges),
        "ranges": (turn.received or turn.ranges)[:_SHOWN_RANGES],
        "gets": turn.gets,
        "bytes": turn.size_bytes,
    }


def _size(ranges: list[tuple[int, int]]) -> int:
    return sum(stop - start for start, stop in ranges)
