"""The results of a search by words: a `Passage` for each match, and `Passages`, a list that can be printed."""

from __future__ import annotations

from typing import NamedTuple


class _Passage(NamedTuple):
    start: int
    """The first character of the passage in the text."""
    stop: int
    line: int
    """The number of the passage's first line in the searched text, from 1."""
    document: str | None
    """The name of its document; None between documents, and in a text without documents."""
    score: float
    text: str


class Passage(_Passage):
    """A few lines of the text. As a tuple it is `(start, stop, line, document, score, text)`."""

    document_line: int | None = None
    """The number of the passage's first line in its document, from 1; None without a document."""

    @property
    def place(self) -> str:
        """The place to open in an editor: `DOCUMENT:LINE`, or the line of a text without documents."""
        return f"{self.document}:{self.document_line}" if self.document is not None else str(self.line)


class Passages(list[Passage]):
    """Passages, best first, and what was left unread. Prints one passage a line."""

    note = ""
    """How many frames that may hold a better passage were not read, and how to read them; empty if all were."""

    def __str__(self) -> str:
        rows = [f"{item.place}: {' '.join(item.text.split())}" for item in self]
        return "\n".join([*rows, *([f"[{self.note}]"] if self.note else [])])
