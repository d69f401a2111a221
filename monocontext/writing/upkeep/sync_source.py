"""A source of a sync: a file or an object whose text becomes a document."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Protocol

from monocontext.errors import InvalidText
from monocontext.writing.decoding import HEAD_BYTES, is_binary, read_stream
from monocontext.writing.input_options import InputOptions


class SyncSource(Protocol):
    """A file or an object that is to be a document."""

    name: str
    facts: dict[str, Any]
    """What `sync` records in the document's metadata. `file`: values that change when the file changes, such as size
    and time."""

    def is_text(self, options: InputOptions) -> bool:
        """Whether an upload would include it: it is text, not binary."""
        ...

    def text(self, options: InputOptions) -> str | None:
        """Read its text. Returns None if an upload leaves the file out."""
        ...


def decode_source(data: bytes, name: str, options: InputOptions) -> str | None:
    """Decode the bytes of a source. Returns None if an upload leaves them out: if they are binary, or with
    `errors='skip'` in another encoding."""
    if is_binary(data[:HEAD_BYTES], options.encoding):
        return None
    try:
        return b"".join(text for text, _ in read_stream(BytesIO(data), name, options)).decode()
    except InvalidText:
        if options.errors != "skip":
            raise
        options.note(f"left out {name}, which is not {options.encoding}")
        return None
