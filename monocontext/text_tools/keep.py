"""The tool `keep`: make a document of a text that is too large for a prompt, for the other tools to read.

Frameworks read annotations as objects, so this module does not import `annotations`.
"""

import threading
import time
from collections.abc import Iterator
from posixpath import splitext

from monocontext.errors import InvalidEntry, ToolRefusal
from monocontext.memory.memory import Memory
from monocontext.text.monocontext import Monocontext
from monocontext.text_tools.outputs import Kept, ToolReply

KEPT = "/kept"  # the folder of kept texts in a shell
DAY_SECONDS = 86_400
_PURGE_SECONDS = 300.0  # the time between two purges: a LIST of a thousand entries costs as much as ten GETs
_HEAD_CHARACTERS = 500  # the beginning of the text in the reply
_MOST_NAME_CHARACTERS = 200
_MOST_CHARACTERS = 256 << 20  # the longest text
_MOST_NUMBER = 1000  # the most texts under one name, each with a number


class KeepTool:
    """The tool `keep`, whose texts are entries of a memory and expire as these do."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._text: Monocontext | None = None
        self._versions: list[tuple[str, str]] | None = None  # the keys and ETags of the entries in `_text`
        self._purged_at = float("-inf")  # when entries were last purged, by `time.monotonic`

    def keep(self, text: str, name: str, ttl_seconds: int = DAY_SECONDS) -> ToolReply[Kept]:
        """Keep a text that is too large for a prompt, such as the output of a tool, as a document for the other tools.

        The reply has the name, the size and the beginning of the document. If the name is taken, a number is added to
        it: nothing is overwritten.

        Args:
            text: The text; it ends with a newline, or gets one.
            name: A name such as build.log.
            ttl_seconds: Seconds after which the document is deleted; a day by default.
        """
        if not name.strip("/. ") or len(name) > _MOST_NAME_CHARACTERS or not name.isprintable():
            allowed = f"1 to {_MOST_NAME_CHARACTERS} printable characters, and not only slashes, dots and spaces"
            raise ToolRefusal(f"name must be {allowed}: {name[:80]!r}")
        if not 0 < len(text) <= _MOST_CHARACTERS:
            raise ToolRefusal(f"text must have 1 to {_MOST_CHARACTERS:,} characters, not {len(text):,}")
        if ttl_seconds < 1:
            raise ToolRefusal(f"ttl_seconds must be at least 1, not {ttl_seconds}")
        if time.monotonic() - self._purged_at > _PURGE_SECONDS:
            self._purged_at = time.monotonic()
            self._memory.purge()
        value = text if text.endswith("\n") else text + "\n"
        try:
            key = next((key for key in _keys(name) if self._memory.put_new(key, value, ttl_seconds)), None)
        except InvalidEntry as error:
            raise ToolRefusal(str(error)) from None
        if key is None:
            raise ToolRefusal(f"{_MOST_NUMBER:,} texts are already kept under the name {name}: give another name")
        kept = Kept(key, len(value.encode()), value.count("\n"), value[:_HEAD_CHARACTERS])
        reply = f"{key}: {kept.bytes:,} bytes, {kept.lines:,} lines, for {ttl_seconds:,} s\n{kept.head}"
        return ToolReply(reply, kept)

    def text(self) -> Monocontext:
        """The texts that are kept now, as documents (1 LIST). Returns the same object as long as they do not change."""
        with self._lock:
            versions = [(entry.key, entry.etag) for entry in self._memory.entries()]
            if self._text is None or versions != self._versions:
                self._text, self._versions = self._memory.context(documents=True), versions
            return self._text


def _keys(name: str) -> Iterator[str]:
    """Yield the keys to try for a name: `build.log`, `build-2.log`, ... up to `_MOST_NUMBER` of them."""
    stem, ending = splitext(name.rstrip("/"))  # of the last part of a path; `.env` has no ending
    yield stem + ending
    for number in range(2, _MOST_NUMBER + 1):
        yield f"{stem}-{number}{ending}"
