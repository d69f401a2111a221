"""`Monocontext`: a string that lives in a store.

Equality with `str` is what correct means here, operation by operation. Small results are real `str`; results that could
be as large as the text are views of it, or a `ContextTooLarge` that says what to write instead.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, cast, overload

from monocontext.codeahead import CodeAhead, Thinking, pairs_of, prefetch
from monocontext.errors import NotAContext, NotPicklable
from monocontext.hedging import Hedge
from monocontext.opening import Opened
from monocontext.prefetch import Prefetch, checked
from monocontext.reader import Reader
from monocontext.readlog import ReadLog
from monocontext.search import Window
from monocontext.source import OPEN, Source, Span, Stored
from monocontext.stats import Stats
from monocontext.store import Store
from monocontext.stores import open_store
from monocontext.stores.disk_cache import CAPACITY_BYTES
from monocontext.strlike import StrLike, iterate
from monocontext.textfile import OpenOrFile
from monocontext.workers import Workers

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from monocontext.explain import Explanation
    from monocontext.grep import Hit, Sought
    from monocontext.lines import Lines
    from monocontext.namespace import Kit
    from monocontext.served import ReaderServer, ServedReader
    from monocontext.textfile import ContextFile

MATERIALIZE_LIMIT = 64 << 20
"""Characters that one real `str` may have: at most 256 MiB of memory."""
CACHE_BYTES = 256 << 20

SPARSE_STEP = 4 << 20
"""A step from which on the characters of a slice are read one by one: what lies between is not fetched."""

_COLD = (0, 0, b"")


class Monocontext(StrLike, Sequence[str]):
    """A text of any size, read where the code looks. Immutable, safe for use by many threads.

    Offsets, lengths and slices count characters (code points), as those of `str`. `ctx.lines` addresses the same text
    by line. Costs below are GETs with nothing cached; what is cached costs none. An index page covers 1 GB of text and
    is fetched once.
    """

    __slots__ = ("_code", "_hot", "_limit", "_opened", "_recipe", "_source", "_start", "_stop", "_tried")

    _source: Source
    _start: int
    _stop: int
    _limit: int
    _opened: Opened | None
    _recipe: tuple[Any, ...] | None
    """How a derived text is derived: the text it comes from, the method, its arguments."""
    _hot: tuple[int, int, Any]
    """Characters [low, high) of this text and the bytes or `str` that hold them: the frame last read."""
    _tried: int
    """Number of the frame last read."""
    _code: CodeAhead | None
    """What code is expected to read; made when a model first writes some."""

    def __new__(
        cls,
        bucket: str,
        prefix: str = "",
        manifest_name: str = "manifest.json",
        region: str | None = None,
        encoding: str = "utf-8",
        errors: str = "strict",
        client: object | None = None,
        enable_logging: bool = False,
        **options: Any,
    ) -> Any:
        """DeepRecurse's constructor: `Monocontext("bucket", "prefix/")` (1 GET).

        On a DeepRecurse manifest the result is addressed in lines, as the original's; on a context of ours it is what
        `Monocontext.open` returns; options are those of `open`. `enable_logging` is accepted and ignored: see `stats`.
        """
        from monocontext.legacy import open_deeprecurse

        return open_deeprecurse(cls.open, bucket, prefix, manifest_name, region, encoding, errors, client, **options)

    @classmethod
    @overload
    def open(
        cls, url: str | os.PathLike[str] | Store, *, unit: Literal["characters", "chars"] = ..., **options: Any
    ) -> Monocontext: ...
    @classmethod
    @overload
    def open(cls, url: str | os.PathLike[str] | Store, *, unit: Literal["lines"], **options: Any) -> Lines: ...
    @classmethod
    @overload
    def open(cls) -> ContextFile: ...
    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str] | Store | None = None,
        *,
        unit: str = "characters",
        cache_bytes: int = CACHE_BYTES,
        materialize_limit: int = MATERIALIZE_LIMIT,
        allow: Iterable[str | os.PathLike[str]] = (),
        generation: int | None = None,
        preload: bool = False,
        threads: bool = True,
        hedge: Hedge | None = "p99",
        cache_dir: str | os.PathLike[str] | None = None,
        cache_dir_bytes: int = CAPACITY_BYTES,
        prefetch: Prefetch = "all",
        workers: Workers | None = None,
        **store_options: Any,
    ) -> Monocontext | Lines | ContextFile:
        """Open the context at `s3://bucket/prefix`, `file:///dir`, a path, or `memory://name` (1 GET, for its root).

        - `unit="lines"`: the same text addressed by line, `ctx.lines`; also opens a DeepRecurse manifest
        - `cache_bytes`: memory for decoded text and index pages; requests in flight take up to three eighths of that on
          top, and at least 24 MiB
        - `materialize_limit`: characters up to which a result becomes one real `str`
        - `allow`: places outside the context (buckets, folders) that its virtual segments may be read from
        - `generation`: open this one instead of the newest
        - `preload`: fetch everything now, in parallel; needs a cache as large as the text
        - `threads`: `False` starts none: requests are carried out by the caller, one after another
        - `hedge`: which requests are asked for once more when their answer is late, so that one straggler does not
          hold up a whole slice: those beyond the p99 and three medians of their size ("p99", at most 2 % more GETs),
          beyond the p95 ("p95", at most 6 %), or `None`. Memory, disks and what answers within a
          millisecond are never asked twice
        - `cache_dir`: a folder, open to its owner only, that keeps what is read for the next process, at most
          `cache_dir_bytes` and not the last 5 % of the disk. What lies there is not asked for again; roots always are
        - `prefetch`: what is fetched before anybody asks for it: what code says that it will read ("code": `hint`,
          `prefetch`, cells of a REPL), what follows from reads before ("history"), both ("all"), or nothing ("off").
          Opening fetches nothing ahead: the head and the tail come when a model first thinks or writes
        - `store_options`: `endpoint`, `region`, `profile`, `path_style`, `anonymous`, `transport`, `keep_alive`,
          `client` (`stores.open_store`)

        Raises `NotFound`, `NotAContext`, `AccessDenied`, `UnsupportedFormat`, `DamagedData`, `InvalidUrl`.

        Without a URL, of a text that is open: `context.open()` is a seekable text file over it, a `ContextFile`.
        """
        if url is None:
            raise TypeError("open() takes a URL; of a text that is open, context.open() is a file over it")
        if unit not in ("characters", "chars", "lines"):
            raise ValueError(f"unit is 'characters' or 'lines', not {unit!r}")
        checked(prefetch)
        ours = isinstance(url, str | os.PathLike)
        store = open_store(url, **store_options) if isinstance(url, str | os.PathLike) else url
        opened = Opened(
            store,
            cache_bytes=cache_bytes,
            allow=allow,
            store_options=store_options,
            workers=workers,
            owns_store=ours,
            threads=threads,
            hedge=hedge,
            cache_dir=cache_dir,
            cache_dir_bytes=cache_dir_bytes,
            prefetch=prefetch,
        )
        try:
            reader = opened.reader(generation)
        except NotAContext:
            if unit == "lines":
                from monocontext.legacy import legacy_lines

                return legacy_lines(store, cache_bytes=cache_bytes, threads=threads, cache_dir=cache_dir)
            raise
        text = cls._of(Span(Stored(reader), 0, reader.characters), materialize_limit, opened)
        if preload:
            reader.preload()
        return text.lines if unit == "lines" else text

    @classmethod
    def _of(
        cls, span: Span, limit: int, opened: Opened | None = None, recipe: tuple[Any, ...] | None = None
    ) -> Monocontext:
        self = object.__new__(cls)
        self._source, self._start, self._stop = span.source, span.start, span.stop
        self._limit = limit
        self._opened = opened
        self._recipe = recipe
        self._hot = _COLD
        self._tried = -1
        self._code = None
        return self

    # -- length, items, slices -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Characters (no GET; of a derived text that may have changed lengths, one pass)."""
        if self._stop == OPEN:
            self._stop = self._source.characters
        return self._stop - self._start

    def __bool__(self) -> bool:
        return next(self.span.texts(), "") != "" if self._stop == OPEN else self._stop > self._start

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> str: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str:
        """A character, or a slice.

        A slice of up to `materialize_limit` characters is a `str`, a longer one is a view that is equal to it and costs
        nothing until it is read; a longer one with a step is `ContextTooLarge`. GETs: 1 for an item; for a slice
        ceil(stored / part) + 1 in parallel, part = stored / 16 within 1 and 8 MiB.
        """
        low, high, data = self._hot
        if isinstance(key, slice):
            start, stop = key.start, key.stop
            if key.step is None and type(start) is int and type(stop) is int and low <= start <= stop <= high:
                piece = data[start - low : stop - low]
                return piece if type(piece) is str else str(piece, "ascii")
            size = self._stop - self._start  # endless where it is not known: then `_slice` finds out what it needs
            if key.step is None and type(start) is int and type(stop) is int and 0 <= start <= stop <= size < OPEN // 2:
                return self._part(start, stop)
            return self._slice(key)
        if type(key) is int and low <= key < high:
            piece = data[key - low : key - low + 1]
            return piece if type(piece) is str else str(piece, "ascii")
        return self._item(key)

    def _item(self, key: SupportsIndex) -> str:
        if not hasattr(key, "__index__"):
            raise TypeError(f"string indices must be integers, not '{type(key).__name__}'")
        index = key.__index__()
        size = self._length_up_to(index + 1) if index >= 0 else len(self)
        if not -size <= index < size:
            raise IndexError("string index out of range")
        if index < 0:
            index += size
        return self._read(index, index + 1)

    def _slice(self, key: slice) -> str:
        if self._stop == OPEN and (found := self._slice_of_open(key)) is not None:
            return found
        start, stop, step = key.indices(len(self))
        if step == 1:
            return self._part(start, max(start, stop))
        positions = range(start, stop, step)
        if not positions:
            return ""
        low, high = min(positions[0], positions[-1]), max(positions[0], positions[-1]) + 1
        if len(positions) > self._limit:
            raise self._too_large(f"a slice with step {step}", len(positions), "take context[a:b] first, then the step")
        if abs(step) > SPARSE_STEP:
            return "".join(self._read(at, at + 1) for at in positions)
        return _stepped(self.span.windows(low, high, reverse=step < 0), positions, self._start)

    def _slice_of_open(self, key: slice) -> str | None:
        """A slice whose ends count from the beginning, read no further than it reaches."""
        bounds = [bound if bound is None else operator.index(bound) for bound in (key.start, key.stop, key.step)]
        start, stop, step = bounds
        if (start or 0) < 0 or (stop or 0) < 0 or step not in (None, 1):
            return None
        if stop is None:
            end = self._end_after(start or 0)
            return self._part(start or 0, end) if end == OPEN else None
        start, stop, _ = slice(start, stop).indices(self._length_up_to(stop))
        return self._part(start, max(start, stop))

    def _length_up_to(self, most: int) -> int:
        """The length; of a text whose length is not known, `most` where it has so many, and it is read no further."""
        if self._stop == OPEN and most > 0 and self._source.read(self._start + most - 1, self._start + most):
            return most
        return len(self)

    def _end_after(self, start: int) -> int:
        """The end; OPEN where it is not known, and what follows `start` is more than one `str` may hold."""
        enough = start + self._limit + 1
        return OPEN if self._stop == OPEN and self._length_up_to(enough) >= enough and self._stop == OPEN else len(self)

    def _read(self, start: int, stop: int) -> str:
        """Characters [start, stop) of this text; leaves the frame that they lie in at hand."""
        if stop <= start:
            return ""
        source = self._source
        if not isinstance(source, Stored) or stop - start > 1 << 20:
            return source.read(self._start + start, self._start + stop)
        text = source.reader.within(self._start + start, self._start + stop)
        if text is None:
            return source.read(self._start + start, self._start + stop)
        frame = text.frame
        low = frame.start - self._start
        high = low + frame.characters
        if source.reader.log:
            return text.slice(start - low, stop - low)  # each read is written down: none goes round the reader
        if text.is_ascii:
            self._hot = _clipped(low, high, len(self), text.data)
        elif self._tried == frame.number:  # touched twice: worth decoding whole
            self._hot = _clipped(low, high, len(self), text.text)
        self._tried = frame.number
        return text.slice(start - low, stop - low)

    def view(
        self, start: int | None = None, stop: int | None = None, *, materialize_limit: int | None = None
    ) -> Monocontext:
        """`context[start:stop]` as a text of this kind whatever its size: nothing is read.

        `materialize_limit`: another one than this text has.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        view = self._view(start, max(start, stop))
        if materialize_limit is None:
            return view
        return self._of(view.span, materialize_limit, view._opened, view._recipe)

    def _view(self, start: int, stop: int) -> Monocontext:
        if start == 0 and stop in (OPEN, self._stop - self._start):
            return self._kept
        span = Span(self._source, self._start + start, OPEN if stop == OPEN else self._start + stop)
        return self._of(span, self._limit, self._opened, self._recipe)

    def _part(self, start: int, stop: int) -> str:
        if stop - start <= self._limit:
            return self._read(start, max(start, stop))
        return cast(str, self._view(start, stop))

    def _prefix(self, stop: int) -> Monocontext:
        return self._view(0, stop)

    def _rest(self, start: int) -> Monocontext:
        return self._view(start, len(self))

    @property
    def _kept(self) -> Monocontext:
        if self._opened is None or not self._is_whole:
            return self
        return self._of(self.span, self._limit, self._opened, self._recipe)

    def _over(self, span: Span, recipe: tuple[Any, ...]) -> Monocontext:
        return self._of(span, self._limit, None, recipe)

    @property
    def span(self) -> Span:
        """Where this text lies in its source."""
        return Span(self._source, self._start, self._stop)

    # -- iteration -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[str]:
        """Characters in order, streamed (1 GET for about 8 MiB stored)."""
        return iterate(self.span)

    def __reversed__(self) -> Iterator[str]:
        """Characters from the last to the first, streamed."""
        return iterate(self.span, reverse=True)

    def chunks(self, characters: int = 100_000) -> Iterator[str]:
        """The text in order in real `str` pieces of at most `characters`, fetched ahead of the caller.

        A piece ends after a newline where there is one in its last eighth. Joined they are the text.
        """
        if characters < 1:
            raise ValueError(f"chunks takes 1 character or more, not {characters}")
        return _pieces(self.span.texts(), characters)

    @property
    def lines(self) -> Lines:
        r"""The same text addressed by line: `lines[i]`, `lines[a:b]`, iteration; lines keep the `\n` they end with."""
        from monocontext.lines import Lines, TextLines

        return Lines(TextLines(self))

    # -- search by line --------------------------------------------------------------------------------------------

    def grep(
        self,
        pattern: Sought,
        *,
        ignore_case: bool = False,
        fixed: bool = False,
        max_hits: int | None = None,
        start: int | None = None,
        stop: int | None = None,
        executor: Executor | None = None,
    ) -> Iterator[Hit]:
        r"""The lines that a pattern matches, in order: `Hit(offset, line_number, line)` for each; streams.

        - `pattern`: a regular expression, one compiled by `re` or `monocontext.regex`, or a list of these: any of them
        - `fixed`: the pattern is a text to be found as it is
        - `max_hits`: end after so many
        - `start`, `stop`: only lines that begin at characters [start, stop)
        - `executor`: any `concurrent.futures.Executor`, whose workers then search parts of the text

        Each line is searched by itself, as `grep` does: it ends before `\n`, and no match reaches over that. `offset`
        is the character at which the first match in the line begins, `line_number` counts from 1, `line` has no `\n`.

        GETs: what search filters need to tell (up to 16 for a literal and 16 GiB of text, at once), then 1 for about
        8 MiB stored of frames in which a match may begin, and 1 for what else of a line lies in other frames. Where no
        filter can tell (`explain`) all frames are read. `ContextTooLarge` for a hit in a line of more characters than
        `materialize_limit`. A view whose offsets are its own is `context.view(a, b)`.
        """
        from monocontext.grep import grep, linewise

        sought = linewise(pattern, ignore_case=ignore_case, fixed=fixed)
        if max_hits is not None and operator.index(max_hits) < 0:
            raise ValueError(f"max_hits is 0 or more, not {max_hits}")
        first, last = 0, None
        if start is not None or stop is not None:
            first, end, _ = slice(start, stop).indices(len(self))
            last = max(first, end) if end < len(self) else None
        if executor is not None:
            from monocontext.grep_parts import grep_parts

            return grep_parts(self, sought, first, last, max_hits, executor)
        return grep(self.span, sought, self._limit, first, last, max_hits)

    def explain(self, query: Sought, *, ignore_case: bool = False, fixed: bool = False) -> Explanation:
        """What `grep` of this query would read, without reading any text; prints well.

        GETs: what search filters need to tell, and the index pages of the frames that they name.
        """
        from monocontext.explain import explain
        from monocontext.grep import linewise

        return explain(self.span, linewise(query, ignore_case=ignore_case, fixed=fixed))

    def __repr__(self) -> str:
        """Constant size, no GET: what it is, how large, where."""
        size = "?" if self._stop == OPEN else f"{len(self):,}"
        place = f" of {self.url}" if self.url else ""
        if self._recipe:
            place = f" by {self._recipe[1]}()"
        elif not self._is_whole:
            place = f" [{self._start:,}:{self._stop:,}]{place}"
        return f"<Monocontext {size} characters{place}; a lazy str: slice, find, split, iterate it>"

    def repl_namespace(self) -> Kit:
        """What makes code in a REPL unable to tell this text from a `str`: names for its namespace, and a pass over its
        code (no GET). See `monocontext.namespace`."""
        from monocontext.namespace import Kit

        reader = self._reader
        return Kit(follower=self._code_ahead() if reader is None or isinstance(reader, Reader) else reader)

    # -- reading ahead ---------------------------------------------------------------------------------------------

    def thinking(self) -> Thinking:
        """A context manager to hold while a model is being waited for: time to read ahead (no GET is waited for).

        Nests, and may be held by several threads. What follows from reads before is fetched, as much as the link
        brings in the time that calls have taken so far; what of it has not started when the last holder leaves is
        dropped. The first time the head and the tail of the text are fetched too. A `hint` that follows begins a new
        reply of the model.
        """
        reader = self._reader
        return Thinking(reader if isinstance(reader, Reader) else None, self._code_ahead())

    def hint(self, delta: str) -> None:
        """The next piece of what a model writes, as it streams in: what its code will read is fetched before it runs.

        Returns at once and never raises for what a model writes; what is not understood is passed over. Wrong hints
        cost bytes, at most half of the cache, never a result.
        """
        code = self._code_ahead()
        if code is not None and delta:
            code.hint(delta)

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch characters [start, stop) of each pair, in this order, before they are asked for (returns at once).

        What does not fit in half of the cache (all of it where the text fits in) is fetched as the rest is used. What
        lies behind the end is passed over. `ValueError` for what is not a pair of 0 <= start <= stop.
        """
        pairs, reader = pairs_of(ranges), self._reader
        if isinstance(reader, Reader):
            size = len(self)
            prefetch(reader, [(self._start + min(a, size), self._start + min(b, size)) for a, b in pairs])

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        """A mark, and the ranges [start, stop) of characters that were read since an earlier one (no GET).

        None gives a mark and no ranges: from then on reads are written down, which costs about 1 us each. Shared by all
        views; ranges are those of this text, sorted and merged. A search counts as reading the frames it looks at.
        """
        reader = self._reader
        if reader is None:
            return 0, []
        if reader.log is None:
            reader.log, self._hot = ReadLog(), _COLD
        mark, ranges = reader.log.since(mark)
        low, high = self._start, self._start + len(self)
        return mark, [(max(a, low) - low, min(b, high) - low) for a, b in ranges if a < high and b > low]

    def _code_ahead(self) -> CodeAhead | None:
        """None where no code is followed: a derived text, `prefetch="off"`, a reader without threads."""
        reader = self._reader
        if self._code is None and isinstance(reader, Reader) and reader.follows_code:
            self._code = CodeAhead(reader, self._start, self._stop, self._limit)
        return self._code

    def serve(self) -> ReaderServer:
        """What answers for this text, and nothing else, to a process that must not hold its keys (no GET).

        Over there `served_text` makes an equal text of a way to ask. Raises `NotPicklable` for a text that was joined,
        or derived with arguments that are no plain data.
        """
        from monocontext.served import ReaderServer

        if self._recipe:
            base, name, *arguments = self._recipe
            if not isinstance(base, Monocontext) or not all(_is_plain(argument) for argument in arguments):
                raise NotPicklable(f"{self!r} cannot be served: serve the text that it comes from")
            steps = [*base.serve().steps, (name, arguments), ("view", [self._start, _end_of(self)])]
            return base.serve().then(tuple(steps))
        reader = self._reader
        if not isinstance(reader, Reader):
            raise NotPicklable(f"{self!r} is served from elsewhere")
        return ReaderServer(reader, self._start, self._stop, limit=self._limit, follower=self._code_ahead())

    # -- copies ----------------------------------------------------------------------------------------------------

    def __copy__(self) -> Monocontext:
        """The text itself: it never changes."""
        return self

    def __deepcopy__(self, memo: object) -> Monocontext:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """A handle: place, generation, range, options; never text, a socket or a secret. Opens with 1 GET elsewhere.

        Raises `NotPicklable` for a text in `memory://`, or one that was opened with a client.
        """
        if self._recipe:
            return _derive_again, (self._recipe, self._start, self._stop)
        if self._opened is None:
            raise NotPicklable(f"{self!r} has no place that another process could open")
        return _open_again, (*self._opened.handle(), self.generation, self._start, self._stop, self._limit)

    # -- place and lifetime ----------------------------------------------------------------------------------------

    @property
    def _is_whole(self) -> bool:
        return self._start == 0 and self._stop in (OPEN, self._source.characters)

    @property
    def _reader(self) -> Reader | ServedReader | None:
        return cast("Reader | ServedReader", self._source.reader) if isinstance(self._source, Stored) else None

    @property
    def url(self) -> str:
        """Where the context lies; empty for a text that is derived from others."""
        return self._reader.url if self._reader else ""

    @property
    def generation(self) -> int:
        """The generation that this text belongs to; it never changes but by `refresh`."""
        return self._reader.generation if self._reader else 0

    @property
    def stats(self) -> Stats:
        """GETs, bytes, hits and waits since opening; shared by all views."""
        return self._reader.stats if self._reader else Stats()

    def refresh(self) -> Monocontext:
        """Move to the newest generation, and return this text (1 GET, 1 more for each generation in between).

        Views and slices taken before keep what they were taken from.
        """
        if self._opened is None or not isinstance(self._reader, Reader) or not self._is_whole:
            raise ValueError("refresh belongs to the text that was opened, not to a part of it")
        reader = self._opened.newer(self._reader)
        if reader is not self._reader:
            self._source, self._stop, self._hot, self._tried = Stored(reader), reader.characters, _COLD, -1
            self._code = None
        return self

    def close(self) -> None:
        """Give back memory and connections; reading raises `ContextClosed` afterwards. Idempotent."""
        self._hot = _COLD
        if self._reader:
            self._reader.close()
        if self._opened:
            self._opened.close()

    def __enter__(self) -> Monocontext:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def served_text(ask: Callable[[bytes], bytes | memoryview]) -> Monocontext:
    """The text that a `serve()` in another process answers for; `ask` carries a request there (1 request)."""
    from monocontext.served import ServedReader

    reader = ServedReader(ask)
    described = reader.described
    text = Monocontext._of(Span(Stored(reader), described["start"], described["stop"]), described["limit"])
    for name, arguments in described["steps"]:
        text = getattr(text, name)(*arguments)
    return text


def _is_plain(value: object) -> bool:
    return value is None or type(value) in (str, int, bool)


def _end_of(text: Monocontext) -> int | None:
    return None if text._stop == OPEN else text._stop


Monocontext.open = OpenOrFile(Monocontext.__dict__["open"])  # type: ignore[method-assign,assignment]


def _open_again(url: str, options: dict[str, Any], generation: int, start: int, stop: int, limit: int) -> Monocontext:
    """What a pickle calls."""
    text: Monocontext = Monocontext.open(url, generation=generation, materialize_limit=limit, **options)
    return text.view(start, stop)


def _derive_again(recipe: tuple[Any, ...], start: int, stop: int) -> Monocontext:
    """What the pickle of a derived text calls."""
    base, name, *arguments = recipe
    whole = reduce(operator.add, arguments[0]) if name == "join" else getattr(base, name)(*arguments)
    if not isinstance(whole, Monocontext):
        raise NotPicklable(f"{name}() of this text is small here: pickle the str")
    return whole.view(start, None if stop == OPEN else stop)


def _clipped(low: int, high: int, size: int, data: Any) -> tuple[int, int, Any]:
    """A frame at hand, cut to the text: a view may begin or end inside it."""
    if low >= 0 and high <= size:
        return low, high, data
    return (max(low, 0), min(high, size), data[max(-low, 0) : min(high, size) - low])


def _pieces(texts: Iterable[str], characters: int) -> Iterator[str]:
    """The texts joined, cut anew: at most so many characters, after a newline where one is in the last eighth."""
    rest = ""
    for text in texts:
        rest += text
        start = 0
        while len(rest) - start > characters:
            stop = start + characters
            newline = rest.rfind("\n", stop - characters // 8, stop)
            if newline >= 0:
                stop = newline + 1
            yield rest[start:stop]
            start = stop
        rest = rest[start:]
    if rest:
        yield rest


def _stepped(windows: Iterable[Window], positions: range, base: int) -> str:
    """The characters at `positions` (counted from `base`), from windows in the direction of the step."""
    taken = []
    i = 0
    for window in windows:
        text, start = window.text, window.start - base
        stop = start + len(text)
        if positions.step > 0:
            after = min(len(positions), -(-(stop - positions.start) // positions.step))
        else:
            after = min(len(positions), (positions.start - start) // -positions.step + 1)
        if after > i:
            first, last = positions[i] - start, positions[after - 1] - start
            end = last + (1 if positions.step > 0 else -1)
            taken.append(text[first : end if end >= 0 else None : positions.step])
            i = after
    return "".join(taken)
