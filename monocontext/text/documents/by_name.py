"""`context.documents`: the documents of a text by name, by number and by character."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from monocontext.engine.documents import DocumentTable
from monocontext.format.documents import Document
from monocontext.options import suggestion
from monocontext.text.source import Span, StoredSource

Text = TypeVar("Text")

_NAMES_IN_REPR = 3
_MOST_SEARCHED_NAMES = 100_000  # above this many documents, an error suggests no similar names
_MOST_GAP = 1 << 16
"""Documents are read together if the text between them has at most as many characters as they have, plus these."""


class Documents(Mapping[str, Text]):
    """A mapping from the name of each document to its text, a part of the context. Immutable, safe for use by many
    threads.

    Of several documents with one name, the last one counts, at the position of the first, as in a `dict` of the pairs.
    GETs with nothing cached: at most 2 to find a name if one upload wrote all documents; 1 for 4,096 in an iteration.
    """

    def __init__(self, source: StoredSource, view_of: Callable[[Span], Any]):
        """`view_of` makes a `Monocontext` of a part of the source."""
        self.source = source
        self._view_of = view_of
        self._numbers: dict[str, int] | None = None

    @property
    def table(self) -> DocumentTable:
        """The reader's table (no GET)."""
        return self.source.reader.documents

    @property
    def count(self) -> int:
        """The number of all documents, of which several may have one name (no GET)."""
        return self.table.count

    @property
    def numbers(self) -> Mapping[str, int] | None:
        """Document numbers by name, in the order of the mapping; None where no name occurs twice.

        No GET where one upload wrote all documents and their names are distinct; else 1 GET for 4,096 documents, once.
        """
        if self.table.name_count == self.count:
            return None
        if self._numbers is None:
            numbers: dict[str, int] = {}
            for page in self.table.pages():
                numbers.update(zip(page.names(), range(page.first, page.first + len(page)), strict=True))
            self._numbers = numbers
        return self._numbers

    def __len__(self) -> int:
        """The number of distinct names (no GET if one upload wrote all documents; else those of `numbers`)."""
        if self.table.name_count is not None:
            return self.table.name_count
        numbers = self.numbers
        return self.count if numbers is None else len(numbers)

    def __iter__(self) -> Iterator[str]:
        numbers = self.numbers
        if numbers is not None:
            return iter(numbers)
        return (name for page in self.table.pages() for name in page.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.number_of(name) is not None

    def __getitem__(self, name: str) -> Text:
        return self._view(self.record(name))

    def _view(self, record: Document) -> Text:
        return cast(Text, self._view_of(Span(self.source, record.start, record.stop)))

    def record(self, name: str) -> Document:
        """The record of the document `name` (at most 2 GETs if one upload wrote all documents). Raises `KeyError`."""
        number = self.number_of(name) if isinstance(name, str) else None
        if number is None:
            raise UnknownDocument(name, self)
        return self.table.document(number)

    def number_of(self, name: str) -> int | None:
        """The number of the last document with this name; None if no document has it."""
        return self.table.find(name) if self._numbers is None else self._numbers.get(name)

    @property
    def names(self) -> KeysView[str]:
        """The names, in the order of the documents; the same as `keys()` (1 GET for 4,096 documents)."""
        return self.keys()

    def metadata(self, name: str) -> dict[str, Any]:
        """The metadata of the document `name` (at most 2 GETs if one upload wrote them all). Raises `KeyError`."""
        return self.metadata_of(self.record(name).number)

    def metadata_of(self, number: int) -> dict[str, Any]:
        """The metadata of the document `number` (at most 1 GET)."""
        page = self.table.page_of_document(number)
        return page.metadata(number - page.first)

    def at(self, character: int) -> Document | None:
        """The document that contains a character of the text; None between documents (at most 1 GET)."""
        [number] = self.table.first_ending_after([character])
        if number == self.count:
            return None
        result = self.table.document(number)
        return result if result.start <= character else None

    def ending_at(self, character: int) -> Document | None:
        """The document that ends at `character`, if its text does not end in a newline (at most 2 GETs)."""
        document = self.at(character - 1) if character else None
        is_end = document and document.stop == character and self.source.read(character - 1, character) != "\n"
        return document if is_end else None

    def edges(self, start: int, stop: int) -> Iterator[int]:
        """The characters in [start, stop) at which a document begins, or at which one ends and text outside all
        documents follows (1 GET for 4,096 documents)."""
        [number] = self.table.first_ending_after([max(0, start - 1)])
        end = self.table.document(number - 1).stop if number else None
        while number < self.count:
            document = self.table.document(number)
            if end is not None and document.start > end + 1 and start <= end < stop:
                yield end
            if start <= document.start < stop:
                yield document.start
            if document.start >= stop:
                return
            end = document.stop
            number += 1

    def records(self) -> Iterator[Document]:
        """All documents, in the order of the text (1 GET for 4,096 documents)."""
        for page in self.table.pages():
            yield from (page[i] for i in range(len(page)))

    def read(self, number: int) -> Any:
        """The document `number` as a `str`; above `materialize_limit` as a view."""
        return cast(Any, self._view(self.table.document(number)))[:]

    def read_all(self, numbers: Sequence[int]) -> list[Any]:
        """The texts of the documents `numbers`. Neighbours are read as one `str`, so the caller limits the sum."""
        records = [self.table.document(number) for number in numbers]
        first = min((record.start for record in records), default=0)
        stop = max((record.stop for record in records), default=0)
        if stop - first > 2 * sum(map(len, records)) + _MOST_GAP:
            return [self.read(number) for number in numbers]
        text = self.source.read(first, stop)
        return [text[record.start - first : record.stop - first] for record in records]

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, Documents) else super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """The number of documents and the first names (at most 1 GET)."""
        if not self.count:
            return "<no documents>"
        first = ", ".join(map(repr, islice(self, _NAMES_IN_REPR)))
        more = ", ..." if len(self) > _NAMES_IN_REPR else ""
        return f"<{len(self):,} document{'s' * (len(self) > 1)}: {first}{more}>"


class UnknownDocument(KeyError):
    """No document has this name. The message names similar ones (1 GET for 4,096 documents, when the message is read;
    none above 100,000 documents)."""

    def __init__(self, name: object, documents: Documents[Any]) -> None:
        super().__init__(name)
        self._documents = documents

    def __str__(self) -> str:
        name = self.args[0]
        near = ""
        if isinstance(name, str) and self._documents.count <= _MOST_SEARCHED_NAMES:
            in_folder = next((document for document in self._documents if document.endswith(f"/{name}")), None)
            near = f": did you mean {in_folder}?" if in_folder else suggestion(name, self._documents)
        return f"no document {name!r}{near}"
