"""Fetch data ahead of a caller's reads. Only `read_ahead` requests anything.

`streams` predicts the next reads from earlier ones; `routes` turns reads into frames.
"""

from __future__ import annotations

from typing import Literal

from monocontext.engine.prefetch.streams import Read, Streams

Prefetch = Literal["all", "code", "history", "off"]
"""The sources of read-ahead: the code, the reads before, both, or neither."""

__all__ = ["Prefetch", "Read", "Streams"]
