"""Make a context whose frames are ranges of text objects elsewhere. A read of a replaced object raises an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import cache, partial
from itertools import chain, islice
from urllib.parse import quote

from monocontext.errors import InvalidUrl, NotAContext, NotFound
from monocontext.format.codec import encode
from monocontext.format.deeprecurse import parse_manifest, segment_key
from monocontext.format.filters.building import LEAST_FRAMES
from monocontext.format.index import FrameRun
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import NamedTuple
from monocontext.stores import Place, open_store, open_store_at, options_for, place_for_workers, split_object
from monocontext.stores.address import parse
from monocontext.stores.local import LocalStore
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import ObjectInfo, Store, describe_left_out, list_usable
from monocontext.writing.commit import Staged
from monocontext.writing.decoding import Decoder, InputOptions, NotText, compression_of, refuse_known_kinds
from monocontext.writing.folder import Folder, first_of
from monocontext.writing.publish import publish_written
from monocontext.writing.segments import FRAME_BYTES, SegmentLayout, Written, cut_frames
from monocontext.writing.shares import SHARE_BYTES, Target, cut_shares, drop_end_columns, join_shares
from monocontext.writing.stored_text import READ_BYTES, READS_AHEAD

_BOM = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
_SHARES_AHEAD = 64  # shares that workers index at once: only the small results wait in memory
_MOST_OBJECTS = 256  # the most objects in a share


@validate_options()
def index(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    url: Place,
    *,
    frame_bytes: int = FRAME_BYTES,
    filters: bool = True,
    replace: bool = False,
    progress: Callable[[int], None] = lambda text_bytes: None,
    note: Callable[[str], None] = lambda text: None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Manifest:
    """Make a context at `url` that refers to text objects elsewhere, without copying them, and return its root.

    A source is the URL or path of an object, or of a folder or bucket with objects. Objects are joined in the order of
    their keys, or of the manifest of a DeepRecurse context, without header lines between them. Everything is read once
    (1 GET per 8 MiB), in memory bounded by about 64 MiB plus 300 bytes per object.

    `replace`: replace the text of an existing context. `frame_bytes`: the most text in a frame. `filters`: make
    search filters. `progress` is called with the bytes of text read so far, `note` with a line about what is left out.
    `executor`: any `concurrent.futures.Executor`, whose workers each read one share of the objects and make its filter.

    Raises `InvalidText` for an object that is compressed or not UTF-8 (a byte order mark is skipped with a note);
    `AlreadyExists` without `replace`; `NotFound` if a source has no objects; `NotAContext` if one holds a context.
    """
    layout = SegmentLayout(frame_bytes=frame_bytes, codec="raw", filters=filters)
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    options = store_options or {}
    with open_store_at(url, options_for(url, options)) as store, ExitStack() as stack:
        objects, stores = list[TextObject](), dict[str, Store]()  # the stores by URL
        for name in names:
            source, infos = _objects_of(name, options_for(name, options), note, stack)
            stores[source.url] = source
            objects += (TextObject(source.url, info) for info in infos)
        own_prefix = store.url.rstrip("/") + "/"
        objects = [item for item in objects if not item.url.startswith(own_prefix)]  # the context may be below a source
        urls = (os.fspath(name) if "://" in os.fspath(name) else open_store(name).url for name in names)
        allowed = tuple(dict.fromkeys(urls))

        def write(staged: Staged) -> Written:
            if executor is None:
                written = _cut_objects(objects, stores.__getitem__, _FrameCollector(layout, note), staged.put, progress)
            else:
                target = Target(place_for_workers(url), options, layout)
                shares = cut_shares(objects, lambda item: max(item.info.size_bytes, SHARE_BYTES // _MOST_OBJECTS))
                results = in_order(executor, partial(_index_share, target), shares, _SHARES_AHEAD)
                written = join_shares(results, target, executor, progress, note)
            staged.keys |= written.keys
            written.layout, written.sources = layout, allowed
            return written

        return publish_written(store, write, replace, allow=allowed)


class TextObject(NamedTuple):
    """An object to index, and the URL of its store."""

    store_url: str
    info: ObjectInfo

    @property
    def url(self) -> str:
        """The URL of the object."""
        key = quote(self.info.key) if self.store_url.startswith(("file:", "http")) else self.info.key
        return f"{self.store_url.rstrip('/')}/{key}"


def _objects_of(
    name: str | os.PathLike[str], options: StoreOptions, note: Callable[[str], None], stack: ExitStack
) -> tuple[Store, list[ObjectInfo]]:
    """The objects of a source, in order, and their store, which `stack` closes."""
    if not os.fspath(name).endswith("/"):
        with suppress(NotFound, InvalidUrl):  # not an object: perhaps a folder
            root, key = split_object(name)
            store = stack.enter_context(open_store_at(root, options))
            return store, [store.head(key)]
    store = stack.enter_context(open_store_at(name, options))
    try:
        segments = parse_manifest(store.get(ROOT_KEY, most_bytes=MOST_ROOT_BYTES).data, f"{store.url}/{ROOT_KEY}")
    except NotFound:
        return store, _list_objects(store, note)
    except NotAContext:
        raise NotAContext(
            f"{store.url} contains {ROOT_KEY}, so it may be a context already: `index` reads plain text files"
        ) from None
    key_of = segment_key(store)
    return store, [store.head(key_of(segment.key)) for segment in segments]


def _list_objects(store: Store, note: Callable[[str], None]) -> list[ObjectInfo]:
    """All objects of a store, in the order of their keys. Notes what is left out. Raises `NotFound` if it has none."""
    left_out: list[str] = []
    infos = list(list_usable(store, left_out))
    if not infos:
        raise NotFound(f"{store.url}: found no object to index")
    if description := describe_left_out(left_out, markers=False):
        note(f"{store.url}: {description}")
    if isinstance(store, LocalStore):  # links, pipes and the like are not objects
        folder = Folder(parse(store.url).path)
        for _ in folder.files():  # which fills `left_out`
            pass
        if entries := [f"{name} ({reason})" for name, reason in folder.left_out.items()]:
            note(f"{store.url}: left out {first_of(entries)}")
    return infos


def _index_share(target: Target, objects: list[TextObject]) -> Written:
    """Cut the objects of a share into frames, and store their filter, in a worker."""
    notes: list[str] = []
    with ExitStack() as stack:

        @cache
        def store_of(url: str) -> Store:
            return stack.enter_context(open_store_at(url, options_for(url, target.options)))

        store = stack.enter_context(target.open_store())
        frames = _FrameCollector(target.layout, notes.append, LEAST_FRAMES)
        written = _cut_objects(objects, store_of, frames, store.put)
        written.notes = notes
        return drop_end_columns(store, written)


def _cut_objects(
    objects: Sequence[TextObject],
    store_of: Callable[[str], Store],
    frames: _FrameCollector,
    put: Callable[[str, bytes], object],
    progress: Callable[[int], None] = lambda text_bytes: None,
) -> Written:
    """Cut objects into frames (1 GET per 8 MiB), and store their filter with `put`. `store_of` returns the store at a
    URL. Raises `NotText`."""

    def read(part: tuple[TextObject, int]) -> bytes:
        source, start = part
        size = min(READ_BYTES, source.info.size_bytes - start)
        return store_of(source.store_url).get_range(source.info.key, start, size, etag=source.info.etag).data

    parts = ((source, start) for source in objects for start in range(0, source.info.size_bytes, READ_BYTES))
    with ThreadPoolExecutor(READS_AHEAD) as pool, closing(in_order(pool, read, parts, READS_AHEAD)) as data:
        for source in objects:
            frames.add(source, islice(data, len(range(0, source.info.size_bytes, READ_BYTES))))
            progress(frames.text_bytes)
    return frames.finish(put)


class _FrameCollector:
    """Collects the frames of objects, in order, and the columns of their search filter."""

    def __init__(self, layout: SegmentLayout, note: Callable[[str], None], frames_before: int = 0):
        self.text_bytes = 0  # the length of the text so far
        self._written = Written()
        self._columns = layout.columns(frames_before)
        self._frame_bytes, self._note = layout.frame_bytes, note

    def add(self, source: TextObject, reads: Iterator[bytes]) -> None:
        """Add the frames of an object, whose bytes `reads` yields. Raises `NotText`."""
        records = self._written.records
        head, frames_before = next(reads, b""), len(records)
        if compression := compression_of(head):
            command = f"monocontext sync {source.url} URL"
            raise NotText(source.url, f"compressed ({compression})", f"`{command}` stores its text")
        refuse_known_kinds(source.url, head)
        start = len(_BOM) if head.startswith(_BOM) else 0
        if start:
            self._note(f"{source.url}: skipped a byte order mark")
        pieces = _decode(source, chain([head[start:]], reads), start)
        for frame in cut_frames(pieces, self._frame_bytes):
            records.append(encode(frame, "raw")[1])
            self.text_bytes += len(frame)
            if self._columns:
                self._columns.feed(frame)
        if frames := len(records) - frames_before:
            self._written.runs.append(FrameRun(source.url, start, frames, "raw", source.info.etag))

    def finish(self, put: Callable[[str, bytes], object]) -> Written:
        """Store the search filter, and return all frames."""
        if self._columns:
            self._columns.finish()
            self._written.filters = self._columns.store(put)
        return self._written


def _decode(source: TextObject, reads: Iterable[bytes], start: int) -> Iterator[bytes]:
    """Yield the text of an object from byte `start` on. Raises `NotText`."""
    decoder = Decoder(source.url, InputOptions(), start)
    try:
        for data in reads:
            yield decoder.feed(data)[0]
        yield decoder.feed(b"", final=True)[0]
    except NotText as error:
        raise NotText(source.url, error.reason, "`monocontext sync --encoding ...` stores its text") from None
