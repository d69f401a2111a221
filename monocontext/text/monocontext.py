"""`Monocontext`: a string that lives in a store.

Each operation gives what `str` gives. A small result is a real `str`. A result that could be as large as the text is a
view of it, or `ContextTooLarge`, whose message says what to write instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, Unpack, cast, overload

from monocontext.engine.fetch.workers import Workers
from monocontext.engine.open import ContextHandle, OriginalOptions, check_place
from monocontext.engine.prefetch.streams import Prefetch
from monocontext.engine.read_log import PieceLog, ReadLog
from monocontext.engine.reader import Reader
from monocontext.engine.stats import Stats
from monocontext.errors import AccessDenied, InvalidUrl, NotAContext, NotFound, NotPicklable
from monocontext.notebook import context_card
from monocontext.options import StoreOptions, check_int, validate_options
from monocontext.stores.address import parse
from monocontext.stores.disk import CAPACITY_BYTES
from monocontext.stores.protocol import Store
from monocontext.text.lazy_kinds import LazyContext
from monocontext.text.lines import LineView, TextLines
from monocontext.text.search.methods import Searchable
from monocontext.text.source import NO_FRAME, Span, StoredSource, TextSource
from monocontext.text.splitting import cut_pieces
from monocontext.text.str_methods import iterate

if TYPE_CHECKING:
    from monocontext.engine.open import OpenOptions
    from monocontext.engine.remote.reader import ServedReader
    from monocontext.engine.remote.server import ReaderServer
    from monocontext.text.code_prefetch import CodePrefetcher, Thinking
    from monocontext.text.context_file import ContextFile
    from monocontext.text.derived import Derived
    from monocontext.text.documents.by_name import Documents
    from monocontext.text.documents.shapes import DocumentDict, DocumentList
    from monocontext.text.namespace import NamespacePatch

MATERIALIZE_LIMIT = 64 << 20  # the most characters of one real `str`: at most 256 MiB of memory
CACHE_BYTES = 256 << 20  # the default memory for decoded text and index pages

Place = str | os.PathLike[str] | Store
_INTERNAL = frozenset({"is_large", "reads_since", "repl_namespace", "serve", "span"})
"""Names for other parts of this package, which `dir` leaves out."""


class Monocontext(Searchable, LazyContext, Sequence[str]):
    """A text in a bucket that behaves as a `str`: `context = Monocontext.open("s3://bucket/prefix")`.

    The text may have any size; only what code looks at is fetched. Immutable, safe for use by many threads.

    Offsets, lengths and slices count characters (code points), as in `str`. `context.lines` addresses the same text by
    line. Costs below are GETs with an empty cache; cached text costs none. *Stored* bytes are compressed ones. An index
    page covers 1 GB of text and is fetched once.
    """

    __slots__ = ("_code", "_limit", "_opened", "_recipe", "_source", "_start", "_stop")

    _source: TextSource
    _start: int
    _stop: int
    _limit: int
    _opened: ContextHandle | None
    _recipe: tuple[Any, ...] | None
    """How to derive this text again: the base text, the method and its arguments; None for a text that is stored."""
    _code: CodePrefetcher | None
    """Follows the code that a model writes; created when the model first writes some."""

    @validate_options(OriginalOptions)
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
        **options: Unpack[OriginalOptions],
    ) -> Any:
        """The constructor of the library DeepRecurse, kept so that its programs run: `Monocontext("bucket", "prefix/")`
        (1 GET). It takes the options of `open`.

        For a DeepRecurse manifest, the result counts lines, as the original does, has its `bucket`, `prefix` and
        `manifest_name`, and passes for a `Monocontext` in `isinstance`. For a context of this library, the result is
        that of `Monocontext.open`. `enable_logging` is accepted and ignored: see `stats`.
        """
        from monocontext.text.deeprecurse import DeepRecurseLines, open_deeprecurse

        Monocontext.register(DeepRecurseLines)  # pyright: ignore[reportAttributeAccessIssue] - Sequence is an ABC
        try:
            return open_deeprecurse(
                cls.open, bucket, prefix, manifest_name,
                region=region, encoding=encoding, errors=errors, client=client, options=options,
            )  # fmt: skip
        except (AccessDenied, InvalidUrl, NotAContext, NotFound) as error:
            if prefix:
                raise
            instead = (
                f"for a URL: Monocontext.open({bucket!r})"
                if "://" in bucket
                else "for a str: publish(text, 'memory://name'), then Monocontext.open('memory://name')"
            )
            raise type(error)(
                f"Monocontext() takes the name of a bucket; {bucket[:40]!r} cannot be opened ({error}); {instead}"
            ) from None

    if TYPE_CHECKING:

        @overload
        @classmethod
        def open(
            cls, url: Place, *, unit: Literal["characters", "chars"] = ..., **options: Unpack[OpenOptions]
        ) -> Monocontext: ...
        @overload
        @classmethod
        def open(cls, url: Place, *, unit: Literal["lines"], **options: Unpack[OpenOptions]) -> LineView: ...
        @overload
        @classmethod
        def open(cls, url: Place, *, shape: Literal["list"], **options: Unpack[OpenOptions]) -> DocumentList: ...
        @overload
        @classmethod
        def open(cls, url: Place, *, shape: Literal["dict"], **options: Unpack[OpenOptions]) -> DocumentDict: ...

    @classmethod
    @validate_options(StoreOptions)
    def open(
        cls,
        url: Place | None = None,
        *,
        unit: str = "characters",
        shape: str = "text",
        cache_bytes: int = CACHE_BYTES,
        materialize_limit: int = MATERIALIZE_LIMIT,
        allow: Iterable[str | os.PathLike[str]] = (),
        generation: int | None = None,
        preload: bool = False,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_dir_bytes: int = CAPACITY_BYTES,
        prefetch: Prefetch = "all",
        workers: Workers | None = None,
        **store_options: Unpack[StoreOptions],
    ) -> Monocontext | LineView | DocumentList | DocumentDict:
        """Open the context at `s3://bucket/prefix`, `file:///dir`, a path, or `memory://name` (1 GET).

        A plain file or folder on this machine is read as it is: a folder, and a file up to 8 MiB, into memory; a larger
        file and a plain object are read once for their index (`writing.plain`).

        - `unit="lines"`: the same text addressed by line, `context.lines`; also opens a DeepRecurse manifest
        - `shape="list"`, `"dict"`: the documents of the context as a lazy `list` of texts, or a lazy `dict` of names to
          texts, which behave as the real ones: `documents.shapes`
        - `cache_bytes`: memory for decoded text and index pages. Requests in flight take up to three eighths more, and
          at least 24 MiB
        - `materialize_limit`: the most characters of a result that becomes one real `str`
        - `allow`: places outside the context (buckets, folders) from which its virtual segments may be read
        - `generation`: open this version instead of the newest
        - `preload`: fetch everything now, in parallel; needs a cache as large as the text
        - `cache_dir`: a folder, readable by its owner only, that keeps fetched data for the next process: at most
          `cache_dir_bytes`, and never the last 5 % of the disk. Data in it is not fetched again, except the root
          object, which names the newest version
        - `prefetch`: what is fetched before it is asked for: what a model's code is about to read ("code": `hint`,
          `prefetch`, cells of a REPL), what earlier reads predict ("history"), both ("all"), or nothing ("off").
          Opening a text fetches nothing ahead
        - `store_options`: `endpoint`, `region`, `profile`, `path_style`, `anonymous`, `transport`, `keep_alive`,
          `client` (`stores.open_store`)

        Raises `NotFound`, `NotAContext`, `AccessDenied`, `UnsupportedFormat`, `DamagedData`, `InvalidUrl`.

        `context.file()` is a text file over an open text.
        """
        if url is None or url in ("r", "rt"):  # "r": code that was given this class calls `open(mode)`, as on a Path
            raise TypeError(
                f"Monocontext.open takes a URL, a path or a store, not {url!r}; for a file, call context.file()"
            )
        address = url if isinstance(url, str | os.PathLike) else None
        if address is None:
            check_place(url)
        if shape not in ("text", "list", "dict"):
            raise ValueError(f"shape must be 'text', 'list' or 'dict', not {shape!r}")
        if shape != "text" and unit == "lines":
            raise ValueError(f"unit='lines' and shape={shape!r} cannot be combined: leave one out")
        if unit not in ("characters", "chars", "lines"):
            raise ValueError(f"unit must be 'characters' or 'lines', not {unit!r}")
        cache_bytes = check_int("cache_bytes", cache_bytes, 0)
        materialize_limit = check_int("materialize_limit", materialize_limit, 0)
        store = cast(Store, url) if address is None else parse(address).open(store_options)
        opened = ContextHandle(
            store,
            cache_bytes=cache_bytes,
            allow=allow,
            store_options=store_options,
            workers=workers,
            owns_store=address is not None,
            cache_dir=cache_dir,
            cache_dir_bytes=cache_dir_bytes,
            prefetch=prefetch,
        )
        try:
            reader = opened.reader(generation)
        except (NotAContext, NotFound) as error:
            if unit == "lines" and isinstance(error, NotAContext):
                from monocontext.text.deeprecurse import open_deeprecurse_lines

                return open_deeprecurse_lines(store, cache_bytes=cache_bytes, cache_dir=cache_dir)
            if address is None or generation is not None:
                raise
            from monocontext.writing.plain import open_plain

            plain = open_plain(address, store_options)
            if plain is None:
                raise
            opened.store = plain
            reader = opened.reader()
        text = cls._over_span(Span(StoredSource(reader), 0, reader.characters), materialize_limit, opened)
        if preload:
            reader.preload()
        if shape != "text":
            return text._shaped(shape)
        return text.lines if unit == "lines" else text

    @classmethod
    def _over_span(
        cls, span: Span, limit: int, opened: ContextHandle | None = None, recipe: tuple[Any, ...] | None = None
    ) -> Monocontext:
        """A text over a span. `opened`: only for the text of a context; `recipe`: only for a derived one."""
        self = object.__new__(cls)
        self._source, self._start, self._stop = span.source, span.start, span.stop
        self._limit = limit
        self._opened = opened
        self._recipe = recipe
        self._code = None
        return self

    # -- length, items, slices -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of characters (no GET)."""
        return self._stop - self._start

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> str | Monocontext: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str | Monocontext:
        """A character, or a slice: a `str` of up to `materialize_limit` characters, above that a view.

        A view is equal to the slice, and costs nothing until it is read. A slice with a step above the limit raises
        `ContextTooLarge`. GETs: 1 for an item. A slice of S stored bytes takes about ceil(S / part) + 1, in parallel,
        where part is S / 16, but at least 1 MiB and at most 8 MiB.
        """
        first, text = self._source.loop_frame
        if type(key) is int and key >= 0:  # the path of a loop: 0.2 us
            character = self._start + key
            if first <= character < self._stop:
                try:
                    return text[character - first]
                except IndexError:
                    pass
        if isinstance(key, slice):
            start, stop, step = key.indices(self._stop - self._start)
            if step != 1:
                return self._stepped(range(start, stop, step))
            if stop - start > self._limit:
                return self._view(start, stop)
            offset = self._start + start - first
            if 0 <= offset <= offset + stop - start <= len(text):
                return text[offset : offset + stop - start]
            return self._read(start, stop)
        size = len(self)
        index = key.__index__() if hasattr(key, "__index__") else size
        if not -size <= index < size:
            return ""[key]  # raises the error of `str`
        return self._read(index % size, index % size + 1)

    def _stepped(self, positions: range) -> str:
        """The characters at positions whose step is not 1."""
        if (size := len(positions)) > self._limit:
            raise self._too_large(f"a slice with step {positions.step}", size, "take context[a:b] first, then the step")
        return self.span.pick(positions)

    def _read(self, start: int, stop: int) -> str:
        """Characters [start, stop) of this text."""
        if stop <= start:
            return ""
        start, stop, source = self._start + start, self._start + stop, self._source
        if isinstance(source, StoredSource) and (piece_log := source.reader.piece_log) is not None:
            piece_log.add(start, stop)
        return source.read(start, stop)

    def file(self) -> ContextFile:
        """A seekable, read-only text file over this text (no GET): `csv.reader(context.file())`."""
        from monocontext.text.context_file import ContextFile

        return ContextFile(self, self.url)

    def view(
        self, start: int | None = None, stop: int | None = None, *, materialize_limit: int | None = None
    ) -> Monocontext:
        """`context[start:stop]` as a `Monocontext` of any size (no GET).

        `materialize_limit`: the limit of the view; by default that of this text.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        view = self._view(start, max(start, stop))
        limit = self._limit if materialize_limit is None else check_int("materialize_limit", materialize_limit, 0)
        return self._over_span(view.span, limit, view._opened, view._recipe)

    def _view(self, start: int, stop: int) -> Monocontext:
        if start == 0 and stop == len(self):
            return self._snapshot
        return self._over_span(self.span.between(start, stop), self._limit, self._opened, self._recipe)

    def _str_or_view(self, start: int, stop: int) -> str | Monocontext:
        return self._read(start, stop) if stop - start <= self._limit else self._view(start, stop)

    @property
    def _snapshot(self) -> Monocontext:
        """This text at its present generation: a copy if `refresh` could change it."""
        can_change = self._opened is not None and self.span.is_whole
        return self._over_span(self.span, self._limit, self._opened, self._recipe) if can_change else self

    def _derived_text(self, source: Derived, recipe: tuple[Any, ...]) -> Monocontext:
        return self._over_span(Span(source, 0, source.characters), self._limit, None, recipe)

    @property
    def span(self) -> Span:
        """The part of the source that this text covers."""
        return Span(self._source, self._start, self._stop)

    # -- iteration -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[str]:
        """Characters in order, streamed (1 GET for about 8 MiB stored)."""
        return iterate(self.span)

    def __reversed__(self) -> Iterator[str]:
        """Characters from the last to the first, streamed."""
        return iterate(self.span, reverse=True)

    @validate_options()
    def chunks(self, characters: int = 100_000) -> Iterator[str]:
        """The text in order, in real `str` pieces of at most `characters`, fetched ahead of the caller.

        A piece ends after a newline if there is one in its last eighth. Joined, the pieces are the text.
        """
        return cut_pieces(self.span.texts(), check_int("characters", characters, 1))

    @property
    def lines(self) -> LineView:
        r"""The same text addressed by line: `lines[i]`, `lines[a:b]`, iteration. Lines keep the `\n` that ends them."""
        return LineView(TextLines(self, self._limit))

    @property
    def documents(self) -> Documents[Monocontext]:
        """The documents of the whole text, a mapping of name to `Monocontext` (no GET): `documents.by_name`.

        `ValueError` for a part of a context and for a derived text.
        """
        from monocontext.text.documents.by_name import Documents

        source = self._source
        if not isinstance(source, StoredSource) or not self.span.is_whole:
            raise ValueError(f"{self!r} is a part of a context or derived from one: only a whole context has documents")
        return Documents(source, lambda span: self._over_span(span, self._limit, self._opened))

    def __dir__(self) -> list[str]:
        """The public names, without those that only this package uses."""
        return [name for name in super().__dir__() if name not in _INTERNAL]

    @property
    def _own_documents(self) -> Documents[Monocontext] | None:
        if self._reader is None or not self.span.is_whole:
            return None
        documents = self.documents
        return documents if documents.count else None

    def _shaped(self, shape: str) -> DocumentList | DocumentDict:
        from monocontext.text.documents.shapes import shaped

        return shaped(self._snapshot, shape)

    def substring(self, start: int, stop: int) -> str:
        """Characters [start, stop), always as a `str`, for type checkers (GETs: as `context[start:stop]`).

        `ContextTooLarge` above `materialize_limit`.
        """
        return str(self[start:stop])

    def __repr__(self) -> str:
        """The kind, size and URL of the text (no GET)."""
        location = f" of {self.url}" if self.url else ""
        if self._recipe:
            location = f" by {self._recipe[1]}()"
        elif not self.span.is_whole:
            location = f" [{self._start:,}:{self._stop:,}]{location}"
        return f"<Monocontext {len(self):,} characters{location}; a lazy str: slice, find, split, iterate it>"

    def _repr_html_(self) -> str:
        """For notebooks: size, URL and documents (no GET)."""
        return self._html("Monocontext")

    def _html(self, kind: str) -> str:
        if self._reader is None:
            return context_card(kind, len(self), [f"by {self._recipe[1]}()"] if self._recipe else [])
        facts = [self.url, f"generation {self.generation}"]
        if not self.span.is_whole:
            facts.insert(0, f"[{self._start:,}:{self._stop:,}]")
        elif count := self.documents.count:
            facts.append(f"{count:,} documents")
        return context_card(kind, len(self), facts)

    def repl_namespace(self) -> NamespacePatch:
        """A patch for the namespace of a REPL, where this text then passes for a `str` (no GET): `text.namespace`."""
        from monocontext.text.namespace import NamespacePatch

        return NamespacePatch()

    # -- reading ahead ---------------------------------------------------------------------------------------------

    def thinking(self) -> Thinking:
        """A context manager to enter while you wait for a model: the time is used to read ahead (waits for no GET).

        It nests, and several threads may enter it. It fetches text around the hits of searches, at most a quarter of
        the cache. Requests that have not started when the last thread leaves are dropped. A `hint` that follows begins
        a new reply of the model.
        """
        reader = self._reader
        from monocontext.text.code_prefetch import Thinking

        return Thinking(reader if isinstance(reader, Reader) else None, self._code_prefetcher())

    def hint(self, delta: str) -> None:
        """Take the next piece of a model's reply while it streams, and fetch what its code will read before the code
        runs.

        Returns at once, and never raises for any reply; code that is not understood is skipped. A wrong hint costs
        bytes, at most half of the cache, but never a wrong result.
        """
        code = self._code_prefetcher()
        if code is not None and delta:
            code.hint(delta)

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch characters [start, stop) for each pair, in this order, before code reads them (returns at once).

        Ranges beyond half of the cache (beyond all of it if the text fits in) are fetched as the others are used.
        Ranges after the end of the text are skipped. `ValueError` for anything but a pair of 0 <= start <= stop.
        """
        from monocontext.text.code_prefetch import prefetch

        prefetch(self._reader, self._start, len(self), ranges)

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        """A mark, and the ranges [start, stop) of characters that were read since an earlier mark (no GET).

        `None` gives a mark and no ranges. The first call starts a log, which all views share and which costs about 1 us
        a read. Ranges count from the beginning of this text, sorted and merged. A search reads the frames it searches.
        """
        reader = self._reader
        if reader is None:
            return 0, []
        if reader.read_log is None:
            reader.read_log, reader.piece_log = ReadLog(), PieceLog()
            self._source.loop_frame = NO_FRAME  # which is read without a log
        mark, ranges = reader.read_log.since(mark)
        return mark, self._clip(ranges)

    def handed_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        """A mark, and the pieces [start, stop) that code received since an earlier mark (no GET).

        Slices, `lines[i]`, and the text of hits, matches and passages count; text that a search only scanned, or that a
        loop over lines or chunks received, does not. The first call starts the log, as in `reads_since`.
        """
        reader = self._reader
        if reader is None:
            return 0, []
        if reader.piece_log is None:
            self.reads_since()
        mark, pieces = cast(PieceLog, reader.piece_log).since(mark)
        return mark, self._clip(pieces)

    def _clip(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranges of the source, clipped to this text and counted from its beginning."""
        low, high = self._start, self._start + len(self)
        return [(max(a, low) - low, min(b, high) - low) for a, b in ranges if a < high and b > low]

    def _code_prefetcher(self) -> CodePrefetcher | None:
        """The prefetcher that follows a model's code; None where nothing is prefetched for code."""
        reader = self._reader
        if self._code is None and isinstance(reader, Reader) and reader.ahead.follows_code:
            from monocontext.text.code_prefetch import CodePrefetcher  # 10 ms to import

            self._code = CodePrefetcher(reader, self._start, self._stop, self._limit)
        return self._code

    def serve(self) -> ReaderServer:
        """A server of this text alone, for a process that must not have its credentials (no GET).

        In that process, `served_text` makes an equal text of a `ServedReader`. That reader may read the whole stored
        text, even if this text is a part of it. Raises `NotPicklable` for a text that comes from another process.
        """
        from monocontext.engine.remote.server import ReaderServer

        if self._recipe:
            base, name, *arguments = self._recipe
            server: ReaderServer = base.serve()
            return server.with_steps((*server.steps, (name, arguments), ("view", [self._start, self._stop])))
        reader = self._reader
        if not isinstance(reader, Reader):
            raise NotPicklable(f"{self!r} cannot be served: it comes from another process, which serves it")
        return ReaderServer(reader, self._start, self._stop, limit=self._limit)

    # -- pickles ---------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """A handle: URL, generation, range and options; never text, a socket or a secret. Unpickling costs 1 GET.

        Raises `NotPicklable` for a text in `memory://`, or one opened with a client.
        """
        if self._recipe:
            return _derive_again, (self._recipe, self._start, self._stop)
        if self._opened is None:
            raise NotPicklable(f"{self!r} cannot be pickled: it has no URL that another process can open")
        return _open_again, (*self._opened.arguments_to_reopen(), self.generation, self._start, self._stop, self._limit)

    # -- URL and lifetime ------------------------------------------------------------------------------------------

    @property
    def _reader(self) -> Reader | ServedReader | None:
        return self._source.reader if isinstance(self._source, StoredSource) else None

    @property
    def url(self) -> str:
        """The URL of the context; empty for a derived text."""
        return self._reader.url if self._reader else ""

    @property
    def generation(self) -> int:
        """The generation of this text; only `refresh` changes it. 0 for a derived text."""
        return self._reader.generation if self._reader else 0

    @property
    def stats(self) -> Stats:
        """GETs, bytes, hits and waits since opening, shared by all views; empty for a derived text."""
        return self._reader.stats if self._reader else Stats()

    def refresh(self) -> Monocontext:
        """Move to the newest generation and return this text (1 GET, and 1 more for each generation in between).

        Earlier views and slices stay on their generation.
        """
        if self._opened is None or not isinstance(self._reader, Reader) or not self.span.is_whole:
            raise ValueError("only an opened text can be refreshed, not a part of it or a text derived from it")
        reader = self._opened.newer(self._reader)
        if reader is not self._reader:
            self._source, self._stop, self._code = StoredSource(reader), reader.characters, None
        return self

    def close(self) -> None:
        """Release the memory and connections that all views share; later reads raise `ContextClosed`. Idempotent."""
        if self._reader:
            self._reader.close()
        self._source.loop_frame = NO_FRAME
        if self._opened:
            self._opened.close()


def served_text(reader: ServedReader) -> Monocontext:
    """The text that another process serves (`Monocontext.serve`) to this reader (no request)."""
    described = reader.described
    text = Monocontext._over_span(Span(StoredSource(reader), described["start"], described["stop"]), described["limit"])
    for name, arguments in described["steps"]:
        text = getattr(text, name)(*arguments)
    return text


def _open_again(url: str, options: dict[str, Any], generation: int, start: int, stop: int, limit: int) -> Monocontext:
    """Open the text of a pickle."""
    text: Monocontext = Monocontext.open(url, generation=generation, materialize_limit=limit, **options)
    return text.view(start, stop)


def _derive_again(recipe: tuple[Any, ...], start: int, stop: int) -> Monocontext:
    """Derive the text of a pickle again from its base."""
    base, name, *arguments = recipe
    return cast(Monocontext, getattr(base, name)(*arguments)).view(start, stop)
