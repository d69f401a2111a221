"""The texts of a context in whose characters sources are given, with their lines and documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from monocontext.text.lazy_kinds import LazyContext, LazyMapping, LazyText

_WEB = re.compile(r"https?://[^\s<>\"]+")  # a URL that can be a link


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text that sources of an answer refer to. Offsets count its own characters."""

    name: str | None  # its key in a dict of texts
    text: Any  # a `str` or a `Monocontext`
    start: int  # the offset of its first character, where the texts of a dict stand one after another

    def line_of(self, character: int) -> int:
        """The number of the line with a character, from 1."""
        text = self.text
        return text.count("\n", 0, character) + 1 if isinstance(text, str) else len(text.view(0, character + 1).lines)

    def document_at(self, character: int) -> Any:
        """The document with a character; None without documents."""
        return None if (documents := self._documents()) is None else documents.at(character)

    def url_at(self, character: int) -> str | None:
        """The web address of the document with a character, from its metadata (`url`) or its name."""
        if (documents := self._documents()) is None or (document := documents.at(character)) is None:
            return None
        url = documents.metadata_of(document.number).get("url", document.name)
        return url if isinstance(url, str) and _WEB.fullmatch(url) else None

    def by_document(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """A range, divided where documents begin and end."""
        documents = self._documents()
        edges = documents.edges(start + 1, stop) if documents is not None and start < stop else ()
        for edge in edges:
            yield start, edge
            start = edge
        if start < stop:
            yield start, stop

    def _documents(self) -> Any:
        """The documents of the text; None for a `str`, and for a text that is a part of another or derived from one."""
        try:
            return None if isinstance(self.text, str) else self.text.documents
        except ValueError:
            return None


def text_parts(context: object) -> list[TextPart]:
    """The texts that the sources of an answer refer to: the context itself, the text of its documents, or, if a value
    of a dict is lazy, its texts one after another. Empty for other contexts."""
    if isinstance(context, (str, LazyText)):
        return [TextPart(None, context, 0)]
    if isinstance(context, (LazyMapping, LazyContext)):
        return [TextPart(None, context.text, 0)]  # type: ignore[union-attr] # both have it
    if not isinstance(context, dict) or not any(isinstance(value, LazyContext) for value in context.values()):
        return []
    texts = [(str(name), value) for name, value in context.items() if isinstance(value, (str, LazyText))]
    starts = accumulate((len(text) for _, text in texts), initial=0)
    return [TextPart(name, text, start) for (name, text), start in zip(texts, starts, strict=False)]
