"""`DocumentsByPlace`: the part of `Monocontext.documents` that searches use. They may not import its class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from monocontext.engine.documents import DocumentTable
from monocontext.format.documents import Document


class DocumentsByPlace(Protocol):
    """The documents of a text, found by a character of it."""

    @property
    def count(self) -> int: ...

    @property
    def table(self) -> DocumentTable: ...

    def at(self, character: int) -> Document | None: ...

    def ending_at(self, character: int) -> Document | None: ...

    def records(self) -> Iterator[Document]: ...

    def edges(self, start: int, stop: int) -> Iterator[int]: ...
