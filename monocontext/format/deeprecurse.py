"""Parse the manifest of a DeepRecurse context: a JSON array of segments with line counts."""

from __future__ import annotations

import json
from collections.abc import Callable

from monocontext.errors import DamagedData, NotAContext
from monocontext.records import dataclass
from monocontext.stores.protocol import Store

_LINE_LIMIT = 1 << 61  # line numbers are below it, so that the sum of two is a valid result of `len`


@dataclass(frozen=True, slots=True)
class DeepRecurseSegment:
    """One entry of a DeepRecurse manifest."""

    key: str
    start_line: int
    line_count: int


def parse_manifest(data: bytes, name: str) -> list[DeepRecurseSegment]:
    """The segments of a DeepRecurse manifest, in order. Raises `NotAContext` for anything else, and `DamagedData`."""
    try:
        rows = json.loads(data)
        segments = [DeepRecurseSegment(str(row["segment"]), row["start_line"], row["line_count"]) for row in rows]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotAContext(f"{name}: expected the manifest of a context or of DeepRecurse, found other data") from error
    for segment in segments:
        for field, count in (("start_line", segment.start_line), ("line_count", segment.line_count)):
            if type(count) is not int or not 0 <= count < _LINE_LIMIT:
                where = f"{name}: segment {segment.key[:80]!r}"
                raise DamagedData(f"{where}: {field} must be an integer of at least 0, not {str(count)[:40]!r}")
    return sorted(segments, key=lambda segment: segment.start_line)


def segment_key(store: Store) -> Callable[[str], str]:
    """A function from the name of a segment to its key in `store`: the name without the store's prefix."""
    prefix = store.url.partition("://")[2].partition("/")[2] + "/"
    return lambda name: name.removeprefix(prefix)
