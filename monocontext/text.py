"""`Monocontext`: a string that lives in a store.

Equality with `str` is what correct means here, operation by operation. Small results are real `str`; results that could
be as large as the text are views of it, or a `ContextTooLarge` that says what to write instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, cast, overload

from monocontext import search
from monocontext.errors import ContextTooLarge, NotAContext
from monocontext.opening import Opened
from monocontext.reader import Reader
from monocontext.search import Window
from monocontext.source import Source, Span, Stored
from monocontext.splits import LineSplit, SplitLines
from monocontext.stats import Stats
from monocontext.store import Store
from monocontext.stores import open_store
from monocontext.workers import Workers

if TYPE_CHECKING:
    from monocontext.lines import Lines

MATERIALIZE_LIMIT = 64 << 20
"""Characters that one real `str` may have: at most 256 MiB of memory."""
CACHE_BYTES = 256 << 20

_COLD = (0, 0, b"")


class Monocontext(Sequence[str]):
    """A text of any size, read where the code looks. Immutable, safe for use by many threads.

    Offsets, lengths and slices count characters (code points), as those of `str`. `ctx.lines` addresses the same text
    by line. Costs below are GETs with nothing cached; what is cached costs none. An index page covers 1 GB of text and
    is fetched once.
    """

    __slots__ = ("_hot", "_limit", "_opened", "_source", "_start", "_stop", "_tried")

    _source: Source
    _start: int
    _stop: int
    _limit: int
    _opened: Opened | None
    _hot: tuple[int, int, Any]
    """Characters [low, high) of this text and the bytes or `str` that hold them: the frame last read."""
    _tried: int
    """Number of the frame last read."""

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
        `Monocontext.open` returns. `enable_logging` is accepted and ignored: see `stats`.
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
    def open(
        cls,
        url: str | os.PathLike[str] | Store,
        *,
        unit: str = "characters",
        cache_bytes: int = CACHE_BYTES,
        materialize_limit: int = MATERIALIZE_LIMIT,
        allow: Iterable[str | os.PathLike[str]] = (),
        generation: int | None = None,
        preload: bool = False,
        workers: Workers | None = None,
        **store_options: Any,
    ) -> Monocontext | Lines:
        """Open the context at `s3://bucket/prefix`, `file:///dir`, a path, or `memory://name` (1 GET, for its root).

        - `unit="lines"`: the same text addressed by line, `ctx.lines`; also opens a DeepRecurse manifest
        - `cache_bytes`: memory for decoded text and index pages; requests in flight take up to half as much again,
          and at least 32 MiB
        - `materialize_limit`: characters up to which a result becomes one real `str`
        - `allow`: places outside the context (buckets, folders) that its virtual segments may be read from
        - `generation`: open this one instead of the newest
        - `preload`: fetch everything now, in parallel; needs a cache as large as the text
        - `store_options`: `endpoint`, `region`, `profile`, `path_style`, `anonymous`, `client` (`stores.open_store`)

        Raises `NotFound`, `NotAContext`, `AccessDenied`, `UnsupportedFormat`, `DamagedData`, `InvalidUrl`.
        """
        if unit not in ("characters", "chars", "lines"):
            raise ValueError(f"unit is 'characters' or 'lines', not {unit!r}")
        ours = isinstance(url, str | os.PathLike)
        store = open_store(url, **store_options) if isinstance(url, str | os.PathLike) else url
        opened = Opened(
            store,
            cache_bytes=cache_bytes,
            allow=allow,
            store_options=store_options,
            workers=workers,
            owns_store=ours,
        )
        try:
            reader = opened.reader(generation)
        except NotAContext:
            if unit == "lines":
                from monocontext.legacy import legacy_lines

                return legacy_lines(store, cache_bytes=cache_bytes)
            raise
        text = cls._of(Stored(reader), 0, reader.characters, materialize_limit, opened)
        if preload:
            reader.preload()
        return text.lines if unit == "lines" else text

    @classmethod
    def _of(cls, source: Source, start: int, stop: int, limit: int, opened: Opened | None = None) -> Monocontext:
        self = object.__new__(cls)
        self._source = source
        self._start = start
        self._stop = stop
        self._limit = limit
        self._opened = opened
        self._hot = _COLD
        self._tried = -1
        return self

    # -- length, items, slices -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Characters (no GET)."""
        return self._stop - self._start

    def __bool__(self) -> bool:
        return self._stop > self._start

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
            return self._slice(key)
        if type(key) is int and low <= key < high:
            piece = data[key - low : key - low + 1]
            return piece if type(piece) is str else str(piece, "ascii")
        return self._item(key)

    def _item(self, key: SupportsIndex) -> str:
        if not hasattr(key, "__index__"):
            raise TypeError(f"string indices must be integers, not '{type(key).__name__}'")
        index, size = key.__index__(), len(self)
        if not -size <= index < size:
            raise IndexError("string index out of range")
        if index < 0:
            index += size
        return self._read(index, index + 1)

    def _slice(self, key: slice) -> str:
        start, stop, step = key.indices(len(self))
        if step == 1:
            if stop - start <= self._limit:
                return self._read(start, max(start, stop))
            return cast(str, self._view(start, stop))
        positions = range(start, stop, step)
        if not positions:
            return ""
        low, high = min(positions[0], positions[-1]), max(positions[0], positions[-1]) + 1
        if len(positions) > self._limit:
            raise self._too_large(f"a slice with step {step}", len(positions), "take context[a:b] first, then the step")
        return _stepped(self.span.windows(low, high, reverse=step < 0), positions, self._start)

    def _read(self, start: int, stop: int) -> str:
        """Characters [start, stop) of this text; leaves the frame that they lie in at hand."""
        if stop <= start:
            return ""
        source = self._source
        if not isinstance(source, Stored) or stop - start > 1 << 20:
            return source.read(self._start + start, self._start + stop)
        frame = source.reader.locate(self._start + start)
        low = frame.start - self._start
        high = low + frame.characters
        if stop > high:
            return source.read(self._start + start, self._start + stop)
        text = source.reader.load(frame)
        if text.is_ascii:
            self._hot = _clipped(low, high, len(self), text.data)
        elif self._tried == frame.number:  # touched twice: worth decoding whole
            self._hot = _clipped(low, high, len(self), text.text)
        self._tried = frame.number
        return text.slice(start - low, stop - low)

    def view(self, start: int | None = None, stop: int | None = None) -> Monocontext:
        """`context[start:stop]` as a text of this kind whatever its size: nothing is read."""
        start, stop, _ = slice(start, stop).indices(len(self))
        return self._view(start, max(start, stop))

    def _view(self, start: int, stop: int) -> Monocontext:
        if start == 0 and stop == len(self):
            return self
        return self._of(self._source, self._start + start, self._start + stop, self._limit, self._opened)

    @property
    def span(self) -> Span:
        """Where this text lies in its source."""
        return Span(self._source, self._start, self._stop)

    def _too_large(self, what: str, size: int, instead: str) -> ContextTooLarge:
        return ContextTooLarge(
            f"{what} would make {size:,} characters, the limit is {self._limit:,} (materialize_limit): {instead}"
        )

    # -- iteration -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[str]:
        """Characters in order, streamed (1 GET for about 8 MiB stored)."""
        for text in self.span.texts():
            yield from text

    def __reversed__(self) -> Iterator[str]:
        """Characters from the last to the first, streamed."""
        for text in self.span.texts(reverse=True):
            yield from reversed(text)

    def chunks(self, characters: int = 100_000) -> Iterator[str]:
        """The text in order in real `str` pieces of at most `characters`, fetched ahead of the caller.

        A piece ends after a newline where there is one in its last eighth. Joined they are the text.
        """
        if characters < 1:
            raise ValueError(f"chunks takes 1 character or more, not {characters}")
        rest = ""
        for text in self.span.texts():
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

    # -- comparison ------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Equal to a `str` or text with the same characters: lengths, then streamed up to the first difference."""
        if other is self:
            return True
        if isinstance(other, Monocontext):
            same_place = other._source is self._source and other._start == self._start
            return len(other) == len(self) and (same_place or self._equals(other.span.texts()))
        if isinstance(other, str):
            return len(other) == len(self) and self._equals(iter([other]))
        return NotImplemented

    def _equals(self, others: Iterator[str]) -> bool:
        mine, theirs = "", ""
        for text in self.span.texts():
            mine += text
            while len(theirs) < len(mine):
                more = next(others, None)
                if more is None:
                    return False
                theirs += more
            if theirs[: len(mine)] != mine:
                return False
            mine, theirs = "", theirs[len(mine) :]
        return True

    def __hash__(self) -> int:
        """The hash of the equal `str`, up to the limit; reads the whole text."""
        return hash(self._whole("hash(context)", "use context.url, or a slice, as the key"))

    # -- search ----------------------------------------------------------------------------------------------------

    def __contains__(self, needle: object) -> bool:
        """Whether a `str` occurs; streams until it does."""
        return self._find(_text(needle, "'in <string>' requires string as left operand"), 0, None) >= 0

    def find(self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        """First occurrence at or after `start`, or -1; streams until it is found."""
        return self._find(_text(sub, "find() argument 1 must be str"), start, end)

    def rfind(self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        """Last occurrence, or -1; streams from the end until it is found."""
        return self._find(_text(sub, "rfind() argument 1 must be str"), start, end, reverse=True)

    def index(self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        """As `find`, but `ValueError` when there is none."""
        found = self._find(_text(sub, "index() argument 1 must be str"), start, end)
        if found < 0:
            raise ValueError("substring not found")
        return found

    def rindex(self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        """As `rfind`, but `ValueError` when there is none."""
        found = self._find(_text(sub, "rindex() argument 1 must be str"), start, end, reverse=True)
        if found < 0:
            raise ValueError("substring not found")
        return found

    def _find(self, sub: str, start: Any, end: Any, reverse: bool = False) -> int:
        low, high, _ = slice(start, end).indices(len(self))
        if (start is not None and start.__index__() > len(self)) or len(sub) > high - low:
            return -1
        if not sub:
            return high if reverse else low
        windows = self.span.windows(low, high, reverse=reverse)
        found = search.rfind(windows, sub) if reverse else search.find(windows, sub)
        return found - self._start if found >= 0 else -1

    def count(self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        r"""Occurrences that do not overlap; streams everything, except for `"\n"` (2 GETs at most)."""
        sub = _text(sub, "count() argument 1 must be str")
        low, high, _ = slice(start, end).indices(len(self))
        if (start is not None and start.__index__() > len(self)) or len(sub) > high - low:
            return 0
        if not sub:
            return high - low + 1
        if sub == "\n":
            return self._source.line_of(self._start + high) - self._source.line_of(self._start + low)
        return search.count(self.span.windows(low, high, eager=True), sub)

    def startswith(
        self, prefix: str | tuple[str, ...], start: SupportsIndex | None = None, end: SupportsIndex | None = None
    ) -> bool:
        """As `str.startswith`; reads as many characters as the prefix has."""
        return self._has_affix("startswith", prefix, start, end)

    def endswith(
        self, suffix: str | tuple[str, ...], start: SupportsIndex | None = None, end: SupportsIndex | None = None
    ) -> bool:
        """As `str.endswith`; reads as many characters as the suffix has."""
        return self._has_affix("endswith", suffix, start, end)

    def _has_affix(self, name: str, affix: object, start: Any, end: Any) -> bool:
        if isinstance(affix, tuple) and not name.startswith("tuple"):
            return any(self._has_affix(f"tuple for {name}", one, start, end) for one in affix)
        if not isinstance(affix, str):
            if name.startswith("tuple"):
                kind = type(affix).__name__
                raise TypeError(f"{name} must only contain str, not {kind}")
            raise TypeError(f"{name} first arg must be str or a tuple of str, not {type(affix).__name__}")
        low, high, _ = slice(start, end).indices(len(self))
        if (start is not None and start.__index__() > len(self)) or len(affix) > high - low:
            return False
        at = low if name.endswith("startswith") else high - len(affix)
        return self._read(at, at + len(affix)) == affix

    # -- pieces ----------------------------------------------------------------------------------------------------

    @property
    def lines(self) -> Lines:
        r"""The same text addressed by line: `lines[i]`, `lines[a:b]`, iteration; lines keep the `\n` they end with."""
        from monocontext.lines import Lines, TextLines

        return Lines(TextLines(self))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Sequence[str]:
        r"""As `str.split`. Above the limit `split("\n")` is a lazy list: iteration streams, items cost 2 GETs."""
        if sep == "\n" and maxsplit.__index__() < 0 and len(self) > self._limit:
            return LineSplit(self.span)
        return self._whole("split", "use split('\\n'), .lines, or slice first").split(sep, maxsplit)

    def splitlines(self, keepends: bool = False) -> Sequence[str]:
        """As `str.splitlines`. Above the limit a lazy list that streams."""
        if len(self) > self._limit:
            return SplitLines(self.span, bool(keepends))
        return self._whole("splitlines", "").splitlines(keepends)

    # -- one real str ----------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """The whole text as `str`, up to the limit; above it `ContextTooLarge`."""
        return self._whole("str(context)", "it has the methods of str already: use it directly, or slice context[a:b]")

    def __format__(self, spec: str) -> str:
        """The text in an f-string, up to the limit."""
        whole = self._whole("an f-string of the whole text", 'write f"...{context[a:b]}..." with the part you need')
        return format(whole, spec)

    def _whole(self, what: str, instead: str) -> str:
        if len(self) > self._limit:
            raise self._too_large(what, len(self), instead)
        return self._source.read(self._start, self._stop)

    def __repr__(self) -> str:
        """Constant size, no GET: what it is, how large, where."""
        place = f" of {self.url}" if self.url else ""
        part = "" if self._is_whole else f" [{self._start:,}:{self._stop:,}]"
        return f"<Monocontext {len(self):,} characters{part}{place}; a lazy str: slice, find, split, iterate it>"

    # -- place and lifetime ----------------------------------------------------------------------------------------

    @property
    def _is_whole(self) -> bool:
        return self._start == 0 and self._stop == self._source.characters

    @property
    def _reader(self) -> Reader | None:
        reader = self._source.reader if isinstance(self._source, Stored) else None
        return reader if isinstance(reader, Reader) else None

    @property
    def url(self) -> str:
        """Where the context lies; empty for a text that is derived from others."""
        return self._reader.url if self._reader else ""

    @property
    def generation(self) -> int:
        """The generation that this text belongs to; it never changes but by `refresh`."""
        return self._reader.manifest.generation if self._reader else 0

    @property
    def stats(self) -> Stats:
        """GETs, bytes, hits and waits since opening; shared by all views."""
        return self._reader.stats if self._reader else Stats()

    def refresh(self) -> Monocontext:
        """Move to the newest generation, and return this text (1 GET, 1 more for each generation in between).

        Views and slices taken before keep what they were taken from.
        """
        if self._opened is None or self._reader is None or not self._is_whole:
            raise ValueError("refresh belongs to the text that was opened, not to a part of it")
        reader = self._opened.newer(self._reader)
        if reader is not self._reader:
            self._source, self._stop, self._hot, self._tried = Stored(reader), reader.characters, _COLD, -1
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


def _text(value: object, complaint: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Monocontext):
        return str(value)
    raise TypeError(f"{complaint}, not {type(value).__name__}")


def _clipped(low: int, high: int, size: int, data: Any) -> tuple[int, int, Any]:
    """A frame at hand, cut to the text: a view may begin or end inside it."""
    if low >= 0 and high <= size:
        return low, high, data
    return (max(low, 0), min(high, size), data[max(-low, 0) : min(high, size) - low])


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
