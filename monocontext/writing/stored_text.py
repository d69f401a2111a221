"""The text of a root, committed or not, as a writer reads it to change it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from monocontext.engine.open import ContextHandle
from monocontext.errors import ForeignObject
from monocontext.format.index import Frame
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.stores.protocol import Store

_CACHE_BYTES = 64 << 20
"""The cache of the reader: an edit reads each frame to change it, and again for its filter column."""


class StoredText:
    """A root, the store of its context, and a reader of its text. Use it in a `with` block."""

    def __init__(
        self,
        store: Store,
        root: Manifest,
        *,
        allow: Iterable[str | os.PathLike[str]] = (),
        store_options: StoreOptions | None = None,
        progress: Callable[[int], None] = lambda read_bytes: None,
    ):
        """`progress` is called with the bytes of text that were read so far."""
        self.store, self.root = store, root
        self._allow, self._options = allow, store_options
        self._progress = progress
        self._read_bytes = 0
        self._context = ContextHandle(
            store, cache_bytes=_CACHE_BYTES, allow=allow, store_options=store_options, owns_store=False
        )
        self.reader = self._context.read(root)

    def __enter__(self) -> StoredText:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.reader.close()
        self._context.close()

    def after(self, root: Manifest) -> StoredText:
        """The text of another root of this context, with the same options. It has a `with` block of its own."""
        return StoredText(self.store, root, allow=self._allow, store_options=self._options, progress=self._progress)

    def get(self, key: str) -> bytes:
        return self.store.get(key).data

    def may_read(self, frame: Frame) -> bool:
        """Whether the object of a frame is below the context's place, or in an allowed one."""
        try:
            if "://" in frame.object:
                self._context.place(frame.object, self.root.sources)
        except ForeignObject:
            return False
        return True

    def frame(self, number: int) -> Frame:
        """The record of a frame (at most 1 GET, for its index page)."""
        return self.reader.frame(number)

    def frames(self, start: int, stop: int) -> Iterator[Frame]:
        """Yield the records of frames [start, stop) (1 GET for each index page)."""
        return map(self.frame, range(start, stop))

    def first_character(self, number: int) -> int:
        """The first character of a frame, or the length of the text for the number after the last frame."""
        return self.frame(number).start if number < self.root.frames else self.root.characters

    def first_byte(self, number: int) -> int:
        """The first byte of a frame in the text as UTF-8, or the length of that after the last frame."""
        return self.frame(number).start_byte if number < self.root.frames else self.root.text_bytes

    def texts(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the text of frames [start, stop) by frame, read at most some 32 MiB ahead."""
        if start < stop:
            for piece in self.reader.frames(self.first_character(start), self.first_character(stop)):
                yield piece.data

    def report(self, read_bytes: int) -> None:
        """Add to the bytes of text read so far, and pass the sum to `progress`."""
        self._read_bytes += read_bytes
        self._progress(self._read_bytes)
