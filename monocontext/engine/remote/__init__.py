"""Serve a reader over a channel: the host keeps the keys, caches, filters and read-ahead; a worker reads the text.

`ServedReader`, in the worker, sends requests with six verbs as bytes, and `ReaderServer`, in the host, answers them.
Texts, views, searches and patterns use a `ServedReader` as they use a `Reader`. A runner carries the bytes.
"""

from __future__ import annotations

from monocontext.engine.remote.reader import ServedReader
from monocontext.engine.remote.server import ReaderServer

__all__ = ["ReaderServer", "ServedReader"]
