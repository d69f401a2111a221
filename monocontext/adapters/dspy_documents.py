"""The host's side of the `dspy` sandbox for a list or dict of documents.

Replies are about blocks of a thousand documents. So a loop over a million takes a thousand messages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

from monocontext.adapters.dspy_remote import Remote
from monocontext.format.filters.query import Literal, Query
from monocontext.text import regex
from monocontext.text.documents import DocumentDict, DocumentList
from monocontext.text.regex.plan import plan

_DOCUMENT_OPERATIONS = frozenset({"document", "lengths", "texts_from", "holding", "matching", "names", "number"})
_LIST_OPERATIONS = frozenset({"count", "index"})


class RemoteDocuments(Remote):
    """A lazy list or dict of documents, for sandboxes. These number the documents from 0, in the order of a loop.

    The methods for a block take its first document and its most documents.
    """

    def __init__(self, texts: DocumentList | DocumentDict, most_characters: int):
        super().__init__(texts, most_characters)
        self._texts = texts
        self._numbers: Any = texts._numbers if isinstance(texts, DocumentList) else None
        if self._numbers is None:
            numbers = texts.documents.numbers
            self._numbers = range(len(texts)) if numbers is None else list(numbers.values())

    def _operate(self, value: Any, name: str, arguments: list[Any]) -> Any:
        if value is not self._texts:
            return super()._operate(value, name, arguments)
        if name in _LIST_OPERATIONS and isinstance(value, DocumentList):
            return getattr(value, name)(*arguments)
        if name not in _DOCUMENT_OPERATIONS:
            raise AttributeError(name)
        return getattr(self, f"_{name}")(*arguments)

    def _document(self, at: int) -> Any:
        return self._texts.documents.lazy(self._numbers[at])

    def _block(self, start: int, most: int) -> range:
        return range(start, min(start + most, len(self._numbers)))

    def _lengths(self, start: int, most: int) -> list[int]:
        """The lengths of the documents of a block."""
        return [len(self._document(at)) for at in self._block(start, most)]

    def _texts_from(self, start: int, most: int) -> list[str]:
        """The texts of a block, or of its first documents if the texts are too long for one reply."""
        taken: list[int] = []
        characters = 0
        for at in self._block(start, most):
            characters += len(self._document(at))
            if characters > self._most and taken:
                break
            taken.append(self._numbers[at])
        return [self._part(text) for text in self._texts.documents.read_all(taken)]

    def _holding(self, start: int, most: int, sub: str) -> list[int]:
        """The documents of a block in which a text occurs."""
        return [at for at in self._candidates(start, most, Literal(sub)) if sub in self._document(at)]

    def _matching(self, start: int, most: int, pattern: str, flags: int) -> list[int]:
        """The documents of a block in which `re.search` finds something."""
        found = self._candidates(start, most, plan(re.compile(pattern, flags)).query)
        return [at for at in found if regex.search(pattern, self._document(at), flags) is not None]

    def _candidates(self, start: int, most: int, query: Query | None) -> list[int]:
        """The documents of a block that search filters leave. One look-up for the block: for one small document a
        search reads it instead."""
        texts = self._texts.documents
        records = [(at, texts.table.document(self._numbers[at])) for at in self._block(start, most)]
        first = min((record.start for _, record in records), default=0)
        stop = max((record.stop for _, record in records), default=0)
        found = texts.source.candidates(query, first, stop)
        if found is None:
            return [at for at, _ in records]
        regions = [(region.start, region.stop) for region in found.regions()]

        def is_in_region(begin: int, end: int) -> bool:
            before = bisect_left(regions, (end,))
            return before > 0 and regions[before - 1][1] > begin

        return [at for at, record in records if is_in_region(record.start, record.stop)]

    def _names(self, start: int, most: int) -> list[str]:
        """The names of the documents of a block."""
        table = self._texts.documents.table
        return [table.document(self._numbers[at]).name for at in self._block(start, most)]

    def _number(self, name: str) -> int | None:
        """The number of a document of a dict, by name; None if there is none."""
        number = self._texts.documents.number_of(name)
        if number is None or isinstance(self._numbers, range):
            return number
        return int(self._numbers.index(number))
