"""`AsyncMonocontext`, whose slices and methods are awaited. Each runs the synchronous method in a thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Self, SupportsIndex, TypeVar, Unpack

from monocontext.aio.client import BlockingClient
from monocontext.aio.operators import RefusedLineOperators, RefusedMappingOperators, RefusedOperators
from monocontext.engine.fetch.workers import CALL, MAX_RUNNING, Threads
from monocontext.engine.open import CacheOptions, RootOptions, check_place
from monocontext.options import ReachOptions, validate_options
from monocontext.stores.address import parse
from monocontext.stores.protocol import Store
from monocontext.stores.s3.store import S3Store
from monocontext.text.lazy_kinds import LazyItems
from monocontext.text.monocontext import Monocontext

if TYPE_CHECKING:
    from monocontext.engine.stats import Stats
    from monocontext.format.documents import Document
    from monocontext.text.documents.by_name import Documents
    from monocontext.text.search.grep import Query
    from monocontext.text.search.hits import Hit

P = ParamSpec("P")
T = TypeVar("T")

ITEMS_AT_ONCE = 100
"""The lines or names that an iteration fetches at a time: a hop to a thread costs as much as some ten lines."""


class AsyncOptions(CacheOptions, RootOptions, ReachOptions, total=False):
    """Options of `AsyncMonocontext.open` other than `client` and `shape`."""

    region: str | None


def awaited(
    method: Callable[Concatenate[Monocontext, P], T],
) -> Callable[Concatenate[AsyncMonocontext, P], Coroutine[Any, Any, T]]:
    """The asynchronous form of a method of `Monocontext`: the same arguments, results, errors and GETs. A lazy result
    is asynchronous too."""

    @wraps(method)
    async def call(self: AsyncMonocontext, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self._wrap(await self._call(lambda: method(self._text, *args, **kwargs)))

    return call


class AsyncMonocontext(RefusedOperators):
    """A text of any size, read by any number of tasks. Immutable.

    Offsets and lengths count characters. Tasks share a cache, and requests for the same bytes. The work of a cancelled
    task ends in its thread when it next waits for data.
    """

    def __init__(self, text: Monocontext, threads: Threads, shaped: Any = None):
        """Only `open` calls this."""
        self._text = text
        self._threads: Threads | None = threads
        self._shaped = text if shaped is None else shaped
        """The context that `run` passes to a function."""

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
        errors are those of `Monocontext.open`, without `unit`, `workers`, `transport` and `keep_alive`.
        `client` is an open aioboto3 client, which sends the requests and stays open. `shape` is what `run` passes to
        its function: the text, or a lazy list or dict of its documents.
        """
        check_place(url)
        return AsyncOpening(lambda: cls._open(url, client, shape, {**options}))

    @classmethod
    async def _open(
        cls, url: str | os.PathLike[str] | Store, client: Any, shape: str, options: dict[str, Any]
    ) -> AsyncMonocontext:
        if client is not None:
            address = parse(url) if isinstance(url, str | os.PathLike) else None
            if address is None or address.scheme != "s3":
                raise TypeError(f"a client can only read s3:// URLs, not {url}")
            given = {name for name, value in options.items() if value is not None}
            if refused := sorted({"endpoint", "region", "profile", "path_style", "anonymous"} & given):
                raise TypeError(f"{', '.join(refused)} cannot be combined with client")
            url = S3Store(address.place, address.path, client=BlockingClient(client))
        threads = Threads(MAX_RUNNING)
        opening: Callable[..., Any] = Monocontext.open
        call = _Call(lambda: opening(url, shape=shape, **options))
        threads.run(call.carry_out)
        try:
            shaped = await asyncio.shield(asyncio.wrap_future(call.future))
        except asyncio.CancelledError:
            call.future.add_done_callback(lambda opened: None if opened.exception() else opened.result().close())
            raise
        return cls(shaped if shape == "text" else shaped.text, threads, shaped)

    # -- without waiting -------------------------------------------------------------------------------------------

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
    def lines(self) -> AsyncItems:
        """The same text by line: `async for line in context.lines`, `await context.lines[a:b]`."""
        return AsyncItems(self, self._text.lines)

    @property
    def documents(self) -> AsyncDocuments:
        """The documents of the text: `await context.documents[name]`, `async for name in context.documents`."""
        return AsyncDocuments(self)

    def prefetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Begin to fetch characters [start, stop) of each pair, as `Monocontext.prefetch` (returns at once)."""
        self._text.prefetch(ranges)

    def hint(self, delta: str) -> None:
        """Take the next piece of a model's reply, as `Monocontext.hint` (returns at once)."""
        self._text.hint(delta)

    def thinking(self) -> Any:
        """A context manager for the time that a model takes to answer, as `Monocontext.thinking`."""
        return self._text.thinking()

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        """The ranges that were read since a mark, as `Monocontext.reads_since` (no GET)."""
        return self._text.reads_since(mark)

    def handed_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        """The pieces that code received since a mark, as `Monocontext.handed_since` (no GET)."""
        return self._text.handed_since(mark)

    # -- reading ---------------------------------------------------------------------------------------------------

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Characters [start, stop) as a `str`, with the bounds of a slice. Raises `ContextTooLarge` above the limit."""
        # Above the limit the slice is a view, whose `str` raises.
        return await self._call(lambda: str(self._text[start:stop]))

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[str]:
        """`await context[a:b]` or `await context[i]`: a `str`. Raises `ContextTooLarge` above the limit."""
        return self._call(lambda: str(self._text[key]))

    async def contains(self, sub: str) -> bool:
        """Whether `sub` occurs in the text. The operator `in` raises."""
        return await self._call(lambda: sub in self._text)

    async def equals(self, other: str) -> bool:
        """Whether the text equals `other`; reads up to the first difference. The operator `==` raises."""
        return await self._call(lambda: self._text == other)

    def grep(self, pattern: Query, **options: Any) -> AsyncIterator[Hit]:
        """The lines that match a pattern, in order: `async for hit in context.grep(pattern)`. Options and GETs are
        those of `Monocontext.grep`."""
        return self._each(lambda: self._text.grep(pattern, **options), 1)

    def chunks(self, characters: int = 100_000) -> AsyncIterator[str]:
        """The text in `str` pieces of at most `characters`, in order, fetched ahead."""
        return self._each(lambda: self._text.chunks(characters), 1)

    async def run(self, function: Callable[[Any], T]) -> T:
        """Run synchronous code, `function(text)`, in a thread, and return its result.

        Code for a `Monocontext`, or for the list or dict that `shape` selects, works unchanged.
        """
        return await self._call(lambda: function(self._shaped))

    async def refresh(self) -> Self:
        """Move to the newest generation, and return this text (1 GET, and 1 for each generation in between)."""
        await self._call(self._text.refresh)
        return self

    find = awaited(Monocontext.find)
    rfind = awaited(Monocontext.rfind)
    index = awaited(Monocontext.index)
    rindex = awaited(Monocontext.rindex)
    count = awaited(Monocontext.count)
    startswith = awaited(Monocontext.startswith)
    endswith = awaited(Monocontext.endswith)
    search = awaited(Monocontext.search)
    explain = awaited(Monocontext.explain)
    outline = awaited(Monocontext.outline)
    substring = awaited(Monocontext.substring)
    view = awaited(Monocontext.view)
    split = awaited(Monocontext.split)
    rsplit = awaited(Monocontext.rsplit)
    splitlines = awaited(Monocontext.splitlines)
    partition = awaited(Monocontext.partition)
    rpartition = awaited(Monocontext.rpartition)
    strip = awaited(Monocontext.strip)
    lstrip = awaited(Monocontext.lstrip)
    rstrip = awaited(Monocontext.rstrip)
    removeprefix = awaited(Monocontext.removeprefix)
    removesuffix = awaited(Monocontext.removesuffix)
    lower = awaited(Monocontext.lower)
    upper = awaited(Monocontext.upper)
    casefold = awaited(Monocontext.casefold)
    capitalize = awaited(Monocontext.capitalize)
    swapcase = awaited(Monocontext.swapcase)
    title = awaited(Monocontext.title)
    replace = awaited(Monocontext.replace)
    translate = awaited(Monocontext.translate)
    expandtabs = awaited(Monocontext.expandtabs)
    encode = awaited(Monocontext.encode)
    center = awaited(Monocontext.center)
    ljust = awaited(Monocontext.ljust)
    rjust = awaited(Monocontext.rjust)
    zfill = awaited(Monocontext.zfill)
    format = awaited(Monocontext.format)
    format_map = awaited(Monocontext.format_map)
    join = awaited(Monocontext.join)
    isalnum = awaited(Monocontext.isalnum)
    isalpha = awaited(Monocontext.isalpha)
    isascii = awaited(Monocontext.isascii)
    isdecimal = awaited(Monocontext.isdecimal)
    isdigit = awaited(Monocontext.isdigit)
    isidentifier = awaited(Monocontext.isidentifier)
    islower = awaited(Monocontext.islower)
    isnumeric = awaited(Monocontext.isnumeric)
    isprintable = awaited(Monocontext.isprintable)
    isspace = awaited(Monocontext.isspace)
    istitle = awaited(Monocontext.istitle)
    isupper = awaited(Monocontext.isupper)

    # -- lifetime --------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Release memory and connections. Later reads raise `ContextClosed`. Idempotent."""
        self._text.close()
        self._threads = None  # they end with the last text that has them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- internals -------------------------------------------------------------------------------------------------

    async def _call(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            return work()  # a closed text raises at once
        call = _Call(work)
        self._threads.run(call.carry_out)
        try:
            return await asyncio.wrap_future(call.future)
        finally:
            call.is_over = True

    def _wrap(self, result: Any) -> Any:
        """A result of a method, with its lazy texts made asynchronous."""
        if isinstance(result, Monocontext) and self._threads is not None:
            return AsyncMonocontext(result, self._threads)
        if type(result) is tuple:
            return tuple(self._wrap(item) for item in result)
        if isinstance(result, LazyItems):
            return AsyncItems(self, result)
        return result

    async def _each(self, make: Callable[[], Iterator[T]], most: int) -> AsyncIterator[T]:
        """The items of a synchronous iterator, up to `most` at a time."""
        items = await self._call(make)
        while batch := await self._call(lambda: list(islice(items, most))):
            for item in batch:
                yield item


class _Call(Generic[T]):
    """Work in another thread, whose future a task awaits."""

    def __init__(self, work: Callable[[], T]):
        self.future: Future[T] = Future()
        self.is_over = False
        """Whether the task has the result, or was cancelled."""
        self._work = work

    def carry_out(self) -> None:
        """Do the work, unless the task was cancelled before. Never raises."""
        if not self.future.set_running_or_notify_cancel():
            return
        CALL.check = self._check
        try:
            result = self._work()
        except BaseException as error:  # raised by the task
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
        finally:
            del CALL.check

    def _check(self) -> None:
        if self.is_over:
            raise asyncio.CancelledError


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


class AsyncItems(RefusedLineOperators):
    r"""The lines of a text, each with its `\n`, or the pieces of a huge `split`."""

    def __init__(self, context: AsyncMonocontext, items: Any):
        self._context, self._items = context, items

    def __len__(self) -> int:
        """The number of lines of a whole text (no GET). Others raise `TypeError`: the loop would wait for GETs."""
        span = self._context._text.span
        if isinstance(self._items, LazyItems) or not span.is_whole or span.source.final_newline is None:
            raise TypeError("`len(items)` cannot await a read: await items.count()")
        return len(self._items)

    async def count(self) -> int:
        """The number of lines or pieces."""
        return await self._context._call(lambda: len(self._items))

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[Any]:
        """`await lines[i]` or `await lines[a:b]`: the text of these lines."""
        return self._context._call(lambda: self._items[key])

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Lines [start, stop) as one `str`."""
        return str(await self[start:stop])

    def __aiter__(self) -> AsyncIterator[str]:
        return self._context._each(lambda: iter(self._items), ITEMS_AT_ONCE)

    def __repr__(self) -> str:
        return f"<AsyncItems of {self._context.url or 'a text'}>"


class AsyncDocuments(RefusedMappingOperators):
    """The documents of a text by name. GETs are those of `Monocontext.documents`."""

    def __init__(self, context: AsyncMonocontext):
        self._context = context

    @property
    def _documents(self) -> Documents[Monocontext]:
        # above 8 million documents it may wait for a GET, so only `count` and `repr` ask in the thread of the loop
        return self._context._text.documents

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
        return self._context._each(lambda: iter(self._documents), ITEMS_AT_ONCE)

    def items(self) -> AsyncIterator[tuple[str, str]]:
        """The names and texts of the documents. Raises `ContextTooLarge` for a text above the limit."""
        return self._context._each(lambda: ((name, str(text)) for name, text in self._documents.items()), 1)

    def __repr__(self) -> str:
        return f"<AsyncDocuments: {self.count:,} of {self._context.url}>"
