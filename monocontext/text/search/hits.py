"""The results of `grep`: a `Hit` for each line with a match, and `GrepHits`, an iterator that can be printed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from monocontext.format.documents import Document
    from monocontext.text.documents.by_name import Documents

SHOWN_HITS = 20  # the most hits that a printed iterator shows
SHOWN_CHARACTERS = 200  # the most characters of each line that it shows


class _Line(NamedTuple):
    offset: int
    """The character of the text at which the first match in the line begins."""
    line_number: int
    """The number of the line in the searched text, from 1."""
    line: str
    r"""The line, without the `\n` at its end."""


class Hit(_Line):
    """A line with a match. As a tuple it is `(offset, line_number, line)`."""

    _documents: Documents[Any] | None = None

    def __getstate__(self) -> None:
        """Pickle the tuple alone: the documents belong to a text that is open in this process."""

    @property
    def document(self) -> str | None:
        """The name of the line's document; None between documents, and in a text without them (at most 1 GET)."""
        result = self._document
        return result.name if result else None

    @property
    def document_line(self) -> int | None:
        """The number of the line in its document, from 1; None where `document` is None (at most 1 GET)."""
        result = self._document
        return self.line_number - result.first_line if result else None

    @property
    def _document(self) -> Document | None:
        if self._documents is None:
            return None
        # An empty match may be at the end of a document's last line.
        return self._documents.at(self.offset) or self._documents.ending_at(self.offset)


new_hit: Callable[[tuple[int, int, str]], Hit] = partial(tuple.__new__, Hit)
"""Makes a `Hit` of a tuple in half the time that `Hit(...)` takes: a frequent word has millions of hits."""


class GrepHits(Iterator[Hit]):
    """An iterator of hits, each found once, on demand. Printing it shows the next hits and keeps them."""

    def __init__(self, hits: Iterator[Hit], documents: Documents[Any] | None = None):
        self._hits = hits
        self._documents = documents
        self._shown: deque[Hit] = deque()
        """Hits that were shown and not yet yielded."""
        self._has_yielded = False

    def __next__(self) -> Hit:
        self._has_yielded = True
        hit = self._shown.popleft() if self._shown else next(self._hits)
        if self._documents is not None:
            hit._documents = self._documents
        return hit

    def __str__(self) -> str:
        """The next hits, one per line (GETs: those of iterating up to the last of them)."""
        self._shown += islice(self._hits, SHOWN_HITS + 1 - len(self._shown))
        return self._summary() or ("<no more hits: each is yielded once>" if self._has_yielded else "<no hits>")

    def __repr__(self) -> str:
        """The hits that `str` has shown and no iteration has taken (no GET, since debuggers call it)."""
        return self._summary() or "<hits of a grep: print or iterate it>"

    def _summary(self) -> str:
        lines = [_format_hit(hit) for hit in islice(self._shown, SHOWN_HITS)]
        if len(self._shown) > SHOWN_HITS:
            lines.append("[there are more hits: iterate, as in list(hits), or pass max_hits]")
        return "\n".join(lines)


def _format_hit(hit: Hit) -> str:
    if len(hit.line) <= SHOWN_CHARACTERS:
        return repr(hit)
    line = f"{hit.line[:SHOWN_CHARACTERS]!r}... [{len(hit.line):,} characters]"
    return f"Hit(offset={hit.offset}, line_number={hit.line_number}, line={line})"
