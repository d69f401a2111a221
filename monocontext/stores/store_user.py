"""Define the base class of objects that use a store, such as `Memory`, and that close it if they opened it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from monocontext.stores import open_store
from monocontext.stores.protocol import Store


class StoreUser:
    """An object that uses a store, and closes it if it opened it."""

    def __init__(self, store: Store, *, owns_store: bool = False) -> None:
        if not callable(getattr(store, "put", None)):
            name = type(self).__name__
            raise TypeError(f"{name}(...) takes a store, not {store!r:.80}: {name}.open(...) takes a URL or a path")
        self.store = store
        self._owns_store = owns_store

    @classmethod
    def _open_at(cls, place: str | os.PathLike[str] | Store, store_options: Mapping[str, Any]) -> Self:
        """An object that uses an open store, or that opens and owns the store at a URL or path (no request)."""
        if not isinstance(place, str | os.PathLike):
            return cls(place)
        return cls(open_store(place, **store_options), owns_store=True)

    @property
    def url(self) -> str:
        return self.store.url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store if this object opened it. Idempotent."""
        if self._owns_store:
            self.store.close()
