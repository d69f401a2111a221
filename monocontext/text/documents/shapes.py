"""The documents of a context as a `list` of texts, and as a `dict` of names to texts.

Each operation gives what the real list or dict gives. Indices and slices up to the limit give real `str`. A loop gives
lazy texts, which read only what is used of them: a search reads only the documents that filters cannot rule out.
"""

from __future__ import annotations

import operator
import sys
from abc import abstractmethod
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, overload

from monocontext.errors import NotPicklable
from monocontext.text.documents.by_name import Documents
from monocontext.text.lazy_kinds import LazyContainer, LazyItems, LazyMapping, LazyText, is_collected
from monocontext.text.str_methods import StrLike

if TYPE_CHECKING:
    from monocontext.engine.remote.server import ReaderServer
    from monocontext.engine.stats import Stats
    from monocontext.text.namespace.kit import NamespacePatch

_SHOWN_NAMES = 5
"""The most names in a description for a model."""
_NAME_CHARACTERS = 60
"""The longest name there."""


class WholeText(Protocol):
    """The part of `Monocontext` that a shape uses."""

    _limit: int

    def __len__(self) -> int: ...

    @property
    def documents(self) -> Documents[Any]: ...

    @property
    def url(self) -> str: ...

    @property
    def generation(self) -> int: ...

    @property
    def stats(self) -> Stats: ...

    def thinking(self) -> AbstractContextManager[object]: ...

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]: ...

    def handed_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]: ...

    def serve(self) -> ReaderServer: ...

    def close(self) -> None: ...

    def _html(self, kind: str) -> str: ...


class _Shape:
    """A context in the shape of a list or dict: the methods that its host calls."""

    _shape: str
    """"list" or "dict"."""
    text: WholeText
    """The same context as one text."""
    documents: Documents[Any]

    @property
    def url(self) -> str:
        return self.text.url

    @property
    def generation(self) -> int:
        return self.text.generation

    @property
    def stats(self) -> Stats:
        return self.text.stats

    def thinking(self) -> AbstractContextManager[object]:
        """A context manager to enter while you wait for a model; see `Monocontext.thinking`."""
        return self.text.thinking()

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        """See `Monocontext.reads_since`; ranges count in the whole text."""
        return self.text.reads_since(mark)

    def handed_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        """See `Monocontext.handed_since`; ranges count in the whole text."""
        return self.text.handed_since(mark)

    def repl_namespace(self) -> NamespacePatch:
        """A patch of a REPL's namespace, with which code cannot tell this from a real one (no GET). See
        `text.namespace`."""
        from monocontext.text.namespace.kit import NamespacePatch

        reader: Any = self.documents.source.reader
        return NamespacePatch(follower=reader if hasattr(reader, "ran") else None)

    def serve(self) -> ReaderServer:
        """A server of this context alone, for a process that must not have its credentials; see `Monocontext.serve`."""
        return self.text.serve().then((("_shaped", [self._shape]),))

    def describe(self) -> dict[str, str]:
        """A description for a model: `kind`, `sentence`, `access` (1 GET for the first names)."""
        found = self.documents
        first = islice((record.name for record in found.records()), _SHOWN_NAMES)
        names = ", ".join(repr(name[:_NAME_CHARACTERS]) for name in first)
        size = f"{found.text_bytes:,} bytes together, kept in storage and read where you look"
        return {"kind": f"lazy {self._shape}", "sentence": self._sentence(names, size), "access": _ACCESS[self._shape]}

    @abstractmethod
    def _sentence(self, names: str, size: str) -> str:
        """One sentence for the model: the kind, the first names and the size."""

    def _repr_html_(self) -> str:
        """For notebooks, as `Monocontext._repr_html_`; the map shows the whole text (no GET)."""
        return self.text._html(type(self).__name__)

    def close(self) -> None:
        """Release memory and connections; later reads raise `ContextClosed`. Idempotent."""
        self.text.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _shape_again, (self.text, self._shape)


def _shape_again(text: Any, shape: str) -> Any:
    """Give a context its shape again; pickles call it."""
    return text._shaped(shape)


_SEARCH = """\
It reads only documents that a search index cannot rule out; a text of five characters or more narrows best.
- `context.text` is all of it as one str, and `context.text.grep(pattern)` finds its lines that match; \
`context.documents.at(offset)` gives the document of an offset: `.number`, `.name`, `.start`.
- Everything else streams: fine once, not in a loop."""
_ACCESS = {
    "list": f"""\
It reads like a list of str. `len(context)`, `context[i]` and `len` of its items are cheap; a slice is a real list.
- To search, loop once over all: `[i for i, text in enumerate(context) if "needle" in text]`, or with `re.search`. \
{_SEARCH}""",
    "dict": f"""\
It reads like a dict of str to str. `len(context)`, `context[name]` and `name in context` are cheap.
- To search, loop once over all: `[name for name, text in context.items() if "needle" in text]`, or with `re.search`. \
{_SEARCH}""",
}


class DocumentList(_Shape, Sequence[str], LazyItems):
    """The documents of a context as a `list[str]`. Immutable, safe for use by many threads."""

    _shape = "list"
    _refusal = "the documents of a context cannot be changed: make a real list of a part, list(texts[a:b])"

    def __init__(self, text: WholeText, documents: Documents[Any], numbers: range | None = None):
        self.text = text
        self.documents = documents
        self._numbers = range(documents.count) if numbers is None else numbers

    def _sentence(self, names: str, size: str) -> str:
        return f"a list of {len(self):,} documents, all str, {size}; the first are named {names}"

    def _is_large(self, numbers: range) -> bool:
        """Whether the documents together have more characters than the limit of one `str` (1 GET for 4,096 until that
        is known)."""
        limit, size = self.text._limit, 0
        for number in numbers:
            size += len(self.documents.table.document(number))
            if size > limit:
                return True
        return False

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Any]:
        """Lazy texts; for a library that keeps its items, real `str` up to the limit for all together."""
        if is_collected(sys._getframe(1)):
            return iter(self._real("all documents for a library"))
        return map(self.documents.lazy, self._numbers)

    def __reversed__(self) -> Iterator[Any]:
        return map(self.documents.lazy, reversed(self._numbers))

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[str]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        """A document as a `str` (above the limit a view), or a real list of documents (above the limit a lazy one)."""
        if isinstance(key, slice):
            numbers = self._numbers[key]
            if self._is_large(numbers):
                return DocumentList(self.text, self.documents, numbers)
            return self.documents.read_all(numbers)
        if not hasattr(key, "__index__"):
            raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}")
        try:
            number = self._numbers[key]
        except IndexError:
            raise IndexError("list index out of range") from None
        return self.documents.read(number)

    def __contains__(self, item: object) -> bool:
        return next(self._positions(item), None) is not None

    def count(self, value: object, /) -> int:
        """The number of documents that equal a text; reads the documents of that length."""
        return sum(1 for _ in self._positions(value))

    def index(self, value: object, start: SupportsIndex = 0, stop: SupportsIndex | None = None, /) -> int:
        """The number of the first document that equals a text; reads the documents of that length."""
        low, high, _ = slice(operator.index(start), None if stop is None else operator.index(stop)).indices(len(self))
        part = DocumentList(self.text, self.documents, self._numbers[low:high])
        for at in part._positions(value):
            return low + at
        raise ValueError(f"{str(value)[:80]!r} is not in list")

    def _positions(self, value: object) -> Iterator[int]:
        """The positions in this list of the documents that equal a value, in order."""
        if not isinstance(value, str | StrLike):
            return
        size = len(value)
        for at, number in enumerate(self._numbers):
            if len(self.documents.table.document(number)) == size and self.documents.lazy(number) == value:
                yield at

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | DocumentList) and len(self) != len(other):
            return False
        return super().__eq__(other)

    def _materialize(self) -> list[str] | None:
        return None if self._is_large(self._numbers) else self.documents.read_all(self._numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._numbers != range(self.documents.count):
            raise NotPicklable(
                f"{self._short_repr()} cannot be pickled, since it is only a part of the documents: pickle the whole "
                f"list, or [str(d) for d in part]"
            )
        return super().__reduce__()

    def _short_repr(self) -> str:
        return f"<DocumentList of {len(self):,} documents; a lazy list of str: index, slice or iterate it>"


class DocumentDict(_Shape, Mapping[str, str], LazyMapping):
    """The documents of a context as a `dict[str, str]`. Immutable, safe for use by many threads.

    Of several documents with one name, the last one counts, at the position of the first.
    """

    _shape = "dict"
    _refusal = (
        "the documents of a context cannot be changed: make a real dict of a part, {name: texts[name] for name in ...}"
    )

    def __init__(self, text: WholeText, documents: Documents[Any]):
        self.text = text
        self.documents = documents

    def _sentence(self, names: str, size: str) -> str:
        return f"a dict of {len(self):,} documents by name, all str, {size}; the first keys are {names}"

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[str]:
        return iter(self.documents)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self.documents))

    def __contains__(self, name: object) -> bool:
        hash(name)
        return name in self.documents

    def __getitem__(self, name: str) -> Any:
        """A document as a `str`; above the limit as a view. Raises `KeyError`."""
        hash(name)
        return self.documents.read(self.documents.record(name).number)

    def get(self, name: str, default: Any = None, /) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        """The names and lazy texts."""
        numbers = self.documents.numbers
        pairs = enumerate(self.documents) if numbers is None else ((number, name) for name, number in numbers.items())
        return ((name, self.documents.lazy(number)) for number, name in pairs)

    def keys(self) -> KeysView[str]:
        return _Keys(self)

    def items(self) -> ItemsView[str, Any]:
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        return _Values(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict | DocumentDict):
            return NotImplemented
        if len(self) != len(other):
            return False
        return all(name in other and other[name] == text for name, text in self._pairs())

    def __or__(self, other: object) -> dict[str, Any]:
        """A real dict with lazy values."""
        if not isinstance(other, dict | DocumentDict):
            return NotImplemented
        return dict(self._pairs()) | dict(other.items())

    def __ror__(self, other: object) -> dict[str, Any]:
        return other | dict(self._pairs()) if isinstance(other, dict) else NotImplemented

    def copy(self) -> dict[str, Any]:
        """A real dict with lazy values."""
        return dict(self._pairs())

    def _materialize(self) -> dict[str, str] | None:
        if self.documents.text_bytes > 4 * self.text._limit:
            return None
        pairs = list(self._pairs())
        numbers = [text.number for _, text in pairs]
        size = sum(len(name) + len(self.documents.table.document(text.number)) for name, text in pairs)
        if size > self.text._limit:
            return None
        return dict(zip((name for name, _ in pairs), self.documents.read_all(numbers), strict=True))

    if not TYPE_CHECKING:  # a call of one of these is an error for a type checker too
        pop = popitem = update = setdefault = clear = LazyContainer._refuse
        __setitem__ = __delitem__ = __ior__ = LazyContainer._refuse

    def _short_repr(self) -> str:
        return f"<DocumentDict of {self.documents.count:,} documents; a lazy dict of str: look names up or iterate it>"


class _View(LazyContainer):
    """A view of a dict. Its text, and what a library sees of it, are those of the real view."""

    __slots__ = ()
    _mapping: DocumentDict
    _name: str

    def _materialize(self) -> Any:
        real = self._mapping._materialize()
        return None if real is None else getattr(real, self._name)()

    def _short_repr(self) -> str:
        return f"the {self._name} of {self._mapping._short_repr()}"

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])  # type: ignore[call-overload]


class _Keys(_View, KeysView[str]):
    """`keys()`: the names, which are real `str`."""

    _name = "keys"

    def _materialize(self) -> Any:
        if sum(map(len, self._mapping)) > self._mapping.text._limit:
            return None
        return dict.fromkeys(self._mapping).keys()


class _Items(_View, ItemsView[str, Any]):
    """`items()`: pairs of a name and a lazy text."""

    _name = "items"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        if is_collected(sys._getframe(1)):
            return iter(self._real("all documents for a library"))
        return self._mapping._pairs()


class _Values(_View, ValuesView[Any]):
    """`values()`: lazy texts."""

    _name = "values"

    def __iter__(self) -> Iterator[Any]:
        if is_collected(sys._getframe(1)):
            return iter(self._real("all documents for a library"))
        return (text for _, text in self._mapping._pairs())


LazyText.shapes |= {DocumentList, DocumentDict, _Keys, _Items, _Values}
LazyText.suspects |= LazyText.shapes


def shaped(text: WholeText, shape: str) -> DocumentList | DocumentDict:
    """Give a context the shape of a list or dict.

    Raises `ValueError` if it has no documents, or, for a dict, if two documents of one upload have the same name (at
    most 1 GET).
    """
    found = text.documents
    if not found.count and len(text):
        raise ValueError(f"{text.url} is one text without documents: open it without shape, or upload it as documents")
    if shape == "list":
        return DocumentList(text, found)
    if found.table.first_duplicate is not None:
        name = found.table.document(found.table.first_duplicate).name
        raise ValueError(
            f"{text.url}: several documents are named {name!r}, so it cannot be a dict: open it with shape='list'"
        )
    return DocumentDict(text, found)
