"""`AsyncMonocontext`, whose slices and methods are awaited. Each runs the synchronous method in a thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Any, Literal, NoReturn, Self, SupportsIndex, TypeVar, Unpack

from monocontext.aio.client import BlockingClient
from monocontext.aio.methods import DocumentMethods, TextMethods
from monocontext.engine.fetch.workers import CALL, MAX_RUNNING, Threads
from monocontext.engine.open import CacheOptions, RootOptions, check_place
from monocontext.options import ReachOptions, validate_options
from monocontext.stores.address import parse
from monocontext.stores.protocol import Store
from monocontext.stores.s3.store import S3Store
from monocontext.text.lazy_kinds import LazyItems, LazyText
from monocontext.text.monocontext import Monocontext

_T = TypeVar("_T")

ITEMS_AT_ONCE = 100
"""The lines or names that an iteration fetches at a time: a hop to a thread costs as much as some ten lines."""
_PART = "read a part first, await text[a:b], or all of it, await text.read()"


class AsyncOptions(CacheOptions, RootOptions, ReachOptions, total=False):
    """Options of `AsyncMonocontext.open` other than `client` and `shape`."""

    region: str | None


def _refusal(what: str, instead: str) -> Callable[..., NoReturn]:
    """A method that raises `TypeError`. Without it `in` would iterate over coroutines for ever, for example."""

    def refuse(*_: object) -> NoReturn:
        raise TypeError(f"{what} cannot await a read: {instead}")

    return refuse


class AsyncMonocontext(TextMethods):
    """A text of any size, read by any number of tasks. Immutable.

    Offsets and lengths count characters. Tasks share a cache, and requests for the same bytes. The work of a cancelled
    task ends in its thread when it next waits for data.
    """

    def __init__(self, text: Any, threads: Threads, opening: Callable[[], Any] | None = None):
        """Only `open` calls this, with the work that is to give the text, or a list or dict of its documents."""
        self._text = self._shaped = text
        self._threads: Threads | None = threads
        self._opening = opening

    @classmethod
    @validate_options(AsyncOptions)
    def open(
        cls,
        url: str | os.PathLike[str] | Store,
        *,
        client: Any = None,
        shape: Literal["text", "list", "dict"] = "text",
        **options: Unpack[AsyncOptions],
    ) -> Self:
        """Open the context at `s3://bucket/prefix`, a directory or `memory://name` (1 GET, for its root).

        Use `await AsyncMonocontext.open(url)`, or `async with AsyncMonocontext.open(url) as context`. `options` and
        errors are those of `Monocontext.open`, without `unit`, `workers`, `transport` and `keep_alive`.
        `client` is an open aioboto3 client, which sends the requests and stays open. `shape` is what `run` passes to
        its function: the text, or a lazy list or dict of its documents.
        """
        check_place(url)
        if client is not None:
            address = parse(url) if isinstance(url, str | os.PathLike) else None
            if address is None or address.scheme != "s3":
                raise TypeError(f"a client can only read s3:// URLs, not {url}")
            given = {name for name, value in options.items() if value is not None}
            if refused := sorted({"endpoint", "region", "profile", "path_style", "anonymous"} & given):
                raise TypeError(f"{', '.join(refused)} cannot be combined with client")
            url = S3Store(address.place, address.path, client=BlockingClient(client))
        opening: Callable[..., Any] = Monocontext.open
        return cls(None, Threads(MAX_RUNNING), lambda: opening(url, shape=shape, **options))

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        if self._opening is not None:
            self._shaped = await self._call(self._opening, lambda unused: unused.close())
            self._text = self._shaped if isinstance(self._shaped, Monocontext) else self._shaped.text
            self._opening = None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release memory and connections. Later reads raise `ContextClosed`. Idempotent."""
        self._text.close()
        self._threads = None  # they end with the last text that has them

    def __len__(self) -> int:
        """The number of characters (no GET)."""
        return len(self._text)

    def __repr__(self) -> str:
        return f"<Async{repr(self._text).partition(';')[0].strip('<>')}>"

    @property
    def lines(self) -> AsyncItems:
        """The same text by line: `async for line in context.lines`, `await context.lines[a:b]`."""
        return AsyncItems(self, self._text.lines)

    @property
    def documents(self) -> AsyncDocuments:
        """The documents of the text: `await context.documents[name]`, `async for name in context.documents`."""
        return AsyncDocuments(self)

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[str]:
        """`await context[a:b]` or `await context[i]`: a `str`. Raises `ContextTooLarge` above the limit."""
        return self._call(lambda: str(self._text[key]))  # above the limit a slice is a view, whose `str` raises

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Characters [start, stop) as a `str`, with the bounds of a slice. Raises `ContextTooLarge` above the limit."""
        return await self[start:stop]

    async def contains(self, sub: str) -> bool:
        """Whether `sub` occurs in the text. The operator `in` raises."""
        return await self._call(lambda: sub in self._text)

    async def equals(self, other: str) -> bool:
        """Whether the text equals `other`; reads up to the first difference. The operator `==` raises."""
        return await self._call(lambda: bool(self._text == other))

    async def run(self, function: Callable[[Any], _T]) -> _T:
        """Run synchronous code, `function(text)`, in a thread, and return its result.

        Code for a `Monocontext`, or for the list or dict that `shape` selects, works unchanged.
        """
        return await self._call(lambda: function(self._shaped))

    __contains__ = _refusal("`x in text`", "await text.contains(x)")
    __iter__ = _refusal("a loop over a text", "async for piece in text.chunks(), or async for line in text.lines")
    __reversed__ = _refusal("reversed(text)", "await text.read() gives a str to go through")
    __lt__ = __le__ = __gt__ = __ge__ = _refusal("a comparison of texts", _PART)
    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refusal("`+`, `*` or `%` of a text", _PART)
    __str__ = __format__ = __bytes__ = _refusal("str(text), bytes(text) or an f-string", _PART)
    __hash__ = _refusal("hash(text)", "use text.url as the key")

    def __eq__(self, other: object) -> Any:
        if isinstance(other, str | LazyText | AsyncMonocontext) and other is not self:
            raise TypeError("`text == x` cannot await a read: await text.equals(x), which takes a str")
        return other is self or NotImplemented

    async def _call(self, work: Callable[[], _T], drop: Callable[[_T], None] | None = None) -> _T:
        """The result of work in a thread. `drop` gets a result that comes when the task is cancelled."""
        if self._threads is None:
            return work()  # a closed text raises at once
        future: Future[_T] = Future()
        is_over = False

        def check() -> None:
            if is_over:
                raise asyncio.CancelledError

        def carry_out() -> None:
            if not future.set_running_or_notify_cancel():
                return
            CALL.check = check
            try:
                result = work()
            except BaseException as error:  # raised by the task
                future.set_exception(error)
            else:
                future.set_result(result)
            finally:
                del CALL.check

        self._threads.run(carry_out)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if drop:
                future.add_done_callback(lambda done: done.cancelled() or done.exception() or drop(done.result()))
            raise
        finally:
            is_over = True

    async def _await(self, work: Callable[[], Any]) -> Any:
        """Like `_call`, with the lazy texts of the result made asynchronous."""
        result = await self._call(work)
        return tuple([self._wrap(item) for item in result]) if type(result) is tuple else self._wrap(result)

    def _wrap(self, result: Any) -> Any:
        if result is self._text:
            return self
        if isinstance(result, Monocontext) and self._threads is not None:
            return AsyncMonocontext(result, self._threads)
        return AsyncItems(self, result) if isinstance(result, LazyItems) else result

    async def _each(self, make: Callable[[], Iterator[_T]], most: int) -> AsyncIterator[_T]:
        """The items of a synchronous iterator, up to `most` at a time."""
        items = await self._call(make)
        while batch := await self._call(lambda: list(islice(items, most))):
            for item in batch:
                yield item


class AsyncItems:
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

    def __aiter__(self) -> AsyncIterator[str]:
        return self._context._each(lambda: iter(self._items), ITEMS_AT_ONCE)

    __contains__ = _refusal("`x in lines`", "async for line in lines, or text.grep(x, fixed=True)")
    __iter__ = _refusal("a loop over lines", "async for line in lines")
    __reversed__ = _refusal("reversed(lines)", "await lines[a:b] gives a str to go through")


class AsyncDocuments(DocumentMethods):
    """The documents of a text by name. GETs are those of `Monocontext.documents`."""

    def __init__(self, context: AsyncMonocontext):
        self._context = context
        self._call, self._await, self._each = context._call, context._await, context._each

    @property
    def _text(self) -> Any:
        # above 8 million documents it may wait for a GET, so only `count` asks in the thread of the loop
        return self._context._text.documents

    def __getitem__(self, name: str) -> Awaitable[str]:
        """`await documents[name]`: the text as a `str`. Raises `KeyError`, and `ContextTooLarge` above the limit."""
        return self._call(lambda: str(self._text[name]))

    async def contains(self, name: str) -> bool:
        """Whether a document has this name."""
        return await self._call(lambda: name in self._text)

    def __aiter__(self) -> AsyncIterator[str]:
        """The names, in the order of the text."""
        return self._each(lambda: iter(self._text), ITEMS_AT_ONCE)

    def items(self) -> AsyncIterator[tuple[str, str]]:
        """The names and texts of the documents. Raises `ContextTooLarge` for a text above the limit."""
        return self._each(lambda: ((name, str(text)) for name, text in self._text.items()), 1)

    __contains__ = _refusal("`name in documents`", "await documents.contains(name)")
    __iter__ = _refusal("a loop over documents", "async for name in documents, or name, text in documents.items()")
    __len__ = __bool__ = _refusal("len(documents)", "documents.count counts all")
