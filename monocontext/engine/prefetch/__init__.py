"""Decide what to read ahead of a caller. Only `read_ahead` does I/O.

`streams` predicts the next reads, `hits` knows where searches found something, `think_time` how long a model thinks,
`ledger` what was prefetched and not yet used. `read_ahead` joins them with a fetcher.
"""

from __future__ import annotations

from typing import Literal

from monocontext.engine.prefetch.hits import HitWindows
from monocontext.engine.prefetch.ledger import Kind, Ledger
from monocontext.engine.prefetch.streams import Read, Streams
from monocontext.engine.prefetch.think_time import ThinkTime

Prefetch = Literal["all", "code", "history", "off"]
"""The sources of read-ahead: the code, the reads before, both, or neither."""

__all__ = ["HitWindows", "Kind", "Ledger", "Prefetch", "Read", "Streams", "ThinkTime"]
