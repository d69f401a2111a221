"""Base classes of lazy values. They tell the `isinstance` of a REPL which built-in type a value stands for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from monocontext.errors import ContextTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from monocontext.engine.remote.server import ReaderServer
    from monocontext.engine.stats import Stats


class Unchanging:
    """A value that never changes: its copies are the value itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class LazyContext(Unchanging):
    """The context of a model's run, read only where its code looks: a text, or the documents as a list or a dict."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def url(self) -> str: ...
        @property
        def stats(self) -> Stats: ...
        def thinking(self) -> AbstractContextManager[None]: ...
        def repl_namespace(self) -> Any: ...
        def close(self) -> None: ...
        def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]: ...
        def handed_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]: ...
        def serve(self) -> ReaderServer: ...

    def repl_tools(self) -> Mapping[str, Callable[..., object]]:
        """Functions for a REPL by name, which run in this process (no GET)."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LazyText(Unchanging):
    """A lazy text in place of a `str`: the base class of `Monocontext`."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __len__(self) -> int: ...
        def __getitem__(self, key: SupportsIndex | slice) -> Any: ...
        def chunks(self, characters: int = ...) -> Iterator[str]: ...
        def file(self) -> Any: ...
        def _whole(self, what: str, instead: str = ...) -> str: ...
        @property
        def is_large(self) -> bool: ...


class LazyItems:
    """A lazy list in place of a `list` of strings: a split of a large text, or the documents of a context."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Any]: ...
        def __getitem__(self, key: slice) -> Any: ...

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | LazyItems):
            return NotImplemented
        return all(item == other_item for item, other_item in zip_longest(self, other, fillvalue=LazyItems))

    def __add__(self, other: object) -> list[Any]:
        return [*self, *other] if isinstance(other, list | LazyItems) else NotImplemented

    def __radd__(self, other: object) -> list[Any]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    if not TYPE_CHECKING:  # for type checkers, a class with `__getattr__` has every name

        def __getattr__(self, name: str) -> Any:
            if name in ("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"):
                raise AttributeError(f"a lazy list has no {name!r}: change a real list, x.copy() or sorted(x)")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def copy(self) -> list[Any]:
        """A real list, which can be changed; `ContextTooLarge` above the limit of the text."""
        items = self[:]
        if not isinstance(items, list):
            raise ContextTooLarge(
                f"{self!r} is too large for a real list (materialize_limit): iterate it, or copy a slice of it"
            )
        return items


class LazyMapping(Mapping[str, Any]):
    """A lazy mapping in place of a `dict` from strings to strings: the documents of a context."""

    __slots__ = ()

    def copy(self) -> dict[str, Any]:
        """A real dict, which can be changed."""
        return dict(self)
