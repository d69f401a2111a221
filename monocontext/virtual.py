"""A context out of plain text objects that already lie in a store, uncopied: its segments point at them.

Each object is read once, for its frame table; what is recorded of it is its URL and ETag. Text that is replaced later
is an error for readers (`ContextChanged`), not other text.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from monocontext.codec import Framer, encode
from monocontext.errors import InvalidText, InvalidUrl, NotAContext, NotFound
from monocontext.index import Run
from monocontext.legacy import below, parse_manifest
from monocontext.manifest import ROOT_KEY, Manifest
from monocontext.segments import FRAME_BYTES, Layout, Progress, Written
from monocontext.store import ObjectInfo, Store
from monocontext.stores import open_store, split_object
from monocontext.writer import Place, opened, publish_written

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
class _Object:
    """One text object in the place where it lies."""

    store: Store
    info: ObjectInfo

    @property
    def url(self) -> str:
        key = quote(self.info.key) if self.store.url.startswith("file:") else self.info.key
        return f"{self.store.url.rstrip('/')}/{key}"


def index(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    url: Place,
    *,
    frame_bytes: int = FRAME_BYTES,
    filters: bool = True,
    replace: bool = False,
    progress: Callable[[Progress], None] | None = None,
    note: Callable[[str], None] = lambda text: None,
    store_options: dict[str, Any] | None = None,
) -> Manifest:
    """Make a context at `url` of text objects elsewhere, without copying them, and return its root.

    A source is the URL (or path) of an object, or of a place that holds objects: these join in the order of their keys,
    those of a DeepRecurse context in the order of its manifest. Texts join bare, without header lines. Everything is
    read once (1 GET for 8 MiB), in memory bounded by about 64 MiB.

    Raises `InvalidText` for what is not UTF-8 (byte order marks are skipped with a note) or is compressed,
    `AlreadyExists` where a context is already, unless `replace`; `NotFound`, `NotAContext`.
    """
    layout = Layout(frame_bytes=frame_bytes, codec="raw", filters=filters)
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    options = store_options or {}
    with opened(url, options) as store:

        def write() -> Written:
            written = Written(sources=tuple(dict.fromkeys(_absolute(name) for name in names)))
            written.columns = layout.columns()
            done = Progress()
            for name in names:
                for found in _objects(name, options):
                    if found.url.startswith(store.url.rstrip("/") + "/"):
                        continue  # the context's own objects, when it lies below a source
                    before = len(written.records)
                    _index_object(found, layout, written, note)
                    size = sum(record.bytes for record in written.records[before:])
                    done = Progress(done.text_bytes + size, done.stored_bytes + size, done.segments + 1, done.reused)
                    if progress:
                        progress(done)
            if written.columns:
                written.columns.finish()
            return written

        return publish_written(store, write, layout, replace)


def _absolute(name: str | os.PathLike[str]) -> str:
    """A source as it is recorded: a URL."""
    return os.fspath(name) if "://" in os.fspath(name) else open_store(name).url


def _objects(name: str | os.PathLike[str], options: dict[str, Any]) -> Iterator[_Object]:
    """The text objects that a source names, in the order in which their texts join."""
    remote = options if os.fspath(name).startswith("s3:") else {}
    if not os.fspath(name).endswith("/"):
        try:
            root, key = split_object(name)
            store = open_store(root, **remote)
            yield _Object(store, store.head(key))
            return
        except (NotFound, InvalidUrl):
            pass  # not an object: a place, perhaps
    store = open_store(name, **remote)
    try:
        segments = parse_manifest(store.get(ROOT_KEY).data, f"{store.url}/{ROOT_KEY}")
    except NotFound as error:
        if isinstance(error, NotAContext):
            raise NotAContext(f"{store.url} holds a context, or another {ROOT_KEY}, already: {error}") from None
        infos = list(store.list())
        if not infos:
            raise NotFound(f"{store.url}: nothing there to index") from None
        yield from (_Object(store, info) for info in infos)
        return
    key_of = below(store)
    for segment in segments:
        yield _Object(store, store.head(key_of(segment.key)))


def _index_object(found: _Object, layout: Layout, written: Written, note: Callable[[str], None]) -> None:
    """Frame one object and add its run."""
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

    for number, data in enumerate(_ranges(found)):
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
        add(rest)  # ends inside a character: refused there, with its place
    if frames:
        written.runs.append(Run(found.url, offset, frames, "raw", found.info.etag))


def _ranges(found: _Object) -> Iterator[bytes]:
    """The object in order, a few reads ahead; every read is pinned to the version that was listed."""
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


def _refuse_compressed(found: _Object, head: bytes) -> None:
    for magic, name in _COMPRESSED.items():
        if head.startswith(magic):
            raise InvalidText(
                f"{found.url} is compressed ({name}), its text has no addresses: unpack it into `monocontext upload -`"
            )


def _whole_characters(data: bytes) -> int:
    """Length of the longest part that does not end inside a character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return len(data) - back if needed > back else len(data)
    return len(data)
