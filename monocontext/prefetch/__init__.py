"""What to read ahead of the one who reads: events in, ranges and bytes out. Pure: no I/O, no threads, no clock.

`streams` knows where reads go on, `hits` where searches found something, `thinktime` how much can be had while a model
thinks, `ledger` what was fetched ahead and not used yet. `monocontext.readahead` joins them with a reader.
"""

from __future__ import annotations

from typing import Literal, get_args

from monocontext.prefetch.hits import Hits
from monocontext.prefetch.ledger import Kind, Ledger
from monocontext.prefetch.streams import Read, Streams
from monocontext.prefetch.thinktime import Bandwidth, ThinkTime

Prefetch = Literal["all", "code", "history", "off"]
"""What is read ahead: what the code says and what was read before, one of these, or nothing."""


def checked(prefetch: Prefetch) -> Prefetch:
    """The same; `ValueError` for another word."""
    if prefetch not in get_args(Prefetch):
        raise ValueError(f"prefetch is 'all', 'code', 'history' or 'off', not {prefetch!r}")
    return prefetch


__all__ = ["Bandwidth", "Hits", "Kind", "Ledger", "Prefetch", "Read", "Streams", "ThinkTime", "checked"]
