"""`AsyncMonocontext`, whose slices and methods are awaited. Each runs the synchronous method in a greenlet."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, TypeVar, Unpack

from monocontext.aio.greenlets import GreenletWorkers, RequestAbandoned
from monocontext.aio.operators import RefusedLineOperators, RefusedMappingOperators, RefusedOperators
from monocontext.aio.stores import AsyncS3Store, ThreadedStore
from monocontext.engine.open import CacheOptions, RootOptions, check_place
from monocontext.engine.reader import Reader
from monocontext.engine.stats import Stats
from monocontext.errors import ContextClosed
from monocontext.options import ReachOptions, validate_options
from monocontext.stores import open_store
from monocontext.stores.address import parse
from monocontext.stores.protocol import Store
from monocontext.stores.s3.options import S3Options
from monocontext.text.monocontext import Monocontext

if TYPE_CHECKING:
    from monocontext.format.documents import Document
    from monocontext.text.search.explain import Explanation
    from monocontext.text.search.grep import Query
    from monocontext.text.search.hits import Hit

T = TypeVar("T")

LINES_AT_ONCE = NAMES_AT_ONCE = 100
"""How many lines or names an iteration fetches in one step of the event loop, which costs as much as ten lines."""

_S3_OPTIONS = {field.name for field in fields(S3Options)}


class AsyncOptions(CacheOptions, RootOptions, ReachOptions, total=False):
    """Options of `AsyncMonocontext.open` other than `client` and `shape`."""

    region: str | None


class AsyncMonocontext(RefusedOperators):
    """A text of any size, read by any number of tasks of one event loop. Immutable.

    Offsets and lengths count characters. Results and GETs are those of `Monocontext`. Tasks share a cache, and requests
    for the same bytes. The cancellation of a task ends the requests that only it waited for.
    """

    def __init__(self, text: Monocontext, workers: GreenletWorkers, to_close: Any = None, shaped: Any = None):
        """Only `open` calls this."""
        self._text = text
        self._shaped = text if shaped is None else shaped
        """The context that `run` passes to a function."""
        self._workers = workers
        self._to_close = to_close
        """The store, which `_close` closes."""

    @classmethod
    @validate_options(AsyncOptions)
    def open(
        cls,
        url: str | os.PathLike[str] | Store,
        *,
        client: Any = None,
        shape: Literal["text", "list", "dict"] = "text",
        **options: Unpack[AsyncOptions],
    ) -> AsyncOpening:
        """Open the context at `s3://bucket/prefix`, a directory or `memory://name` (1 GET, for its root).

        Use `await AsyncMonocontext.open(url)`, or `async with AsyncMonocontext.open(url) as context`. `options` and
        errors are those of `Monocontext.open`, without `unit`, `threads`, `workers`, `transport` and `keep_alive`.
        `client` is an open aioboto3 client, which sends the requests and stays open. `shape` is what `run` passes to
        its function: the text, or a lazy list or dict of its documents.
        """
        check_place(url)
        return AsyncOpening(lambda: cls._open(url, client, shape, {**options}))

    @classmethod
    async def _open(
        cls, url: str | os.PathLike[str] | Store, client: Any, shape: str, options: dict[str, Any]
    ) -> AsyncMonocontext:
        workers = GreenletWorkers()
        store, options = _store(url, workers, client, options)
        opening: Callable[..., Any] = Monocontext.open
        try:
            shaped = await workers.call(lambda: opening(store, workers=workers, shape=shape, **options))
        except BaseException as error:
            await _close(workers, ContextClosed(f"opening failed: {error}"), store)
            raise
        return cls(shaped if shape == "text" else shaped.text, workers, store, shaped)

    # -- properties -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of characters (no GET)."""
        return len(self._text)

    def __bool__(self) -> bool:
        return len(self._text) > 0

    def __repr__(self) -> str:
        return (
            repr(self._text)
            .replace("<Monocontext", "<AsyncMonocontext", 1)
            .replace("; a lazy str: slice, find, split, iterate it", "; await its slices and methods")
        )

    @property
    def url(self) -> str:
        """The URL of the context; empty for a derived text."""
        return self._text.url

    @property
    def generation(self) -> int:
        """The generation of this text; only `refresh` changes it."""
        return self._text.generation

    @property
    def stats(self) -> Stats:
        """GETs, bytes, hits and waits since the text was opened, shared by all views."""
        return self._text.stats

    @property
    def lines(self) -> AsyncLines:
        """The same text by line: `async for line in context.lines`, `await context.lines[a:b]`."""
        return AsyncLines(self)

    @property
    def documents(self) -> AsyncDocuments:
        """The documents of the text: `await context.documents[name]`, `async for name in context.documents`."""
        return AsyncDocuments(self)

    # -- reading -----------------------------------------------------------------------------------------------------

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Characters [start, stop) as a `str`, with the bounds of a slice. Raises `ContextTooLarge` above the limit."""
        # Above the limit the slice is a view, whose `str` raises.
        return await self._call(lambda: str(self._text[start:stop]))

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[str]:
        """`await context[a:b]` or `await context[i]`: a `str`. Raises `ContextTooLarge` above the limit."""
        if isinstance(key, slice):
            if key.step is None or key.step == 1:
                return self.read(key.start or 0, key.stop)
            return self._call(lambda: str(self._text[key]))
        return self._call(lambda: self._text[key])

    async def find(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """Like `str.find`; GETs as for `Monocontext.find`."""
        return await self._call(lambda: self._text.find(sub, start, end))

    async def rfind(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """Like `str.rfind`."""
        return await self._call(lambda: self._text.rfind(sub, start, end))

    async def index(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """Like `str.index`."""
        return await self._call(lambda: self._text.index(sub, start, end))

    async def count(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """Like `str.count`."""
        return await self._call(lambda: self._text.count(sub, start, end))

    async def contains(self, sub: str) -> bool:
        """Whether `sub` occurs in the text. The operator `in` raises."""
        return await self._call(lambda: sub in self._text)

    async def startswith(self, prefix: str | tuple[str, ...], start: int | None = None, end: int | None = None) -> bool:
        """Like `str.startswith`."""
        return await self._call(lambda: self._text.startswith(prefix, start, end))

    async def endswith(self, suffix: str | tuple[str, ...], start: int | None = None, end: int | None = None) -> bool:
        """Like `str.endswith`."""
        return await self._call(lambda: self._text.endswith(suffix, start, end))

    async def equals(self, other: str) -> bool:
        """Whether the text equals `other`; reads up to the first difference. The operator `==` raises."""
        return await self._call(lambda: self._text == other)

    def grep(self, pattern: Query, **options: Any) -> AsyncIterator[Hit]:
        """The lines that match a pattern, in order: `async for hit in context.grep(pattern)`.

        Options and GETs are those of `Monocontext.grep`, without `executor`.
        """
        if "executor" in options:
            raise TypeError("grep of an asynchronous text takes no executor: it searches in the event loop's thread")
        return self._each(lambda: self._text.grep(pattern, **options), 1)

    async def explain(self, query: Query, **options: Any) -> Explanation:
        """The cost of a `grep` for this query, as in `Monocontext.explain`."""
        return await self._call(lambda: self._text.explain(query, **options))

    def chunks(self, characters: int = 100_000) -> AsyncIterator[str]:
        """The text in `str` pieces of at most `characters`, in order, fetched ahead."""
        return self._each(lambda: self._text.chunks(characters), 1)

    async def run(self, function: Callable[[Any], T]) -> T:
        """Run synchronous code, `function(text)`, and return its result.

        Code for a `Monocontext`, or for the list or dict that `shape` selects, works unchanged. It runs in the event
        loop's thread, and other tasks run while it waits for a GET. The result may not be a lazy text.
        """
        return await self._call(lambda: function(self._shaped))

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Begin to fetch characters [start, stop) of each pair (returns at once)."""
        self._text.prefetch(ranges)

    def thinking(self) -> Any:
        """A context manager for the time that a model takes to answer, as `Monocontext.thinking`."""
        return self._text.thinking()

    async def refresh(self) -> Self:
        """Move to the newest generation, and return this text (1 GET, and 1 for each generation in between)."""
        await self._call(self._text.refresh)
        return self

    # -- lifetime ----------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Release memory and connections. Later reads raise `ContextClosed`. Idempotent."""
        reader = self._text._reader
        if reader is not None:
            reader.close()
        store, self._to_close = self._to_close, None
        await _close(self._workers, ContextClosed(f"{self.url or 'this context'} is closed"), store)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- internals -----------------------------------------------------------------------------------------------------

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            return await self._workers.call(work)
        except asyncio.CancelledError:
            self._drop()
            raise

    def _drop(self) -> None:
        """End the requests that only a cancelled caller waited for, which frees their bytes."""
        reader = self._text._reader
        if isinstance(reader, Reader) and not self._workers.end(reader.unwanted(), RequestAbandoned()):
            asyncio.get_running_loop().call_soon(self._drop)

    async def _each(self, make: Callable[[], Iterator[T]], most: int) -> AsyncIterator[T]:
        """The items of a synchronous iterator, up to `most` in each step of the event loop."""
        items: Iterator[T] | None = None

        def next_items() -> list[T]:
            nonlocal items
            if items is None:
                items = make()
            return list(islice(items, most))

        try:
            while batch := await self._call(next_items):
                for item in batch:
                    yield item
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()  # drops prefetched data, and never waits
                self._drop()


class AsyncOpening:
    """The result of `AsyncMonocontext.open`: `await` opens the context, and `async with` also closes it."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, AsyncMonocontext]]):
        self._start = start
        self._context: AsyncMonocontext | None = None

    def __await__(self) -> Generator[Any, None, AsyncMonocontext]:
        return self._start().__await__()

    async def __aenter__(self) -> AsyncMonocontext:
        self._context = await self
        return self._context

    async def __aexit__(self, *_: object) -> None:
        if self._context is not None:
            await self._context.aclose()


class AsyncLines(RefusedLineOperators):
    r"""The lines of a text, each with its `\n`."""

    def __init__(self, context: AsyncMonocontext):
        self._context = context
        self._lines = context._text.lines

    def __len__(self) -> int:
        """The number of lines (no GET)."""
        return len(self._lines)

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[str]:
        """`await lines[i]` or `await lines[a:b]`: the text of these lines."""
        return self._context._call(lambda: str(self._lines[key]))

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Lines [start, stop) as one `str`."""
        return await self[start:stop]

    def __aiter__(self) -> AsyncIterator[str]:
        return self._context._each(lambda: iter(self._lines), LINES_AT_ONCE)

    def __repr__(self) -> str:
        return f"<AsyncLines: {len(self):,} lines of {self._context.url or 'a text'}>"


class AsyncDocuments(RefusedMappingOperators):
    """The documents of a text by name. GETs are those of `Monocontext.documents`."""

    def __init__(self, context: AsyncMonocontext):
        self._context = context
        self._documents = context._text.documents

    @property
    def count(self) -> int:
        """The number of documents, including those with the same name (no GET)."""
        return self._documents.count

    def __getitem__(self, name: str) -> Awaitable[str]:
        """`await documents[name]`: the text as a `str`. Raises `KeyError`, and `ContextTooLarge` above the limit."""
        return self._context._call(lambda: str(self._documents[name]))

    async def contains(self, name: str) -> bool:
        """Whether a document has this name."""
        return await self._context._call(lambda: name in self._documents)

    async def record(self, name: str) -> Document:
        """The range of a document, in characters and lines. Raises `KeyError` for an unknown name."""
        return await self._context._call(lambda: self._documents.record(name))

    async def metadata(self, name: str) -> dict[str, Any]:
        """The metadata of a document. Raises `KeyError` for an unknown name."""
        return await self._context._call(lambda: self._documents.metadata(name))

    async def at(self, character: int) -> Document | None:
        """The document at a character of the text; None between documents."""
        return await self._context._call(lambda: self._documents.at(character))

    def __aiter__(self) -> AsyncIterator[str]:
        """The names, in the order of the text."""
        return self._context._each(lambda: iter(self._documents), NAMES_AT_ONCE)

    def items(self) -> AsyncIterator[tuple[str, str]]:
        """The names and texts of the documents. Raises `ContextTooLarge` for a text above the limit."""
        return self._context._each(lambda: ((name, str(text)) for name, text in self._documents.items()), 1)

    def __repr__(self) -> str:
        return f"<AsyncDocuments: {self.count:,} of {self._context.url}>"


def _store(
    url: str | os.PathLike[str] | Store, workers: GreenletWorkers, client: Any, options: dict[str, Any]
) -> tuple[ThreadedStore | AsyncS3Store, dict[str, Any]]:
    """Open the store. Returns it and the options that are not about the store."""
    if isinstance(url, str | os.PathLike):
        arguments = {name: options[name] for name in _S3_OPTIONS & options.keys() if options[name] is not None}
        options = {name: value for name, value in options.items() if name not in _S3_OPTIONS}
        if client is not None:
            address = parse(url)
            if address.scheme != "s3":
                raise TypeError(f"a client can only read s3:// URLs, not {address}")
            if arguments:
                raise TypeError(f"{', '.join(sorted(arguments))} cannot be combined with client")
            return AsyncS3Store(address.place, address.path, workers, client, S3Options()), options
        url = open_store(url, **arguments)
    store = ThreadedStore(url, workers)
    return store, {"hedge": None} | options if store.is_near else options


async def _close(workers: GreenletWorkers, error: BaseException, store: Any) -> None:
    """End the requests with an error, then close the store, even if the task is cancelled in between."""
    try:
        await workers.aclose(error)
    finally:
        if isinstance(store, ThreadedStore):
            store.close()
