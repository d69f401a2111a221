"""Publish a text as a context, or append to one: store segments and index pages, under new names, then commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from itertools import chain
from typing import Any, Unpack

from monocontext.errors import AlreadyExists, InvalidUrl
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.records import replace as with_fields
from monocontext.stores import Place, open_store_at, place_for_workers
from monocontext.stores.protocol import Store
from monocontext.writing.appended import appended, short_bytes
from monocontext.writing.commit import Staged, commit, commit_at
from monocontext.writing.decoding import InputOptions, ReadingOptions
from monocontext.writing.documents import DocumentRows, join_documents
from monocontext.writing.inputs import Source, read_pieces
from monocontext.writing.segments import FRAME_BYTES, SEGMENT_BYTES, SegmentLayout, Written, write_segments
from monocontext.writing.shares import Target, share_text
from monocontext.writing.splice import EMPTY_ROOT
from monocontext.writing.stored_text import StoredText


@validate_options(ReadingOptions)
def publish(
    sources: Source | Iterable[Source] | Mapping[str, str],
    url: Place,
    *,
    frame_bytes: int = FRAME_BYTES,
    segment_bytes: int = SEGMENT_BYTES,
    codec: str = "zstd",
    filters: bool = True,
    replace: bool = False,
    progress: Callable[[int], None] = lambda text_bytes: None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
    **reading: Unpack[ReadingOptions],
) -> Manifest:
    """Store a text as a context at `url` and return the committed root.

    `sources` is a `str` (the text), or an iterable of `str` pieces, `bytes` pieces (encoded text, one stream) and paths
    (files; directories, each file under a header line), or documents: a mapping of name to text, or `documents(...)`.
    Each file is a document too. Sources are read once, in memory bounded by about 8 segments and 50 bytes a document.
    `progress` takes the bytes of text that are stored. `reading`: see `decoding.InputOptions`. `filters`: write search
    filters, some 4 to 16 % of the text; fewer than 9 frames, or frames below 512 bytes, get none. `executor`: any
    `concurrent.futures.Executor`, whose workers then store batches of 32 MiB, which this process reads and sends.

    Raises `AlreadyExists` if there is a context already, unless `replace` (earlier generations stay readable), and
    `InvalidText` for a source that is not text; then what was stored is removed, what workers stored by `gc`. Cost: 1
    PUT for each segment and page, 2 for the commit, and about 5 other requests.
    """
    _check_order(sources, url)
    layout, reads = SegmentLayout(frame_bytes, segment_bytes, codec, filters), InputOptions(**reading)

    def write(store: Staged) -> Written:
        return store_text(store, sources, None, layout, reads, progress, executor, url, store_options)

    with open_store_at(url, store_options) as store:
        return publish_written(store, write, replace)


def _check_order(sources: object, url: Place) -> None:
    """Raise `InvalidUrl` if the arguments were swapped: `url` has several lines, or the text is only a URL."""
    if isinstance(url, str) and "\n" in url:
        raise InvalidUrl(f"the URL is a text of several lines ({url[:40]!r}): the order is (text, url)")
    if isinstance(sources, str) and re.fullmatch(r"(s3|gs|az|abfs|memory|file)://\S+", sources):
        raise InvalidUrl(f"the text is only a URL ({sources!r}): the order is (text, url)")


def publish_written(
    store: Store, write: Callable[[Staged], Written], replace: bool, allow: Iterable[str] = ()
) -> Manifest:
    """Commit what `write` stores, called once, as the whole text of a context. `allow`: places it may read."""

    def change(base: Manifest | None, store: Staged) -> Manifest:
        if base is not None and not replace:
            raise AlreadyExists(
                f"{store.url} already holds a context ({base.characters:,} characters): "
                f"add to it with `append`, or replace its text (replace=True)"
            )
        new = store.once("text", lambda: write(store), repeatable=False)
        with StoredText(store, EMPTY_ROOT, allow=allow) as text:
            return with_new(text, new)

    root = commit(store, change)
    assert root is not None  # the change made one
    return root


def with_new(text: StoredText, new: Written) -> Manifest:
    """The root of a text with a new one, and its documents, after it."""
    root = appended(text, new)
    return with_fields(root, documents=join_documents(text.store, text.root, new.documents))


@validate_options(ReadingOptions)
def append(
    sources: Source | Iterable[Source] | Mapping[str, str],
    url: Place,
    *,
    frame_bytes: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    codec: str | None = None,
    filters: bool = True,
    progress: Callable[[int], None] = lambda text_bytes: None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
    **reading: Unpack[ReadingOptions],
) -> Manifest:
    """Add text at the end of the context at `url`, as a new generation. Parameters as for `publish`.

    A text of fewer than 16 frames (4 MiB) is merged with short ones before it once these have become many (`appended`):
    a root takes at most 8 KB, and each byte is stored again six times in all. Frame size and codec are those of the
    context unless given. Two appenders at once both succeed. Raises `NotFound` if there is no context. Cost: 4 PUTs, 4
    other requests, and a few GETs if short texts are merged; for a longer text as for `publish`.
    """
    reads = InputOptions(**reading)

    def change(base: Manifest, store: Staged) -> Manifest | None:
        layout = SegmentLayout(frame_bytes or base.frame_bytes, segment_bytes, codec or base.codec, filters)
        read = partial(store_text, store, sources, base, layout, reads, progress, executor, url, store_options)
        new = store.once("text", read, repeatable=False)
        if not new.text and not new.runs and not (new.documents and new.documents.count):
            return None
        with StoredText(store, base) as text:
            root = with_new(text, new)
        if new.text:
            progress(len(new.text))
        return root

    return commit_at(url, store_options, "append to", change)


def store_text(
    store: Staged,
    sources: Any,
    base: Manifest | None,
    layout: SegmentLayout | None = None,
    reads: InputOptions | None = None,
    progress: Callable[[int], None] = lambda text_bytes: None,
    executor: Executor | None = None,
    url: Place = "",
    store_options: StoreOptions | None = None,
) -> Written:
    """Read a text that is to follow that of `base`, if there is one, and store it, by the workers of an executor if one
    is given; they find the context at `url`. After other text a short one is only read. It is not committed."""
    layout = layout or (SegmentLayout(base.frame_bytes, codec=base.codec) if base else SegmentLayout())
    rows = DocumentRows(store)
    pieces = read_pieces(sources, reads or InputOptions(), rows)
    text = bytearray()
    for piece in pieces if base else ():
        text += piece
        if len(text) >= short_bytes(layout):
            break
    if base and len(text) < short_bytes(layout):
        new = Written(text=bytes(text))
    elif executor is None:
        new = write_segments(store, chain([bytes(text)], pieces), layout, progress, base.frames if base else 0)
    else:
        target = Target(place_for_workers(url), store_options or {}, layout)
        new = share_text(target, chain([bytes(text)], pieces), executor, progress)
        store.keys |= new.keys
    rows.close()
    new.documents, new.layout = rows, layout
    return new
