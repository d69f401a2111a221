"""The documents of a context as a `list` of texts, and as a `dict` of names to texts.

Items are real `str`, and above the limit views. A loop reads all documents in order; `context.text.grep` and `search`
read only those that search filters cannot rule out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from itertools import islice
from operator import attrgetter, methodcaller
from typing import Any, SupportsIndex, overload

from monocontext.errors import NotPicklable
from monocontext.text.documents.by_name import Documents
from monocontext.text.lazy_kinds import LazyContext, LazyItems, LazyMapping

_SHOWN_NAMES = 5  # the most names in a description for a model
_NAME_CHARACTERS = 60  # the longest name there
_GROUP_CHARACTERS = 1 << 20  # a loop reads documents in groups of at most this many characters


class _Shape(LazyContext, Sized):
    """What the list and the dict of documents share: the methods that the host of a REPL calls."""

    _shape: str
    """"list" or "dict"."""
    text: Any
    """The same context as one `Monocontext`, which this module may not import."""
    documents: Documents[Any]

    url: Any = property(attrgetter("text.url"))
    generation: Any = property(attrgetter("text.generation"))
    stats: Any = property(attrgetter("text.stats"))
    thinking: Any = property(attrgetter("text.thinking"))
    reads_since: Any = property(attrgetter("text.reads_since"))
    handed_since: Any = property(attrgetter("text.handed_since"))
    repl_namespace: Any = property(attrgetter("text.repl_namespace"))

    def serve(self) -> Any:
        """A server of this context alone, for a process that must not have its credentials; see `Monocontext.serve`."""
        return self.text.serve().with_steps((("_shaped", [self._shape]),))

    def describe(self) -> dict[str, str]:
        """A description for a model: `kind`, `sentence`, `access` (1 GET for the first names)."""
        first = islice(self.documents.records(), _SHOWN_NAMES)
        names = ", ".join(repr(record.name[:_NAME_CHARACTERS]) for record in first)
        size = f"{self.documents.table.text_bytes:,} bytes together, kept in storage and read where you look"
        sentence = _SENTENCE[self._shape].format(count=len(self), size=size, names=names)
        return {"kind": f"lazy {self._shape}", "sentence": sentence, "access": _ACCESS[self._shape]}

    def _repr_html_(self) -> Any:
        """For notebooks: size, URL and number of documents of the whole text (no GET)."""
        return self.text._html(type(self).__name__)

    def close(self) -> None:
        """Release memory and connections; later reads raise `ContextClosed`. Idempotent."""
        self.text.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return methodcaller("_shaped", self._shape), (self.text,)


_SENTENCE = {
    "list": "a list of {count:,} documents, all str, {size}; the first are named {names}",
    "dict": "a dict of {count:,} documents by name, all str, {size}; the first keys are {names}",
}
_SEARCH = """\
- To search, `context.text.grep(pattern)` finds lines that match, and `context.text.search('words')` passages; both \
read only documents that a search index cannot rule out. `context.text` is all of it as one str, and \
`context.documents.at(offset)` gives the document of an offset: `.number`, `.name`, `.start`.
- A loop over all documents streams: fine once, not in a loop."""
_ACCESS = {
    "list": f"""\
It reads like a list of str. `len(context)` and `context[i]` are cheap; a slice is a real list.
{_SEARCH}""",
    "dict": f"""\
It reads like a dict of str to str. `len(context)`, `context[name]` and `name in context` are cheap.
{_SEARCH}""",
}


class DocumentList(_Shape, LazyItems, Sequence[str]):
    """The documents of a context as a `list[str]`. Immutable, safe for use by many threads."""

    _shape = "list"

    def __init__(self, text: Any, documents: Documents[Any], numbers: range | None = None):
        self.text = text
        self.documents = documents
        self._numbers = range(documents.count) if numbers is None else numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Any]:
        """The documents in order, read in groups of about a million characters."""
        group: list[int] = []
        characters = 0
        for number in self._numbers:
            characters += len(self.documents.table.document(number))
            if characters > min(_GROUP_CHARACTERS, self.text._limit):
                yield from self.documents.read_all(group)
                yield self.documents.read(number)
                group, characters = [], 0
            else:
                group.append(number)
        yield from self.documents.read_all(group)

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[str]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        """A document as a `str` (above the limit a view), or a real list of documents (above the limit a lazy one)."""
        if isinstance(key, slice):
            numbers, characters = self._numbers[key], 0
            for number in numbers:
                characters += len(self.documents.table.document(number))
                if characters > self.text._limit:
                    return DocumentList(self.text, self.documents, numbers)
            return self.documents.read_all(numbers)
        if not hasattr(key, "__index__"):
            raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}")
        try:
            number = self._numbers[key]
        except IndexError:
            raise IndexError("list index out of range") from None
        return self.documents.read(number)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._numbers != range(self.documents.count):
            raise NotPicklable(f"{self!r} is only a part of the documents: pickle the whole list, or list(part)")
        return super().__reduce__()

    def __repr__(self) -> str:
        return f"<DocumentList of {len(self):,} documents; a lazy list of str: index, slice or iterate it>"


class DocumentDict(_Shape, LazyMapping):
    """The documents of a context as a `dict[str, str]`. Immutable, safe for use by many threads.

    Of several documents with one name, the last one counts, at the position of the first.
    """

    _shape = "dict"

    def __init__(self, text: Any, documents: Documents[Any]):
        self.text = text
        self.documents = documents

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[str]:
        return iter(self.documents)

    def __contains__(self, name: object) -> bool:
        hash(name)
        return name in self.documents

    def __getitem__(self, name: str) -> Any:
        """A document as a `str`; above the limit as a view. Raises `KeyError`."""
        hash(name)
        return self.documents.read(self.documents.record(name).number)

    def __repr__(self) -> str:
        return f"<DocumentDict of {self.documents.count:,} documents; a lazy dict of str: look names up or iterate it>"


def shaped(text: Any, shape: str) -> DocumentList | DocumentDict:
    """The documents of a context as a list or a dict.

    Raises `ValueError` if it has no documents, or, for a dict, if two documents of one upload have the same name (at
    most 1 GET).
    """
    documents = text.documents
    if not documents.count and len(text):
        raise ValueError(f"{text.url} is one text without documents: open it without shape, or upload it as documents")
    if shape == "list":
        return DocumentList(text, documents)
    if documents.table.first_duplicate is not None:
        name = documents.table.document(documents.table.first_duplicate).name
        raise ValueError(
            f"{text.url}: several documents are named {name!r}, so it cannot be a dict: open it with shape='list'"
        )
    return DocumentDict(text, documents)
