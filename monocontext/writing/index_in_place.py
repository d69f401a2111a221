"""Index plain text objects where they lie, without copying them: the segments of the context point at them.

Each object is read once, for its frame table, which records its URL and ETag. When an object is replaced later, readers
get an error (`ContextChanged`), not other text.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from urllib.parse import quote

from monocontext.errors import InvalidText, InvalidUrl, NotAContext, NotFound
from monocontext.format.codec import Framer, encode
from monocontext.format.deeprecurse import parse_manifest, segment_key
from monocontext.format.generations import read_newest
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import dataclass
from monocontext.stores import open_store, split_object
from monocontext.stores.address import parse
from monocontext.stores.local import LocalStore
from monocontext.stores.protocol import ObjectInfo, Store, get_bounded, list_telling, name_left_out
from monocontext.writing.folder import Folder
from monocontext.writing.publish import Place, open_store_at, publish_written
from monocontext.writing.segments import FRAME_BYTES, Progress, SegmentLayout, Written
from monocontext.writing.upkeep.follow import IndexedObject, Target, can_follow, follow

READ_BYTES = 8 << 20
READS_AHEAD = 4

_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
}
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _SourceObject:
    """One text object, and the store that holds it."""

    store: Store
    info: ObjectInfo

    @property
    def url(self) -> str:
        key = quote(self.info.key) if self.store.url.startswith("file:") else self.info.key
        return f"{self.store.url.rstrip('/')}/{key}"


@validate_options()
def index(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    url: Place,
    *,
    frame_bytes: int = FRAME_BYTES,
    filters: bool = True,
    replace: bool = False,
    progress: Callable[[Progress], None] | None = None,
    note: Callable[[str], None] = lambda text: None,
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Make a context at `url` of text objects elsewhere, without copying them, and return its root.

    A source is the URL (or path) of an object, or of a place with objects: these join in the order of their keys, those
    of a DeepRecurse context in the order of its manifest. No header lines are added. Everything is read once (1 GET for
    8 MiB), in memory bounded by about 64 MiB and some 300 bytes an object.

    With `replace`, where the context is an index already, only objects are read that are new or whose ETag or size have
    changed (with filters twice), and 1 GET for each index page; without a change nothing is written.

    Raises `InvalidText` for what is not UTF-8 (byte order marks are skipped with a note) or is compressed,
    `AlreadyExists` where a context exists, unless `replace`; `NotFound`, `NotAContext`.
    """
    layout = SegmentLayout(frame_bytes=frame_bytes, codec="raw", filters=filters)
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    options = store_options or {}
    with open_store_at(url, options) as store:
        found = [
            each
            for name in names
            for each in _objects(name, options, note)
            if not each.url.startswith(store.url.rstrip("/") + "/")  # the context's own, when it lies below a source
        ]
        done = Progress()

        def read(number: int, written: Written) -> None:
            nonlocal done
            before = len(written.records)
            _index_object(found[number], layout, written, note)
            size = sum(record.bytes for record in written.records[before:])
            done = Progress(done.text_bytes + size, done.stored_bytes + size, done.segments + 1, done.reused)
            if progress:
                progress(done)

        def read_alone(number: int) -> tuple[list[FrameRun], list[FrameRecord]]:
            written = Written()
            read(number, written)
            return written.runs, written.records

        objects = [IndexedObject(each.url, each.info.etag, each.info.size_bytes) for each in found]
        target = Target(objects, tuple(dict.fromkeys(_absolute_url(name) for name in names)), frame_bytes, filters)
        newest = read_newest(store) if replace else None
        if newest is not None and can_follow(newest, target):
            return follow(store, newest, target, read_alone, allow=target.sources, store_options=options)

        def write(_: float) -> Written:
            written = Written(sources=target.sources)
            written.columns = layout.columns()
            for number in range(len(found)):
                read(number, written)
            if written.columns:
                written.columns.finish()
            return written

        return publish_written(store, write, layout, replace)


def _absolute_url(name: str | os.PathLike[str]) -> str:
    """The URL of a source, as the root records it."""
    return os.fspath(name) if "://" in os.fspath(name) else open_store(name).url


def _objects(
    name: str | os.PathLike[str], options: StoreOptions, note: Callable[[str], None]
) -> Iterator[_SourceObject]:
    """Yield the text objects of a source, in the order of their texts."""
    remote: StoreOptions = options if os.fspath(name).startswith("s3:") else {}
    if not os.fspath(name).endswith("/"):
        try:
            root, key = split_object(name)
            store = open_store(root, **remote)
            yield _SourceObject(store, store.head(key))
            return
        except (NotFound, InvalidUrl):
            pass  # not an object; perhaps a place
    store = open_store(name, **remote)
    try:
        segments = parse_manifest(get_bounded(store, ROOT_KEY, MOST_ROOT_BYTES).data, f"{store.url}/{ROOT_KEY}")
    except NotFound as error:
        if isinstance(error, NotAContext):
            raise NotAContext(f"{store.url} holds a context, or another {ROOT_KEY}: index takes plain text") from None
        left_out: list[str] = []
        infos = list(list_telling(store, left_out))
        if named := name_left_out(left_out, markers=False):
            note(f"{store.url}: {named}")
        if not infos:
            raise NotFound(f"{store.url}: nothing there to index") from None
        _note_left_out(store, note)
        yield from (_SourceObject(store, info) for info in infos)
        return
    key_of = segment_key(store)
    for segment in segments:
        yield _SourceObject(store, store.head(key_of(segment.key)))


def _note_left_out(store: Store, note: Callable[[str], None]) -> None:
    """A directory's links that are no objects of the store are named, and pipes and their like."""
    if isinstance(store, LocalStore):
        folder = Folder(parse(store.url).path)
        for _ in folder.files():
            pass
        if folder.left_out:
            left_out = ", ".join(f"{name} ({reason})" for name, reason in folder.left_out.items())
            note(f"{store.url}: left out {left_out}")


def _index_object(found: _SourceObject, layout: SegmentLayout, written: Written, note: Callable[[str], None]) -> None:
    """Cut one object into frames and add its run to `written`."""
    framer = Framer(layout.frame_bytes)
    offset = 0
    frames = 0
    rest = b""

    def add(frame: bytes) -> None:
        nonlocal frames
        try:
            _, record = encode(frame, "raw")
        except UnicodeDecodeError as error:
            at = offset + sum(record.bytes for record in written.records[len(written.records) - frames :]) + error.start
            raise InvalidText(
                f"{found.url}: not UTF-8 at byte {at}: {error.reason}; `monocontext upload --encoding ...` stores it"
            ) from None
        written.records.append(record)
        if written.columns:
            written.columns.feed(frame)
        written.final_newline = frame.endswith(b"\n")
        frames += 1

    for number, data in enumerate(_read_ranges(found)):
        if number == 0:
            _refuse_compressed(found, data)
            if data.startswith(_BOM):
                note(f"{found.url}: skipped a byte order mark")
                offset, data = len(_BOM), data[len(_BOM) :]
        data = rest + data
        whole = _whole_characters(data)
        rest = data[whole:]
        for frame in framer.feed(data[:whole]):
            add(frame)
    for frame in framer.finish():
        add(frame)
    if rest:
        add(rest)  # the text ends inside a character: `add` refuses it and names the place
    if frames:
        written.runs.append(FrameRun(found.url, offset, frames, "raw", found.info.etag))


def _read_ranges(found: _SourceObject) -> Iterator[bytes]:
    """Yield the object in pieces, a few reads ahead; every read is pinned to the ETag of the listing."""
    size = found.info.size_bytes
    with ThreadPoolExecutor(READS_AHEAD) as pool:
        ahead: deque[Future[bytes]] = deque()
        for start in range(0, size, READ_BYTES):
            length = min(READ_BYTES, size - start)
            ahead.append(
                pool.submit(
                    lambda start, length: (
                        found.store.get_range(found.info.key, start, length, etag=found.info.etag).data
                    ),
                    start,
                    length,
                )
            )
            if len(ahead) == READS_AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _refuse_compressed(found: _SourceObject, head: bytes) -> None:
    for magic, name in _COMPRESSED.items():
        if head.startswith(magic):
            raise InvalidText(
                f"{found.url} is compressed ({name}), its text has no addresses: unpack it into `monocontext upload -`"
            )


def _whole_characters(data: bytes) -> int:
    """Length of the longest beginning that does not end inside a character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return len(data) - back if needed > back else len(data)
    return len(data)
