"""List the texts of a context that an answer can cite, and look up the lines and documents of their characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from monocontext.text.lazy_kinds import LazyContext, LazyMapping, LazyText

_WEB_URL = re.compile(r"https?://[^\s<>\"]+")  # "https://example.org/a?b=1", but not "example.org" or "https://a b"


@dataclass(frozen=True, slots=True)
class TextPart:
    """One text of a context. The offsets that its methods take and return count its own characters."""

    name: str | None  # its key in a dict of texts; None if the context is one text
    text: Any  # a `str` or a lazy text
    start: int  # the offset of its first character in the context, in which the texts of a dict follow one another

    def overlap(self, start: int, stop: int) -> range:
        """The offsets of this text that are in the range [start, stop) of the context; empty if none are."""
        return range(max(0, start - self.start), min(len(self.text), stop - self.start))

    def line_of(self, offset: int) -> int:
        """The number of the line with the character at `offset`, from 1 (1 GET, if the character is not cached)."""
        text = self.text
        return text.count("\n", 0, offset) + 1 if isinstance(text, str) else len(text.view(0, offset + 1).lines)

    def document_at(self, offset: int) -> Any:
        """The document with the character at `offset`; None if there is none."""
        return None if (documents := self._documents()) is None else documents.at(offset)

    def url_at(self, offset: int) -> str | None:
        """The `url` in the metadata of the document with the character at `offset`, else its name if it is a URL."""
        documents, document = self._documents(), self.document_at(offset)
        if document is None:
            return None
        url = documents.metadata_of(document.number).get("url", document.name)
        return url if isinstance(url, str) and _WEB_URL.fullmatch(url) else None

    def split_by_document(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the range [start, stop) in pieces, cut where a document begins or ends."""
        documents = self._documents()
        cuts = documents.edges(start + 1, stop) if documents is not None and start < stop else ()
        for cut in cuts:
            yield start, cut
            start = cut
        if start < stop:
            yield start, stop

    def _documents(self) -> Any:
        """The documents of the text; None for a `str`, a view of a part of a text, and a derived text."""
        try:
            return None if isinstance(self.text, str) else self.text.documents
        except ValueError:  # a view or a derived text
            return None


def text_parts(context: object) -> list[TextPart]:
    """The texts of a context: the context itself, the text of its documents, or the texts of a dict in which one is
    lazy. Empty for any other context."""
    if isinstance(context, (str, LazyText)):
        return [TextPart(None, context, 0)]
    if isinstance(context, (LazyMapping, LazyContext)):
        return [TextPart(None, context.text, 0)]  # type: ignore[union-attr] # both have it
    if not isinstance(context, dict) or not any(isinstance(value, LazyContext) for value in context.values()):
        return []
    texts = [(str(name), value) for name, value in context.items() if isinstance(value, (str, LazyText))]
    starts = accumulate((len(text) for _, text in texts), initial=0)
    return [TextPart(name, text, start) for (name, text), start in zip(texts, starts, strict=False)]
