"""A reader served over a channel: the host keeps keys, caches, filters and read-ahead, a worker elsewhere has the text.

`ReaderServer` answers a narrow set of requests, bytes in and bytes out. `ServedReader` asks them, and is what texts,
views, searches and patterns of the worker stand on, as they stand on `Reader` in process. Who carries the bytes is
nobody's business here.
"""

from __future__ import annotations

from monocontext.served.reader import ServedReader
from monocontext.served.server import ReaderServer

__all__ = ["ReaderServer", "ServedReader"]
