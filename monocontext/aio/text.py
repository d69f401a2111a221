"""Read texts asynchronously: `AsyncMonocontext` runs the slices and methods of `Monocontext` in threads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from itertools import islice
from typing import Any, Literal, NoReturn, Self, SupportsIndex, TypeVar, Unpack

from monocontext.aio.methods import DocumentMethods, LineMethods, TextMethods
from monocontext.engine.fetch.workers import CALL, MAX_RUNNING, Threads
from monocontext.engine.open import CacheOptions, RootOptions, check_place
from monocontext.options import ReachOptions, validate_options
from monocontext.stores.protocol import Store
from monocontext.stores.s3.blocking_client import BlockingClient
from monocontext.text.documents.by_name import Documents
from monocontext.text.lazy_kinds import LazyContext, LazyItems, LazyText
from monocontext.text.lines import LineView
from monocontext.text.monocontext import Monocontext

_T = TypeVar("_T")
_READ_FIRST = "first read a part with `await text[a:b]`, or all of it with `await text.read()`"


class AsyncOptions(CacheOptions, RootOptions, ReachOptions, total=False):
    """The options of `AsyncMonocontext.open`."""

    region: str | None


def _refusal(name: str, instead: str) -> Callable[..., NoReturn]:
    """A method that raises `TypeError`. Without it, `x in text`, for example, would loop over coroutines for ever."""

    def refuse(*_: object) -> NoReturn:
        raise TypeError(f"{name} cannot await a read: {instead}")

    return refuse


class _Awaiting:
    """An asynchronous object: its methods call those of the synchronous object `_text` in threads."""

    def __init__(self, text: Monocontext | LineView | LazyItems | Documents[Monocontext] | None, threads: Threads):
        self._text: Any = text  # None while it is not open
        self._threads = threads

    def _wrap(self, result: Any) -> Any:
        """The asynchronous form of a synchronous result, or of each item of a tuple."""
        return tuple(map(self._wrap_one, result)) if type(result) is tuple else self._wrap_one(result)

    def _wrap_one(self, result: Any) -> Any:
        return str(result) if isinstance(result, LazyText) else result

    async def _call(self, work: Callable[[], _T], undo: Callable[[_T], object] | None = None) -> _T:
        """Run work in a thread and return its result. If the task is cancelled, the work ends when it next waits for
        data. If it still returns a result, `undo` is called with that, to close what was opened."""
        future: Future[_T] = Future()
        awaited = asyncio.wrap_future(future)

        def undo_result(done: Future[_T]) -> None:
            if undo is not None and not done.cancelled() and done.exception() is None:
                undo(done.result())

        self._threads.run(lambda: _run_for_future(work, future, awaited.cancelled))
        try:
            return await awaited
        except asyncio.CancelledError:
            future.add_done_callback(undo_result)
            raise

    async def _each(self, work: Callable[[], Iterable[Any]], at_once: int) -> AsyncIterator[Any]:
        """Yield the items of the iterable that `work` returns; each call of a thread fetches `at_once` of them."""
        items = await self._call(lambda: map(self._wrap, work()))
        while batch := await self._call(lambda: list(islice(items, at_once))):
            for item in batch:
                yield item


def _run_for_future(work: Callable[[], _T], future: Future[_T], is_cancelled: Callable[[], bool]) -> None:
    """Run work in this thread, and set the result of a future. If the task that awaits the future is cancelled, the
    work ends when it next waits for data."""

    def check() -> None:
        if is_cancelled():
            raise asyncio.CancelledError

    if future.set_running_or_notify_cancel():
        CALL.raise_if_abandoned = check
        try:
            future.set_result(work())
        except BaseException as error:  # the task raises it, but a future takes no StopIteration
            future.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)
        finally:
            del CALL.raise_if_abandoned


class AsyncMonocontext(_Awaiting, TextMethods):
    """A text of any size, read by any number of tasks, which share its cache. Immutable. Lengths count characters."""

    def __init__(self, text: Monocontext | None, threads: Threads, opening: Callable[[], LazyContext] | None = None):
        """Called by `open`. `opening` opens the text, or the list or dict of its documents; None for an open text."""
        super().__init__(text, threads)
        self._context: LazyContext | None = text
        """What `run` passes to its function: the text, or the list or dict of its documents; None until it is open."""
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

        Use `await` or `async with`. Takes the options of `Monocontext.open` except `unit`, `workers`, `transport` and
        `keep_alive`, and raises the same errors. `client`: a client of aioboto3, which is never closed. `shape`: what
        `run` passes to its function.
        """
        check_place(url)
        arguments: dict[str, Any] = {**options, "shape": shape}
        if client is not None:
            arguments["client"] = BlockingClient(client)
        return cls(None, Threads(MAX_RUNNING), lambda: Monocontext.open(url, **arguments))

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        if self._opening is not None:
            context: Any = await self._call(self._opening, lambda context: context.close())
            self._context, self._opening = context, None
            self._text = context if isinstance(context, Monocontext) else context.text
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release memory and connections. Later reads raise `ContextClosed`. Idempotent."""
        if self._text is not None:
            self._text.close()

    def __repr__(self) -> str:
        shown = "Monocontext, not open" if self._text is None else repr(self._text).partition(";")[0].strip("<>")
        return f"<Async{shown}>"

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[str]:
        """`await context[a:b]` or `await context[i]`: a `str`. Raises `ContextTooLarge` above the limit."""
        return self._call(lambda: str(self._text[key]))  # above the limit a slice is a view, whose `str` raises

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Characters [start, stop) as a `str`, with the bounds of a slice. Raises `ContextTooLarge` above the limit."""
        return await self[start:stop]

    async def equals(self, other: str) -> bool:
        """Whether the text equals `other`; reads up to the first difference. The operator `==` raises `TypeError`."""
        return await self._call(lambda: bool(self._text == other))

    async def run(self, function: Callable[[Any], _T]) -> _T:
        """Call `function` in a thread with the synchronous text, list or dict (see `open`), and return its result."""
        return await self._call(lambda: function(self._context))

    __contains__ = _refusal("`x in text`", "await text.contains(x)")
    __iter__ = __reversed__ = _refusal("a loop over a text", "use `async for` over text.chunks() or text.lines")
    __lt__ = __le__ = __gt__ = __ge__ = _refusal("a comparison of texts", _READ_FIRST)
    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refusal("`+`, `*` or `%` of a text", _READ_FIRST)
    __str__ = __format__ = __bytes__ = _refusal("str(text), bytes(text) or an f-string", _READ_FIRST)
    __hash__ = _refusal("hash(text)", "use text.url as the key")

    def __eq__(self, other: object) -> Any:
        if isinstance(other, str | LazyText | AsyncMonocontext) and other is not self:
            raise TypeError("`text == x` cannot await a read: await text.equals(x), which takes a str")
        return other is self or NotImplemented  # other types never equal a text, so nothing is read

    def _wrap_one(self, result: Any) -> Any:
        if result is self._text:
            return self
        if isinstance(result, Monocontext):
            return AsyncMonocontext(result, self._threads)
        if isinstance(result, LineView | LazyItems):
            return AsyncItems(result, self._threads)
        return AsyncDocuments(result, self._threads) if isinstance(result, Documents) else result


class AsyncItems(_Awaiting, LineMethods):
    r"""The lines of a text, each with its `\n`, or the pieces of a huge `split`."""

    __len__ = __bool__ = _refusal("len(lines) or bool(lines)", "await lines.count() counts them")
    __contains__ = _refusal("`x in lines`", "use `async for` over lines or text.grep(x, fixed=True)")
    __iter__ = __reversed__ = _refusal("a loop over lines", "use `async for` over lines")


class AsyncDocuments(_Awaiting, DocumentMethods):
    """The documents of a text by name. GETs are those of `Monocontext.documents`."""

    __contains__ = _refusal("`name in documents`", "await documents.contains(name)")
    __iter__ = __reversed__ = _refusal("a loop over documents", "use `async for` over documents or documents.items()")
    __len__ = __bool__ = _refusal("len(documents) or bool(documents)", "documents.count counts all")
