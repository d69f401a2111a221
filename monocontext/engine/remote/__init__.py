"""Serve a reader over a channel: the host keeps keys, caches, filters and read-ahead; a worker has the text.

`ReaderServer` answers six verbs, bytes in and bytes out. `ServedReader` sends them. Texts, views, searches and patterns
of the worker use it as they use a `Reader` in the same process. A runner carries the bytes.
"""

from __future__ import annotations

from monocontext.engine.remote.reader import ServedReader
from monocontext.engine.remote.server import ReaderServer

__all__ = ["ReaderServer", "ServedReader"]
