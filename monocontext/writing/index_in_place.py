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
from monocontext.records import NamedTuple
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

READ_BYTES = 8 << 20  # the length of a read of an object
READS_AHEAD = 4  # the reads at once

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
    keys, those of a DeepRecurse context in the order of its manifest, without header lines between them. Everything is
    read once (1 GET for 8 MiB), in memory bounded by about 64 MiB and some 300 bytes an object.

    `replace`: replace the text of an existing context. `frame_bytes`: bytes of text in a frame. `filters`: make search
    filters. `progress` takes the bytes of text read so far, `note` a sentence about what is left out. `executor`: any
    `concurrent.futures.Executor`, whose workers then read the objects, each by one of them, and make the filters.

    Raises `InvalidText` for an object that is compressed or not UTF-8 (a byte order mark is skipped with a note);
    `AlreadyExists` for an existing context without `replace`; `NotFound` if a source has no objects; `NotAContext` if a
    source holds a context.
    """
    layout = SegmentLayout(frame_bytes=frame_bytes, codec="raw", filters=filters)
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    options = store_options or {}
    with open_store_at(url, own_options(url, options)) as store:
        stores: dict[str, Store] = {}
        objects = [
            item
            for name in names
            for item in _objects(name, options, note, stores)
            if not item.url.startswith(store.url.rstrip("/") + "/")  # the context itself may be below a source
        ]
        urls = (os.fspath(name) if "://" in os.fspath(name) else open_store(name).url for name in names)
        allowed = tuple(dict.fromkeys(urls))

        def write(staged: Staged) -> Written:
            if executor is not None:
                target = Target(portable_place(url), options, layout)
                shares = cut_shares(objects, lambda item: max(item.info.size_bytes, SHARE_BYTES // _MOST_OBJECTS))
                done = in_order(executor, partial(_index_share, target), shares, _SHARES_AHEAD)
                written = join_shares(_noted(done, note), target, executor, progress)
            else:
                columns = layout.columns()
                written = index_objects(objects, stores.__getitem__, frame_bytes, columns, staged.put, note, progress)
            staged.keys |= written.keys
            written.layout, written.sources = layout, allowed
            return written

        return publish_written(store, write, replace, allow=allowed)


def _noted(shares: Iterable[tuple[Written, list[str]]], note: Callable[[str], None]) -> Iterator[Written]:
    """Yield what workers have stored, and pass on their notes."""
    for written, notes in shares:
        for text in notes:
            note(text)
        yield written


def _index_share(target: Target, objects: list[TextObject]) -> tuple[Written, list[str]]:
    """Cut the objects of a share into frames, and store their filter. Returns also notes for the user."""
    notes: list[str] = []
    with ExitStack() as stack:

        @cache
        def store_of(url: str) -> Store:
            return stack.enter_context(open_store_at(url, options_for(url, target.options)))

        columns, store = target.layout.columns(LEAST_FRAMES), target.store(stack)
        written = index_objects(objects, store_of, target.layout.frame_bytes, columns, store.put, notes.append)
        return open_ended(store, written), notes


def _objects(
    name: str | os.PathLike[str], options: StoreOptions, note: Callable[[str], None], stores: dict[str, Store]
) -> Iterator[TextObject]:
    """Yield the objects of a source in order; add their store to `stores` under its URL."""

    def found(store: Store, info: ObjectInfo) -> TextObject:
        stores[store.url] = store
        return TextObject(store.url, info)

    remote = options_for(name, options)
    if not os.fspath(name).endswith("/"):
        try:
            root, key = split_object(name)
            store = open_store(root, **remote)
            yield found(store, store.head(key))
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
        if not infos:
            raise NotFound(f"{store.url}: found no object to index") from None
        notes = [describe_left_out(left_out, markers=False)]
        if isinstance(store, LocalStore):  # links, pipes and the like are not objects
            folder = Folder(parse(store.url).path)
            deque(folder.files(), 0)
            names = ", ".join(f"{entry} ({reason})" for entry, reason in folder.left_out.items())
            notes.append(f"left out {names}" if names else "")
        for line in filter(None, notes):
            note(f"{store.url}: {line}")
        yield from (found(store, info) for info in infos)
        return
    key_of = segment_key(store)
    for segment in segments:
        yield found(store, store.head(key_of(segment.key)))


class TextObject(NamedTuple):
    """A text object, and the URL of the store that holds it."""

    place: str
    info: ObjectInfo

    @property
    def url(self) -> str:
        """The URL of the object."""
        key = quote(self.info.key) if self.place.startswith("file:") else self.info.key
        return f"{self.place.rstrip('/')}/{key}"


def index_objects(
    objects: Sequence[TextObject],
    store_of: Callable[[str], Store],
    frame_bytes: int,
    columns: Columns | None,
    put: Callable[[str, bytes], object],
    note: Callable[[str], None],
    progress: Callable[[int], None] = lambda text_bytes: None,
) -> Written:
    """Cut objects into frames (1 GET for 8 MiB, a few ahead), and store their filters by `put`.

    `store_of`: from the URL of a place to its store. Raises `NotText`, with the offset in the object, in bytes.
    """
    written = Written()
    text_bytes = 0

    def read(part: tuple[TextObject, int]) -> bytes:
        source, start = part
        size = min(READ_BYTES, source.info.size_bytes - start)
        return store_of(source.place).get_range(source.info.key, start, size, etag=source.info.etag).data

    with ThreadPoolExecutor(READS_AHEAD) as pool:
        parts = ((source, start) for source in objects for start in range(0, source.info.size_bytes, READ_BYTES))
        with closing(in_order(pool, read, parts, READS_AHEAD)) as data:
            for source in objects:
                reads = islice(data, len(range(0, source.info.size_bytes, READ_BYTES)))
                text_bytes += _index(source, reads, written, frame_bytes, columns, note)
                progress(text_bytes)
    if columns:
        columns.finish()
        written.filters = columns.store(put)
    return written


def _index(
    source: TextObject,
    reads: Iterator[bytes],
    written: Written,
    frame_bytes: int,
    columns: Columns | None,
    note: Callable[[str], None],
) -> int:
    """Add the frames of an object, of which `reads` yields the bytes. Returns the length of their text in bytes."""
    start, before = 0, len(written.records)
    head = next(reads, b"")
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
