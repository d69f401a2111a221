"""Copy text into a root: all of a small text, or the two ends of a larger one, so that one GET opens and reads it.

A text that is written at once is copied whole if its stored form has at most 4 MiB, which take less time to read than a
second request. Each append would write the copy again, so the limit for a text that grows is 32 KiB.
"""

from __future__ import annotations

import base64
from typing import Any

import zstandard

from monocontext.errors import DamagedData
from monocontext.format.codec import decode
from monocontext.format.index import Page
from monocontext.format.manifest import Manifest
from monocontext.records import dataclass, field

MOST_TEXT_BYTES = 4 << 20  # the most stored text in the root of a text that is written at once
MOST_GROWN_BYTES = 32 << 10  # the most stored text in the root of an append
END_BYTES = 16 << 10  # the most text of an end, in bytes of UTF-8: models look at the first 500 to 10,000 characters
LARGEST_END_BYTES = 64 << 10  # the most text of an end that a reader accepts

Copies = dict[str, Any]  # the fields `text`, `head` and `tail` of a root


@dataclass(slots=True)
class Gathered:
    """The text of neighbouring frames that a root may copy, collected frame by frame."""

    stored: bytes | bytearray | None = field(default_factory=bytearray)
    """The frames as they are stored; `None` if they are too large for a root."""
    head: bytes = b""
    """The start of the text of the frames; empty if there are none."""
    tail: bytes = b""
    """The end of that text."""

    def add(self, text: bytes, stored: bytes) -> None:
        """Add the next frame: its text, and its stored form."""
        self.extend(Gathered(stored, text, text))

    def extend(self, other: Gathered) -> None:
        """Add the frames of `other`, which follow these."""
        if self.stored is None or other.stored is None or len(self.stored) + len(other.stored) > MOST_TEXT_BYTES:
            self.stored = None
        else:
            self.stored += other.stored
        if len(self.head) < END_BYTES:
            self.head = (self.head + other.head)[: END_BYTES + 4]  # with all bytes of a character at the limit
        joined = other.tail if len(other.tail) >= END_BYTES else self.tail + other.tail
        self.tail = joined[max(len(joined) - END_BYTES, 0) :]


def copies_for(base: Manifest | None, added: Gathered, *, may_be_whole: bool) -> Copies:
    """The copies for a root whose text is that of `base` (None: empty), followed by `added`. `may_be_whole`: the root
    has the records of all frames, so it may have a copy of all text. Text outside the context must not be in `added`:
    a read of it must fail once its object is replaced."""
    if base is None or not base.frames:
        if may_be_whole and added.stored is not None:
            return whole_copy(bytes(added.stored))
        return end_copies(added.head, added.tail)
    if not base.text:
        return {"text": "", "head": base.head, "tail": end_copies(b"", read_end(base.tail) + added.tail)["tail"]}
    stored = text_in(base)
    more = added.stored if may_be_whole else None
    if more is not None and (not more or len(stored) + len(more) <= MOST_GROWN_BYTES):
        return whole_copy(stored + more)
    text = decode_text(base)
    return end_copies(text + added.head, text + added.tail)


def whole_copy(stored: bytes) -> Copies:
    """The copy of a whole text, given its frames as they are stored, end to end."""
    return {"text": base64.b64encode(stored).decode(), "head": "", "tail": ""}


def end_copies(head: bytes, tail: bytes, most_bytes: int = 6000) -> Copies:
    """The copies of the two ends of a text, given its start and its end: each is cut to `END_BYTES`, to half of that,
    and so on, until it takes at most `most_bytes` compressed. By default both take less than 16 KiB of base64."""
    result = {"text": "", "head": "", "tail": ""}
    for name, text in ("head", head), ("tail", tail):
        size = min(len(text), END_BYTES)
        while size and not result[name]:
            part = text[:size] if name == "head" else text[len(text) - size :]
            part = part.decode(errors="ignore").encode()  # without a part of a character
            stored = zstandard.ZstdCompressor(level=9).compress(part)
            if part and len(stored) <= most_bytes:
                result[name] = base64.b64encode(stored).decode()
            size //= 2
    return result


def shorter_end_copies(root: Manifest) -> Copies:
    """Copies of about 2,000 characters of each end of the text, cut from the copies in `root`."""
    return end_copies(read_end(root.head), read_end(root.tail), 800)


def text_in(root: Manifest, start: int = 0, stop: int | None = None) -> bytes:
    """Bytes [start, stop) of the copy of all text in a root: its stored frames, end to end. Raises `DamagedData`."""
    if stop is None:
        return _bytes(root.text)[start:]
    first = start // 3  # 4 characters of base64 are 3 bytes
    return _bytes(root.text[4 * first : -(-stop // 3) * 4])[start - 3 * first : stop - 3 * first]


def decode_text(root: Manifest) -> bytes:
    """The text of a root that contains a copy of all of it, in UTF-8. Raises `DamagedData`."""
    assert root.last_page is not None  # checked by `Manifest.check`
    stored, page = text_in(root), Page(root.last_page, root.pages[-1], None)
    starts = page.stored_starts
    return b"".join(decode(stored[starts[i] : starts[i + 1]], page[i]) for i in range(len(page)))


def read_end(copy: str) -> bytes:
    """The head or tail of a text, in UTF-8, from its `copy` in the root. Raises `DamagedData`."""
    if not copy:
        return b""
    stored = _bytes(copy)
    try:
        size = zstandard.frame_content_size(stored)
        if not 0 < size <= LARGEST_END_BYTES:
            expected = f"expected 1 to {LARGEST_END_BYTES:,} bytes, its header says {size:,}"  # -1 if no number
            raise DamagedData(f"the head or tail in the root: {expected}")
        text: bytes = zstandard.ZstdDecompressor().decompress(stored)
        text.decode()
    except (zstandard.ZstdError, UnicodeDecodeError) as error:
        raise DamagedData(f"the head or tail in the root is not text: {error}") from None
    return text


def _bytes(copy: str) -> bytes:
    try:
        return base64.b64decode(copy, validate=True)
    except ValueError as error:
        raise DamagedData(f"a copy of text in the root is not base64: {error}") from None
