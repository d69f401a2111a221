"""Publish a text as a context, or append a text to one: store segments and index pages under new names, then commit."""

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
from monocontext.records import NamedTuple
from monocontext.stores import Place, open_store_at, place_for_workers
from monocontext.stores.protocol import Store
from monocontext.writing.appended import append_written, full_piece_bytes
from monocontext.writing.commit import Staged, commit, commit_at
from monocontext.writing.decoding import InputOptions, ReadingOptions
from monocontext.writing.documents import DocumentRows
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
    (files; folders, whose files get header lines), or documents: a mapping of name to text, or `documents(...)`. Each
    file is a document too. Sources are read once, in memory bounded by about 8 segments plus 50 bytes per document.
    `reading`: see `decoding.InputOptions`. `filters`: write search filters, of some 4 to 16 % of the text; fewer than 9
    frames, or frames below 512 bytes, get none. `progress` is called with the bytes of text that are stored.
    `executor`: any `concurrent.futures.Executor`, whose workers store shares of 32 MiB, which this process sends.

    Raises `AlreadyExists` if there is a context, unless `replace` (earlier generations stay readable). Raises
    `InvalidText` for a source that is not text; what was stored is then removed, by `gc` if workers stored it.
    Cost: 1 PUT per segment and page, 2 for the commit, and about 5 other requests.
    """
    _check_order(sources, url)
    layout, reads = SegmentLayout(frame_bytes, segment_bytes, codec, filters), InputOptions(**reading)

    def write(store: Staged) -> Written:
        workers = TextWorkers(executor, url, store_options) if executor else None
        return store_text(store, sources, None, layout=layout, reads=reads, progress=progress, workers=workers)

    with open_store_at(url, store_options) as store:
        return publish_written(store, write, replace)


def _check_order(sources: object, url: Place) -> None:
    """Raise `InvalidUrl` if the arguments seem to be swapped: `url` has several lines, or the text is only a URL."""
    if isinstance(url, str) and "\n" in url:
        raise InvalidUrl(f"a URL must be one line, not {url[:40]!r}...: the order is (text, url)")
    if isinstance(sources, str) and re.fullmatch(r"(s3|gs|az|abfs|memory|file)://\S+", sources):
        raise InvalidUrl(f"the text is only a URL ({sources!r}): the order is (text, url)")


def publish_written(
    store: Store, write: Callable[[Staged], Written], replace: bool, allow: Iterable[str] = ()
) -> Manifest:
    """Commit what `write` stores as the whole text of a context. `write` is called once. `allow`: URLs to read."""

    def change(base: Manifest | None, store: Staged) -> Manifest:
        if base is not None and not replace:
            raise AlreadyExists(
                f"{store.url} already holds a context ({base.characters:,} characters): "
                f"add to it with `append`, or replace its text (replace=True)"
            )
        new = store.once("text", lambda: write(store), repeatable=False)
        with StoredText(store, EMPTY_ROOT, allow=allow) as text:
            return append_written(text, new)

    root = commit(store, change)
    assert root is not None  # `change` always returns one
    return root


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

    A text of fewer than 16 frames (4 MiB) is merged with short ones before it when these become many (`appended`), so
    that a root has at most 8 KB; a byte is stored again at most six times. By default, frame size and codec are as in
    the context. Concurrent appends all succeed. Raises `NotFound` if there is no context. Cost: 4 PUTs, 4
    other requests, and a few GETs if short texts are merged; for a longer text as for `publish`.
    """
    reads = InputOptions(**reading)
    workers = TextWorkers(executor, url, store_options) if executor else None

    def change(base: Manifest, store: Staged) -> Manifest | None:
        layout = SegmentLayout(frame_bytes or base.frame_bytes, segment_bytes, codec or base.codec, filters)
        store_new = partial(store_text, layout=layout, reads=reads, progress=progress, workers=workers)
        new = store.once("text", lambda: store_new(store, sources, base), repeatable=False)
        if not new.text and not new.runs and not (new.documents and new.documents.count):
            return None
        with StoredText(store, base) as text:
            root = append_written(text, new)
        if new.text:
            progress(len(new.text))
        return root

    return commit_at(url, store_options, "append to", change)


class TextWorkers(NamedTuple):
    """An executor, and the context as its workers open it."""

    executor: Executor
    url: Place
    store_options: StoreOptions | None


def store_text(
    store: Staged,
    sources: Any,
    base: Manifest | None,
    *,
    layout: SegmentLayout | None = None,
    reads: InputOptions | None = None,
    progress: Callable[[int], None] = lambda text_bytes: None,
    workers: TextWorkers | None = None,
) -> Written:
    """Read and store a new text, without a commit. With `base`, the root of the text to append to, a short text is only
    read (`Written.text`)."""
    layout = layout or (SegmentLayout(base.frame_bytes, codec=base.codec) if base else SegmentLayout())
    rows = DocumentRows(store)
    pieces = read_pieces(sources, reads or InputOptions(), rows)
    text = bytearray()
    for piece in pieces if base else ():
        text += piece
        if len(text) >= full_piece_bytes(layout):
            break
    if base and len(text) < full_piece_bytes(layout):
        new = Written(text=bytes(text))
    elif workers is None:
        new = write_segments(store, chain([bytes(text)], pieces), layout, progress, base.frames if base else 0)
    else:
        target = Target(place_for_workers(workers.url), workers.store_options or {}, layout)
        new = share_text(target, chain([bytes(text)], pieces), workers.executor, progress)
        store.keys |= new.keys
    rows.close()
    new.documents, new.layout = rows, layout
    return new
