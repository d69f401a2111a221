"""Proxies of a list or dict of documents. The `dspy` sandbox runs this source after that of `dspy_proxy`."""

import json
import operator
from collections.abc import ItemsView, Mapping, Sequence, ValuesView
from typing import Any

from monocontext.adapters.dspy_proxy import DerivedProxy, _is_proxy, _proxy_ask

DOCUMENTS_AT_ONCE = 1000
"""The most documents in one reply of the host."""
MOST_REPLIES = 200
"""The most replies that are cached."""


class DocumentsInHost:
    """Gets lengths, names and texts of documents from the host, block by block, and caches the replies."""

    def __init__(self, call: Any, count: int) -> None:
        self.call, self.count = call, count
        self._replies: dict[Any, Any] = {}
        """Replies by operation, first document of the block, and arguments."""
        self._texts: dict[int, str] = {}
        """The texts of the last group of small documents."""
        self._next, self._group_size = -1, 1
        """The document after that group, and its size."""

    def ask(self, operation: str, *arguments: Any) -> Any:
        return _proxy_ask(self.call, [], operation, [str(each) if _is_proxy(each) else each for each in arguments])

    def about(self, at: int, operation: str, *arguments: Any) -> Any:
        """The reply for the block of document `at`."""
        start = at - at % DOCUMENTS_AT_ONCE
        key = (operation, start, *arguments)
        if key not in self._replies:
            if len(self._replies) >= MOST_REPLIES:
                self._replies.clear()
            found = self.ask(operation, start, DOCUMENTS_AT_ONCE, *arguments)
            self._replies[key] = set(found) if operation in ("holding", "matching") else found
        return self._replies[key]

    def length(self, at: int) -> int:
        return int(self.about(at, "lengths")[at % DOCUMENTS_AT_ONCE])

    def text(self, at: int) -> str:
        """The text of a small document. Documents that are read in order arrive in growing groups."""
        if at not in self._texts:
            self._group_size = min(2 * self._group_size, DOCUMENTS_AT_ONCE) if at == self._next else 1
            self._texts = dict(enumerate(self.ask("texts_from", at, self._group_size), at))
            self._next = at + len(self._texts)
        return self._texts[at]

    def name(self, at: int) -> str:
        return str(self.about(at, "names")[at % DOCUMENTS_AT_ONCE])

    def real(self, at: int) -> Any:
        """A document as a str, or as a proxy if it is large."""
        document = DocumentProxy(self, at)
        return str(document) if document._is_small else document

    def documents(self) -> Any:
        return (DocumentProxy(self, at) for at in range(self.count))


class DocumentProxy(DerivedProxy):
    """A document whose text is read when code uses it. The host answers searches, by search filters where it can."""

    def __init__(self, host: DocumentsInHost, at: int) -> None:
        super().__init__(host.call, [["document", [at]]], None)
        self._host, self._at = host, at

    @property
    def n(self) -> int:  # type: ignore[override]
        return self._host.length(self._at)

    @property
    def _is_small(self) -> bool:
        return self.n <= 1_000_000

    def __bool__(self) -> bool:
        return self.n > 0

    def __str__(self) -> str:
        return self._host.text(self._at) if self._is_small else super().__str__()

    def __repr__(self) -> str:
        return repr(str(self)) if self._is_small else super().__repr__()

    def __getitem__(self, key: Any) -> Any:
        return str(self)[key] if self._is_small else super().__getitem__(key)

    def __iter__(self) -> Any:
        return iter(str(self)) if self._is_small else super().__iter__()

    def _contains(self, sub: Any) -> bool:
        if not isinstance(sub, str):
            return True  # the method raises for anything but a str
        return not sub or self._at in self._host.about(self._at, "holding", sub)

    def _finds(self, pattern: str, flags: int) -> bool:
        """Whether `re.search` finds a match."""
        return self._at in self._host.about(self._at, "matching", pattern, flags)

    def __contains__(self, sub: Any) -> bool:
        return self._contains(str(sub) if _is_proxy(sub) else sub) and (isinstance(sub, str) or sub in str(self))

    def find(self, sub: Any, *bounds: Any) -> Any:
        if not bounds and not self._contains(sub):
            return -1
        return str(self).find(sub, *bounds) if self._is_small else super().find(sub, *bounds)

    def index(self, sub: Any, *bounds: Any) -> Any:
        return str(self).index(sub, *bounds) if self._is_small else super().index(sub, *bounds)

    def count(self, sub: Any, *bounds: Any) -> Any:
        if not bounds and not self._contains(sub):
            return 0
        return str(self).count(sub, *bounds) if self._is_small else super().count(sub, *bounds)

    def __eq__(self, other: Any) -> Any:
        if not (isinstance(other, str) or _is_proxy(other)):
            return NotImplemented
        return len(other) == self.n and (str(self) == str(other) if self._is_small else super().__eq__(other))

    __hash__ = DerivedProxy.__hash__


def _document_operator(name: str) -> Any:
    """Make an operator that runs in the sandbox for a small document, else in the host."""
    on_real, in_host = getattr(operator, name), getattr(DerivedProxy, f"__{name}__")

    def method(self: Any, other: Any) -> Any:
        if not self._is_small:
            return in_host(self, other)
        return on_real(str(self), str(other) if _is_proxy(other) else other)

    return method


for _operator_name in ("lt", "le", "gt", "ge", "add"):
    setattr(DocumentProxy, f"__{_operator_name}__", _document_operator(_operator_name))


class _DocumentsProxy:
    """The common part of the proxies of a list and of a dict."""

    is_documents_proxy = True

    def __init__(self, host: DocumentsInHost, text: Any) -> None:
        self._host, self.text = host, text

    def __len__(self) -> int:
        return self._host.count


class DocumentListProxy(_DocumentsProxy, Sequence):  # type: ignore[type-arg]
    """The documents as a list of str. A loop gives proxies; an index or a slice gives real strings."""

    def __iter__(self) -> Any:
        return self._host.documents()

    def __reversed__(self) -> Any:
        return (DocumentProxy(self._host, at) for at in reversed(range(len(self))))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self._host.real(at) for at in range(*key.indices(len(self)))]
        try:
            return self._host.real(range(len(self))[key])
        except IndexError:
            raise IndexError("list index out of range") from None

    def __contains__(self, text: Any) -> bool:
        return bool(self.count(text))

    def count(self, text: Any) -> Any:
        return self._host.ask("count", text) if isinstance(text, str) or _is_proxy(text) else 0

    def index(self, text: Any, start: int = 0, stop: Any = None) -> Any:
        return self._host.ask("index", text, start, stop)

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, list | DocumentListProxy):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        return [*self, *other]

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]

    def __mul__(self, times: Any) -> Any:
        return [*self] * times

    __rmul__ = __mul__

    def __lt__(self, other: Any) -> Any:
        return [*self] < other

    def __le__(self, other: Any) -> Any:
        return [*self] <= other

    def __gt__(self, other: Any) -> Any:
        return [*self] > other

    def __ge__(self, other: Any) -> Any:
        return [*self] >= other

    def copy(self) -> Any:
        return [*self]

    def __repr__(self) -> str:
        return f"<a list of {len(self):,} documents: index, slice, iterate it>"


class DocumentDictProxy(_DocumentsProxy, Mapping):  # type: ignore[type-arg]
    """The documents as a dict of name to str. Loops over values and items give proxies; a look-up gives a real str."""

    def __iter__(self) -> Any:
        return map(self._host.name, range(len(self)))

    def __reversed__(self) -> Any:
        return map(self._host.name, reversed(range(len(self))))

    def __contains__(self, name: Any) -> bool:
        return isinstance(name, str) and self._host.ask("number", name) is not None

    def __getitem__(self, name: Any) -> Any:
        at = self._host.ask("number", name) if isinstance(name, str) else None
        if at is None:
            raise KeyError(name)
        return self._host.real(at)

    def items(self) -> Any:
        return _DocumentItems(self)

    def values(self) -> Any:
        return _DocumentValues(self)

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, dict | DocumentDictProxy):
            return NotImplemented
        return len(self) == len(other) and all(name in other and text == other[name] for name, text in self.items())

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> Any:
        return {**dict(self.items()), **other}

    def __ror__(self, other: Any) -> Any:
        return {**other, **dict(self.items())}

    def copy(self) -> Any:
        return dict(self.items())

    def __repr__(self) -> str:
        return f"<a dict of {len(self):,} documents by name: look names up, iterate it>"


class _DocumentItems(ItemsView):  # type: ignore[type-arg]
    _mapping: DocumentDictProxy

    def __iter__(self) -> Any:
        return zip(self._mapping, self._mapping._host.documents(), strict=True)


class _DocumentValues(ValuesView):  # type: ignore[type-arg]
    _mapping: DocumentDictProxy

    def __iter__(self) -> Any:
        return self._mapping._host.documents()

    def __contains__(self, text: Any) -> bool:
        return any(text == document for document in self)


def _json_default(real: Any) -> Any:
    """Make the function that `json` calls for objects of other types. It makes proxies real."""

    def default(self: Any, value: Any) -> Any:
        if _is_proxy(value):
            return str(value)
        if hasattr(type(value), "is_documents_proxy"):  # not isinstance: each input field defines the classes again
            return value.copy()
        return real(self, value)

    return default


if not hasattr(json.JSONEncoder.default, "takes_context_proxy"):  # this is the `json` of the sandbox alone
    _proxy_default = _json_default(json.JSONEncoder.default)
    _proxy_default.takes_context_proxy = True
    setattr(json.JSONEncoder, "default", _proxy_default)  # noqa: B010 (a type checker takes no assignment)
