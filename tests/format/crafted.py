"""Texts that no writer of ours would write: consistent roots over any lie."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence

from monocontext.format.codec import describe, encode
from monocontext.format.index import FrameRecord, FrameRun, encode_page, page_ref
from monocontext.format.manifest import ROOT_KEY, Manifest, generation_key
from monocontext.stores.protocol import Store

SEGMENT = f"segments/{'5e9' * 10}5e.seg"
"""The key of the one segment of a crafted context."""


def root_of(*pages: object, **changes: object) -> Manifest:
    fields = {"generation": 1, "write_id": "crafted", "created": "2026-01-01T00:00:00+00:00", "pages": pages}
    return Manifest(**(fields | changes))  # type: ignore[arg-type]


def write_root(store: Store, root: Manifest | bytes) -> None:
    data = root if isinstance(root, bytes) else root.to_bytes()
    store.put(ROOT_KEY, data)
    store.put(generation_key(1), data)


def write_pages(store: Store, runs: Sequence[FrameRun], records: Sequence[FrameRecord], **changes: object) -> Manifest:
    """Store one page with these runs and records, and a root over it that agrees with both."""
    data = encode_page(runs, records)
    ref = page_ref(data, records, None)
    store.put(ref.key, data)
    changes.setdefault("stored_bytes", sum(record.stored_bytes for record in records))
    root = root_of(ref, **changes)
    write_root(store, root)
    return root


def craft(
    store: Store,
    frames: Sequence[bytes],
    *,
    codec: str = "raw",
    lie: Callable[[int, FrameRecord], FrameRecord] = lambda number, record: record,
    run: Callable[[FrameRun], FrameRun] = lambda run: run,
    stored: Callable[[int, bytes], bytes] = lambda number, data: data,
    named: bool = False,
) -> Manifest:
    """A text of these frames in one segment, called SEGMENT, or by its content if `named`. `stored` changes what is
    stored of a frame, `lie` what is recorded of it, lengths and checksums too, `run` what is said of the segment."""
    bodies, records = [], []
    for number, data in enumerate(frames):
        try:
            body, record = encode(data, codec)
        except UnicodeDecodeError:
            body = data if codec == "raw" else encode(b"", codec)[0]
            record = describe(b"x" * len(data), body)._replace(flags=0, newlines=data.count(b"\n"))
        body = stored(number, body)
        sums = describe(b"", body)
        record = record._replace(stored_bytes=sums.stored_bytes, crc32c=sums.crc32c)
        bodies.append(body)
        records.append(lie(number, record))
    body = b"".join(bodies)
    key = f"segments/{hashlib.sha256(body).hexdigest()[:32]}.seg" if named else SEGMENT
    store.put(key, body)
    return write_pages(store, [run(FrameRun(key, 0, len(frames), codec))], records, codec=codec)


def changed(**changes: object) -> Callable[[FrameRun], FrameRun]:
    """A function for `craft(run=...)`."""
    return lambda run: dataclasses.replace(run, **changes)  # type: ignore[arg-type]
