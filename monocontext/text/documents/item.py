"""One document as a lazy `str`: an item of a loop over documents, which reads nothing until it is used."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

from monocontext.text.documents.source import DocumentSource
from monocontext.text.lazy_kinds import LazyText, is_at_prompt
from monocontext.text.source import Span
from monocontext.text.str_methods import StrLike

if TYPE_CHECKING:
    from monocontext.format.filters.query import Query

SMALL = 1 << 20
"""A document of at most this many characters is read whole and kept as a `str`."""

View = Callable[[Span], Any]
"""Makes a `Monocontext` from a part of the source."""


class DocumentText(StrLike):
    """A document, equal to the `str` of its text. Creating one costs nothing; its length costs at most 1 GET.

    A small document is read whole when its text is needed, and has all methods of `str`. A search for a text that
    filters rule out reads nothing.
    """

    __slots__ = ("_text", "_view_of", "_view_once_made", "number", "source")

    def __init__(self, source: DocumentSource, number: int, view_of: View):
        self.source = source
        self.number = number
        self._view_of = view_of
        self._view_once_made: Any = None
        self._text: str | None = None

    @property
    def view(self) -> Any:
        """The document as a `Monocontext` (at most 1 GET)."""
        view = self._view_once_made
        if view is None:
            record = self.source.table.document(self.number)
            view = self._view_once_made = self._view_of(Span(self.source, record.start, record.stop))
        return view

    @property
    def real(self) -> str | None:
        """The text if it is small, else None."""
        text = self._text
        if text is None:
            view = self.view
            size = len(view)
            if size > SMALL or size > view._limit:
                return None
            text = self._text = self.source.read(view._start, view._stop)
            self._view_once_made = None  # it may keep the same text
        return text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.view, name)

    # -- the abstract methods of `StrLike` -------------------------------------------------------------------------

    @property
    def span(self) -> Span:
        span: Span = self.view.span
        return span

    @property
    def _limit(self) -> int:  # type: ignore[override]
        return int(self.view._limit)

    def __len__(self) -> int:
        return len(self._text) if self._text is not None else len(self.view)

    def __bool__(self) -> bool:
        return len(self) > 0

    def _length_up_to(self, most: int) -> int:
        return len(self)

    def _end_after(self, start: int) -> int:
        return len(self)

    def _part(self, start: int, stop: int) -> Any:
        return self.view._part(start, stop)

    def _view(self, start: int, stop: int) -> Any:
        return self.view._view(start, stop)

    def _holds_none(self, query: Query, within_line: bool) -> bool:
        return self._text is None and self.source.ruled_out_already(query, within_line, self.number)

    def _over(self, span: Span, recipe: tuple[Any, ...]) -> Any:
        return self.view._over(span, recipe)

    @property
    def _snapshot(self) -> Any:
        return self.view._snapshot

    def _count_real(self, size_bytes: int) -> None:
        self.view._count_real(size_bytes)

    def repl_namespace(self) -> Any:
        return self.view.repl_namespace()

    # -- items -----------------------------------------------------------------------------------------------------

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        return self.view[key] if self._text is None else self._text[key]

    def __iter__(self) -> Iterator[str]:
        real = self.real
        return iter(self.view if real is None else real)

    def __reversed__(self) -> Iterator[str]:
        real = self.real
        return reversed(self.view if real is None else real)

    def __contains__(self, needle: object) -> bool:
        """Whether a `str` occurs; reads nothing where filters rule it out."""
        if type(needle) is str and needle and self._text is None and not self._may_contain(needle):
            return False
        real = self.real
        return super().__contains__(needle) if real is None or isinstance(needle, LazyText) else needle in real  # type: ignore[operator]

    def _may_contain(self, needle: str) -> bool:
        """Whether filters leave open that `needle` occurs. If so, starts to read this document and those after it."""
        if self._text is None and self.source.rules_out(needle, self.number):
            return False
        view = self.view
        self.source.read_ahead(needle, view._start, view._stop)
        return True

    # -- repr, pickles ---------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """The `repr` of the `str` up to the limit, as a list shows its items. At an interactive prompt a large document
        shows its kind and size."""
        if self.real is not None or is_at_prompt(sys._getframe(1)):
            return self._short_repr()
        return repr(self._whole("repr(text)", "take a part, text[a:b]"))

    def _short_repr(self) -> str:
        real = self.real
        return repr(self.view if real is None else real)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self._short_repr())

    def __reduce__(self) -> tuple[Any, ...]:
        return self.view.__reduce__()  # type: ignore[no-any-return]


_SEARCHES = frozenset({"count", "find", "index", "rfind", "rindex"})
_OPERATORS = ("add", "eq", "ge", "gt", "le", "lt", "mod", "mul", "ne")


def _add_methods() -> None:
    """Add the methods of `str`. Each calls that of the real `str`, or the lazy one for large documents and lazy
    arguments."""
    for name in dir(str):
        if not name.startswith("_") and name not in ("join", "maketrans"):
            setattr(DocumentText, name, _method(name, getattr(StrLike, name)))
    for name in _OPERATORS:
        setattr(DocumentText, f"__{name}__", _operator(getattr(operator, name), getattr(StrLike, f"__{name}__")))
    for name, real in (("__hash__", hash), ("__str__", str), ("__format__", format)):
        setattr(DocumentText, name, _operator(real, getattr(StrLike, name)))


def _method(name: str, lazily: Callable[..., Any]) -> Callable[..., Any]:
    is_search = name in _SEARCHES

    def method(self: DocumentText, *arguments: Any, **options: Any) -> Any:
        is_plain_search = is_search and len(arguments) == 1 and type(arguments[0]) is str and arguments[0]
        if is_plain_search and not options and not self._may_contain(arguments[0]):
            return getattr("", name)(*arguments)  # as in any text without an occurrence
        if any(isinstance(each, LazyText) for each in arguments) or (real := self.real) is None:
            return lazily(self, *arguments, **options)
        return getattr(real, name)(*arguments, **options)

    method.__name__, method.__doc__ = name, lazily.__doc__
    return method


def _operator(on_real: Callable[..., Any], lazily: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: DocumentText, *arguments: Any) -> Any:
        if any(isinstance(each, LazyText) for each in arguments):
            return lazily(self, *arguments)
        is_unread_eq = on_real is operator.eq and self._text is None
        if is_unread_eq and isinstance(arguments[0], str) and len(arguments[0]) != len(self):
            return False
        real = self.real
        return lazily(self, *arguments) if real is None else on_real(real, *arguments)

    method.__doc__ = lazily.__doc__
    return method


_add_methods()
