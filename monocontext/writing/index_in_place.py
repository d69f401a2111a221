"""Make a context of plain text objects without copying them: its frames are ranges of these objects.

If an object is replaced later, readers get an error (`ContextChanged`), not other text.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import cache, partial
from itertools import islice
from urllib.parse import quote

from monocontext.errors import InvalidUrl, NotAContext, NotFound
from monocontext.format.codec import encode
from monocontext.format.deeprecurse import parse_manifest, segment_key
from monocontext.format.filters.building import LEAST_FRAMES, Columns
from monocontext.format.index import FrameRun
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import dataclass
from monocontext.records import replace as with_fields
from monocontext.stores import open_store, options_for, split_object
from monocontext.stores.address import parse
from monocontext.stores.local import LocalStore
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import ObjectInfo, Store, describe_left_out, get_bounded, list_usable
from monocontext.writing.commit import Place, Staged, open_store_at, own_options, portable_place
from monocontext.writing.decoding import HEAD_BYTES, Decoder, InputOptions, NotText, kind_of_file, packed_by
from monocontext.writing.folder import Folder
from monocontext.writing.publish import publish_written
from monocontext.writing.segments import FRAME_BYTES, SegmentLayout, Written, cut_frames
from monocontext.writing.shares import SHARE_BYTES, Target, cut_shares, join_shares, open_ended

READ_BYTES = 8 << 20
"""The length of a read of an object."""
READS_AHEAD = 4
"""The reads at once."""

_BORDER_BYTES = 8  # the bytes around the end of a range that tell where a character begins
_BOM = b"\xef\xbb\xbf"
_SHARES_AHEAD = 64  # shares in progress at once: only their small results wait in memory
_MOST_OBJECTS = 256  # objects in a share


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
    """Make a context at `url` of text objects elsewhere, without copying them, and return its root.

    A source is the URL or path of an object, or of a place with objects. Objects are joined in the order of their
    keys, those of a DeepRecurse context in the order of its manifest, without adding header lines between them.
    Everything is read once (1 GET for 8 MiB), in memory bounded by about 64 MiB and some 300 bytes an object.

    `replace`: replace the text of an existing context; all objects are read again. `frame_bytes`: bytes of text in a
    frame. `filters`: make search filters. `progress` takes the bytes of text read so far. `note` is called with
    a sentence about what is left out.

    `executor`: any `concurrent.futures.Executor`, whose workers then read the objects, some 32 MiB at a time, and make
    the filters. A large object is cut into ranges, each of which begins a frame.

    Raises `InvalidText` for an object that is compressed or not UTF-8 (a byte order mark is skipped with a note);
    `AlreadyExists` for an existing context without `replace`; `NotFound` if a source has no objects; `NotAContext` if a
    source holds a context.
    """
    layout = SegmentLayout(frame_bytes=frame_bytes, codec="raw", filters=filters)
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    options = store_options or {}
    with open_store_at(url, own_options(url, options)) as store:
        stores: dict[str, Store] = {}
        results = [
            item
            for name in names
            for item in _objects(name, options, note, stores)
            if not item.url.startswith(store.url.rstrip("/") + "/")  # the context itself may be below a source
        ]
        urls = (os.fspath(name) if "://" in os.fspath(name) else open_store(name).url for name in names)
        names_of = tuple(dict.fromkeys(urls))

        def write(staged: Staged) -> Written:
            if executor is not None:
                target = Target(portable_place(url), options, layout)
                written = join_shares(_by_workers(target, results, executor, note), target, executor, progress)
            else:
                columns = layout.columns()
                written = index_objects(results, stores.__getitem__, frame_bytes, columns, staged.put, note, progress)
            staged.keys |= written.keys
            written.layout, written.sources = layout, names_of
            return written

        return publish_written(store, write, replace, allow=names_of)


def _by_workers(
    target: Target, objects: Iterable[ObjectRange], executor: Executor, note: Callable[[str], None]
) -> Iterator[Written]:
    """Index objects with the workers of an executor, large ones in ranges, each of which begins a frame."""

    def ranges() -> Iterator[ObjectRange]:
        for item in objects:
            step = SHARE_BYTES if item.stop > 2 * SHARE_BYTES else max(item.stop, 1)
            for start in range(0, max(item.stop, 1), step):
                yield with_fields(item, start=start, stop=min(start + step, item.stop))

    shares = cut_shares(ranges(), lambda part: max(part.stop - part.start, SHARE_BYTES // _MOST_OBJECTS))
    for written, notes in in_order(executor, partial(_index_share, target), shares, _SHARES_AHEAD):
        for text in notes:
            note(text)
        yield written


def _index_share(target: Target, ranges: list[ObjectRange]) -> tuple[Written, list[str]]:
    """Cut the objects of a share into frames, and store their filter. Returns also notes for the user."""
    notes: list[str] = []
    with ExitStack() as stack:

        @cache
        def store_of(url: str) -> Store:
            return stack.enter_context(open_store_at(url, options_for(url, target.options)))

        columns, store = target.layout.columns(LEAST_FRAMES), target.store(stack)
        written = index_objects(ranges, store_of, target.layout.frame_bytes, columns, store.put, notes.append)
        return open_ended(store, written), notes


def _objects(
    name: str | os.PathLike[str], options: StoreOptions, note: Callable[[str], None], stores: dict[str, Store]
) -> Iterator[ObjectRange]:
    """Yield the objects of a source in order, each as a whole range; add their store to `stores` under its URL."""

    def whole(store: Store, info: ObjectInfo) -> ObjectRange:
        stores[store.url] = store
        return ObjectRange(store.url, info, 0, info.size_bytes)

    remote = options_for(name, options)
    if not os.fspath(name).endswith("/"):
        try:
            root, key = split_object(name)
            store = open_store(root, **remote)
            yield whole(store, store.head(key))
            return
        except (NotFound, InvalidUrl):
            pass  # perhaps a place
    store = open_store(name, **remote)
    try:
        segments = parse_manifest(get_bounded(store, ROOT_KEY, MOST_ROOT_BYTES).data, f"{store.url}/{ROOT_KEY}")
    except NotAContext:
        raise NotAContext(
            f"{store.url} contains {ROOT_KEY}, so it may already hold a context: `index` works on plain text files"
        ) from None
    except NotFound:
        left_out: list[str] = []
        infos = list(list_usable(store, left_out))
        if named := describe_left_out(left_out, markers=False):
            note(f"{store.url}: {named}")
        if not infos:
            raise NotFound(f"{store.url}: found no object to index") from None
        if isinstance(store, LocalStore):  # links, pipes and the like are no objects
            folder = Folder(parse(store.url).path)
            deque(folder.files(), 0)
            if folder.left_out:
                named = ", ".join(f"{entry} ({reason})" for entry, reason in folder.left_out.items())
                note(f"{store.url}: left out {named}")
        yield from (whole(store, info) for info in infos)
        return
    key_of = segment_key(store)
    for segment in segments:
        yield whole(store, store.head(key_of(segment.key)))


@dataclass(frozen=True, slots=True)
class ObjectRange:
    """Bytes [start, stop) of a text object. An end inside the object moves on to where a character begins."""

    place: str
    """URL of the store that holds it."""
    info: ObjectInfo
    start: int
    stop: int

    @property
    def url(self) -> str:
        """The URL of the object."""
        key = quote(self.info.key) if self.place.startswith("file:") else self.info.key
        return f"{self.place.rstrip('/')}/{key}"

    def between_characters(self, store: Store) -> ObjectRange:
        """The range with ends where the text may be cut (1 GET for each end inside the object)."""

        def border(offset: int) -> int:
            if offset in (0, self.info.size_bytes):
                return offset
            size = min(_BORDER_BYTES, self.info.size_bytes - offset + 1)
            near = store.get_range(self.info.key, offset - 1, size, etag=self.info.etag).data
            step = 1  # to the first byte that begins a character and is not the LF of a CR LF
            while step < len(near) - 1 and (near[step] & 0xC0 == 0x80 or near[step - 1 : step + 1] == b"\r\n"):
                step += 1
            return offset - 1 + step

        return with_fields(self, start=border(self.start), stop=border(self.stop))


def index_objects(
    ranges: Sequence[ObjectRange],
    store_of: Callable[[str], Store],
    frame_bytes: int,
    columns: Columns | None,
    put: Callable[[str, bytes], object],
    note: Callable[[str], None],
    progress: Callable[[int], None] = lambda text_bytes: None,
) -> Written:
    """Cut ranges of objects into frames (1 GET for 8 MiB, a few ahead), and store their filters by `put`.

    `store_of`: from the URL of a place to its store. Raises `NotText`, with the offset in the object, in bytes.
    """
    written = Written()
    text_bytes = 0
    ranges = [source.between_characters(store_of(source.place)) for source in ranges]

    def read(part: tuple[ObjectRange, int]) -> bytes:
        source, first = part
        size = min(READ_BYTES, source.stop - first)
        return store_of(source.place).get_range(source.info.key, first, size, etag=source.info.etag).data

    with ThreadPoolExecutor(READS_AHEAD) as pool:
        parts = ((source, first) for source in ranges for first in range(source.start, source.stop, READ_BYTES))
        with closing(in_order(pool, read, parts, READS_AHEAD)) as data:
            for source in ranges:
                reads = islice(data, len(range(source.start, source.stop, READ_BYTES)))
                text_bytes += _index(source, reads, written, frame_bytes, columns, note)
                progress(text_bytes)
    if columns:
        columns.finish()
        written.filters = columns.store(put)
    return written


def _index(
    source: ObjectRange,
    reads: Iterator[bytes],
    written: Written,
    frame_bytes: int,
    columns: Columns | None,
    note: Callable[[str], None],
) -> int:
    """Add the frames of a range, of which `reads` yields the bytes. Returns the length of their text in bytes."""
    start, before = source.start, len(written.records)
    head = next(reads, b"")
    if start == 0:
        if packing := packed_by(head):
            raise NotText(source.url, f"compressed ({packing})", f"`monocontext sync {source.url} URL` stores its text")
        if kind := kind_of_file(head[:HEAD_BYTES]):
            raise NotText(source.url, kind, "convert it to text first")
        if head.startswith(_BOM):
            note(f"{source.url}: skipped a byte order mark")
            start, head = len(_BOM), head[len(_BOM) :]

    def pieces() -> Iterator[bytes]:
        decoder = Decoder(source.url, InputOptions(), start)
        try:
            yield decoder.feed(head)[0]
            for data in reads:
                yield decoder.feed(data)[0]
            yield decoder.feed(b"", final=True)[0]
        except NotText as error:
            reason = error.reason.replace("utf-8", "UTF-8")
            raise NotText(source.url, f"{reason}: `monocontext sync --encoding ...` stores it") from None

    for frame in cut_frames(pieces(), frame_bytes):
        written.records.append(encode(frame, "raw")[1])
        if columns:
            columns.feed(frame)
    if frames := len(written.records) - before:
        written.runs.append(FrameRun(source.url, start, frames, "raw", source.info.etag))
    return sum(record.bytes for record in written.records[before:])
