"""Make a context of plain text objects without copying them: its frames are ranges of these objects.

Each object is read once, to record its frames, URL and ETag. If an object is replaced later, readers get an error
(`ContextChanged`), not other text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor

from monocontext.errors import InvalidUrl, NotAContext, NotFound
from monocontext.format.deeprecurse import parse_manifest, segment_key
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.stores import open_store, options_for, split_object
from monocontext.stores.address import parse
from monocontext.stores.local import LocalStore
from monocontext.stores.protocol import ObjectInfo, Store, describe_left_out, get_bounded, list_usable
from monocontext.writing.commit import Staged
from monocontext.writing.folder import Folder
from monocontext.writing.object_text import ObjectRange, index_objects
from monocontext.writing.place import Place, open_store_at, own_options, portable_place
from monocontext.writing.publish import publish_written
from monocontext.writing.segments import FRAME_BYTES, Progress, SegmentLayout, Written
from monocontext.writing.shares import Target, share_objects


@validate_options()
def index(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    url: Place,
    *,
    frame_bytes: int = FRAME_BYTES,
    filters: bool = True,
    replace: bool = False,
    progress: Callable[[Progress], None] = lambda progress: None,
    note: Callable[[str], None] = lambda text: None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Manifest:
    """Make a context at `url` of text objects elsewhere, without copying them, and return its root.

    A source is the URL or path of an object, or of a place with objects. Objects are joined in the order of their
    keys, those of a DeepRecurse context in the order of its manifest, without adding header lines between them.
    Everything is read once (1 GET for 8 MiB), in memory bounded by about 64 MiB and some 300 bytes an object.

    `replace`: replace the text of an existing context; all objects are read again. `frame_bytes`: bytes of text in a
    frame. `filters`: make search filters. `progress` is called after each object or part. `note` is called with
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
        names_of = tuple(dict.fromkeys(_absolute_url(name) for name in names))

        def write(staged: Staged) -> Written:
            if executor is not None:
                written = share_objects(Target(portable_place(url), options, layout), results, executor, note, progress)
            else:
                columns = layout.columns()
                written = index_objects(results, stores.__getitem__, frame_bytes, columns, staged.put, note, progress)
            staged.keys |= written.keys
            written.layout, written.sources = layout, names_of
            return written

        return publish_written(store, write, replace, allow=names_of)


def _absolute_url(name: str | os.PathLike[str]) -> str:
    """The URL of a source, as the root records it."""
    return os.fspath(name) if "://" in os.fspath(name) else open_store(name).url


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
        _note_left_out(store, note)
        yield from (whole(store, info) for info in infos)
        return
    key_of = segment_key(store)
    for segment in segments:
        yield whole(store, store.head(key_of(segment.key)))


def _note_left_out(store: Store, note: Callable[[str], None]) -> None:
    """Tell what a local directory has that is not an object: links, pipes and the like."""
    if isinstance(store, LocalStore):
        folder = Folder(parse(store.url).path)
        for _ in folder.files():
            pass  # fills `left_out`
        if folder.left_out:
            left_out = ", ".join(f"{name} ({reason})" for name, reason in folder.left_out.items())
            note(f"{store.url}: left out {left_out}")
