"""Fetch data ahead of a caller's reads. Only `read_ahead` requests anything.

`streams` predicts the next reads from earlier ones, `hits` and `names` from what searches found; `routes` turns reads
into frames. `think_time` estimates how long a model thinks; `ledger` limits the bytes that are prefetched and not used.
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
