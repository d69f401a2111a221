"""Make a `Monocontext` of a `str`, for code that takes no `str`."""

from __future__ import annotations

import uuid

from monocontext.stores.memory import MemoryStore, forget
from monocontext.text.monocontext import Monocontext
from monocontext.writing.publish import publish


def wrap_str(value: str) -> Monocontext:
    """A `Monocontext` with this text, in the memory of this process for as long as it is referenced."""
    name = f"wrapped-{uuid.uuid4().hex}"
    store = MemoryStore(name)
    publish(value, store, filters=False)
    text: Monocontext = Monocontext.open(store)
    forget(name)  # the objects go with the text
    return text
