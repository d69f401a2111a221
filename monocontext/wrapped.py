"""A `str` as a `Monocontext`, for what takes only texts that are read in parts."""

from __future__ import annotations

import uuid

from monocontext.stores.memory import MemoryStore, forget
from monocontext.text import Monocontext
from monocontext.writer import publish


def wrapped(value: str) -> Monocontext:
    """The same text, kept in this process for as long as it is held; no other process can open it."""
    name = f"wrapped-{uuid.uuid4().hex}"
    store = MemoryStore(name)
    publish(value, store, filters=False)
    text: Monocontext = Monocontext.open(store)
    forget(name)  # the objects go with the text
    return text
