"""`AsyncMonocontext`: the text as an awaitable thing. Each method is one call of the synchronous text, in the crew."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar

from monocontext.aio.crew import Abandoned, Crew
from monocontext.aio.stores import AsideStore, AsyncS3Store, connect
from monocontext.errors import ContextClosed
from monocontext.reader import Reader
from monocontext.stats import Stats
from monocontext.store import Store
from monocontext.stores import open_store
from monocontext.stores.address import parse
from monocontext.stores.s3_client import S3Options
from monocontext.text import Monocontext

if TYPE_CHECKING:
    from monocontext.explain import Explanation
    from monocontext.grep import Hit, Sought

T = TypeVar("T")

LINES_AT_ONCE = 100
"""Lines that one turn of an iteration takes: a turn costs ten times what a line does."""

_S3_OPTIONS = {field.name for field in fields(S3Options)}


class AsyncMonocontext:
    """A text of any size, read where the code looks, by any number of tasks of one event loop. Immutable.

    Offsets and lengths count characters. Results are those of `Monocontext`, and so are the costs in GETs: one cache,
    one request for all who want the same. Cancelling a task ends the requests that only it waited for.
    """

    def __init__(self, text: Monocontext, crew: Crew, held: Any = None):
        """Not for callers, who `open`."""
        self._text = text
        self._crew = crew
        self._held = held
        """The client to be left at the end, if it is ours."""

    @classmethod
    def open(cls, url: str | os.PathLike[str] | Store, *, client: Any = None, **options: Any) -> Opening:
        """Open the context at `s3://bucket/prefix`, a directory or `memory://name` (1 GET, for its root): await it, or
        `async with AsyncMonocontext.open(url) as context`.

        `options` are those of `Monocontext.open` (`cache_bytes`, `allow`, `generation`, `endpoint`, `region`, ...) save
        `unit`, `threads` and `transport`; `client` is an open aioboto3 client, and stays open. Errors are the same.
        """
        for name in ("unit", "threads", "transport", "workers", "keep_alive"):
            if name in options:
                raise TypeError(f"AsyncMonocontext.open takes no {name}")
        return Opening(lambda: cls._opened(url, client, options))

    @classmethod
    async def _opened(
        cls, url: str | os.PathLike[str] | Store, client: Any, options: dict[str, Any]
    ) -> AsyncMonocontext:
        crew = Crew()
        store, held, options = await _store(url, crew, client, options)
        try:
            text: Monocontext = await crew.call(lambda: Monocontext.open(store, workers=crew, **options))
        except BaseException as error:
            await crew.aclose(ContextClosed(f"opening failed: {error}"))
            await _leave(store, held)
            raise
        return cls(text, crew, (store, held))

    # -- what is known -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Characters (no GET)."""
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
        return self._text.url

    @property
    def generation(self) -> int:
        return self._text.generation

    @property
    def stats(self) -> Stats:
        return self._text.stats

    @property
    def lines(self) -> AsyncLines:
        """The same text by line: `async for line in context.lines`, `await context.lines[a:b]`."""
        return AsyncLines(self)

    # -- reading -----------------------------------------------------------------------------------------------------

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Characters [start, stop) as a `str`, bounds as those of a slice. `ContextTooLarge` above the limit."""
        return await self._call(lambda: _real(self._text, start, stop))

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[str]:
        """`await context[a:b]`, `await context[i]`: a real `str`; `ContextTooLarge` above the limit."""
        if isinstance(key, slice):
            if key.step is None or key.step == 1:
                return self.read(key.start or 0, key.stop)
            return self._call(lambda: str(self._text[key]))
        return self._call(lambda: self._text[key])

    async def find(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.find`; GETs as those of `Monocontext.find`."""
        return await self._call(lambda: self._text.find(sub, start, end))

    async def rfind(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.rfind`."""
        return await self._call(lambda: self._text.rfind(sub, start, end))

    async def index(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.index`."""
        return await self._call(lambda: self._text.index(sub, start, end))

    async def count(self, sub: str, start: int | None = None, end: int | None = None) -> int:
        """As `str.count`."""
        return await self._call(lambda: self._text.count(sub, start, end))

    async def contains(self, sub: str) -> bool:
        """`sub in text`, which cannot be awaited."""
        return await self._call(lambda: sub in self._text)

    async def startswith(self, prefix: str | tuple[str, ...], start: int | None = None, end: int | None = None) -> bool:
        """As `str.startswith`."""
        return await self._call(lambda: self._text.startswith(prefix, start, end))

    async def endswith(self, suffix: str | tuple[str, ...], start: int | None = None, end: int | None = None) -> bool:
        """As `str.endswith`."""
        return await self._call(lambda: self._text.endswith(suffix, start, end))

    async def equals(self, other: str) -> bool:
        """Whether the text is this one, streamed up to the first difference; `==` cannot be awaited."""
        return await self._call(lambda: self._text == other)

    def grep(self, pattern: Sought, **options: Any) -> AsyncIterator[Hit]:
        """The lines that a pattern matches, in order: `async for hit in context.grep(pattern)`. Options and GETs are
        those of `Monocontext.grep`, `executor` excepted."""
        if "executor" in options:
            raise TypeError("grep takes no executor here: the loop's own thread searches")
        return self._each(lambda: self._text.grep(pattern, **options), 1)

    async def explain(self, query: Sought, **options: Any) -> Explanation:
        """What `grep` of this query would read, as `Monocontext.explain`."""
        return await self._call(lambda: self._text.explain(query, **options))

    def chunks(self, characters: int = 100_000) -> AsyncIterator[str]:
        """The text in order in `str` pieces of at most `characters`, fetched ahead."""
        return self._each(lambda: self._text.chunks(characters), 1)

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch characters [start, stop) of each pair before they are asked for (returns at once)."""
        self._text.prefetch(ranges)

    def thinking(self) -> Any:
        """A context manager to hold while a model is being waited for, as `Monocontext.thinking`."""
        return self._text.thinking()

    async def refresh(self) -> Self:
        """Move to the newest generation, and return this text (1 GET, 1 more for each generation in between)."""
        await self._call(self._text.refresh)
        return self

    # -- lifetime ----------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Give back memory and connections; reading raises `ContextClosed` afterwards. Idempotent."""
        reader = self._text._reader
        if reader is not None:
            reader.close()
        await self._crew.aclose(ContextClosed(f"{self.url or 'this context'} is closed"))
        opened, self._held = self._held, None
        if opened is not None:
            await _leave(*opened)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- how ---------------------------------------------------------------------------------------------------------

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            return await self._crew.call(work)
        except asyncio.CancelledError:
            self._drop()
            raise

    def _drop(self) -> None:
        """End what only a cancelled caller waited for: its bytes are free for others."""
        reader = self._text._reader
        if isinstance(reader, Reader) and not self._crew.end(reader.unwanted(), Abandoned()):
            asyncio.get_running_loop().call_soon(self._drop)

    async def _each(self, make: Callable[[], Iterator[T]], most: int) -> AsyncIterator[T]:
        """The items of a synchronous iterator, up to `most` for each turn of the loop."""
        items: Iterator[T] | None = None

        def some() -> list[T]:
            nonlocal items
            if items is None:
                items = make()
            taken = []
            for item in items:
                taken.append(item)
                if len(taken) == most:
                    break
            return taken

        try:
            while taken := await self._call(some):
                for item in taken:
                    yield item
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()  # waits for nothing: it drops what was fetched ahead
                self._drop()


class Opening:
    """A context that is to be opened: by `await`, or by `async with`, which closes it again."""

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


class AsyncLines:
    r"""The lines of a text, which end with `\n` and keep it."""

    def __init__(self, context: AsyncMonocontext):
        self._context = context
        self._lines = context._text.lines

    def __len__(self) -> int:
        """Lines (no GET)."""
        return len(self._lines)

    def __getitem__(self, key: SupportsIndex | slice) -> Awaitable[str]:
        """`await lines[i]`, `await lines[a:b]`: the text of these lines."""
        return self._context._call(lambda: str(self._lines[key]))

    async def read(self, start: int = 0, stop: int | None = None) -> str:
        """Lines [start, stop) as one `str`."""
        return await self[start:stop]

    def __aiter__(self) -> AsyncIterator[str]:
        return self._context._each(lambda: iter(self._lines), LINES_AT_ONCE)

    def __repr__(self) -> str:
        return f"<AsyncLines: {len(self):,} lines of {self._context.url or 'a text'}>"


def _real(text: Monocontext, start: int, stop: int | None) -> str:
    return str(text[start:stop])  # a part above the limit is a view, whose `str` says what to do


async def _store(
    url: str | os.PathLike[str] | Store, crew: Crew, client: Any, options: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """The store to read, what to leave at the end, and the options that are left."""
    if isinstance(url, str | os.PathLike):
        address = parse(url)
        if address.scheme == "s3":
            given = {name: options[name] for name in _S3_OPTIONS & options.keys() if options[name] is not None}
            if client is not None and given:
                raise TypeError(f"a ready client excludes {', '.join(sorted(given))}")
            reach = S3Options(**given)
            held = None
            if client is None:
                client, held = await connect(reach)
            rest = {name: value for name, value in options.items() if name not in _S3_OPTIONS}
            return AsyncS3Store(address.place, address.path, crew, client, reach), held, rest
        if client is not None:
            raise TypeError(f"a client reads s3:// alone, not {address}")
        url = open_store(url, **{name: options.pop(name) for name in _S3_OPTIONS & options.keys()})
    store = AsideStore(url, crew)
    if store.is_near:
        options = {"hedge": None} | options
    return store, None, options


async def _leave(store: Any, held: Any) -> None:
    if isinstance(store, AsideStore):
        store.close()
    if held is not None:
        await held.__aexit__(None, None, None)
