"""Encode and decode the messages between a worker's reader and its host, and check requests.

A request is one JSON object. An answer is the length of a JSON object (4 bytes, big endian), the object, and raw bytes.
The host reads requests with nothing but `json`, within the bounds below, and checks each field that it uses. A *row* is
a record as a JSON list: `frame_row` makes the row of a frame, `frame_of` reads it, and so on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any

from monocontext.format.filters.grams import LEVELS
from monocontext.format.filters.query import All, AnyOf, FrequencyQuery, Literal, Query
from monocontext.format.index import Frame
from monocontext.format.refs import DocumentPageRef

MAX_REQUEST_BYTES = 1 << 20  # enough for a search for many literals, or for some thirty thousand runs of candidates
MAX_BATCH_BYTES = 4 << 20  # the most text in one answer: a larger one is no faster, and delays other threads
MAX_LITERAL = 4096  # the most characters of a literal; of a longer one only the beginning is sent, which suffices
_MAX_DEPTH = 30  # the deepest nesting of queries
_MAX_SHOWN = 50  # characters of a wrong value in a message


class BadRequest(ValueError):
    """A request that `ServedReader` would never send."""


def encode_request(verb: str, **fields: Any) -> bytes:
    """The bytes of a request: a verb, and fields whose values can be JSON."""
    return json.dumps({"verb": verb, **fields}, separators=(",", ":")).encode()


def parse_request(data: bytes) -> dict[str, Any]:
    """The fields of a request. Raises `BadRequest`."""
    if len(data) > MAX_REQUEST_BYTES:
        raise BadRequest(f"a request must have at most {MAX_REQUEST_BYTES:,} bytes, not {len(data):,}")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"a request must be JSON: {error}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("verb"), str):
        raise BadRequest(f"a request must be an object with a string `verb`, not {_shown(fields)}")
    return fields


def check_int(fields: dict[str, Any], name: str, low: int, high: int) -> int:
    """The field `name` of a request, an integer from `low` to `high`. Raises `BadRequest`."""
    value = fields.get(name)
    if type(value) is not int or not low <= value <= high:
        raise BadRequest(f"{name} must be an integer from {low} to {high}, not {_shown(value)}")
    return value


def check_ranges(rows: Any, stop: int, most: int) -> list[tuple[int, int]]:
    """The ranges of a request, at most `most`, each within [0, stop). Raises `BadRequest`."""
    if not isinstance(rows, list) or len(rows) > most:
        raise BadRequest(f"expected a list of at most {most:,} ranges, found {_shown(rows)}")
    pairs = []
    for row in rows:
        match row:
            case [int(first), int(end)] if 0 <= first <= end <= stop:
                pairs.append((int(first), int(end)))  # a bool becomes an int
            case _:
                raise BadRequest(f"expected a range [start, stop) within [0, {stop:,}), found {_shown(row)}")
    return pairs


def _shown(value: Any) -> str:
    """The beginning of a value, for a message."""
    try:
        return str(value)[:_MAX_SHOWN]
    except RecursionError:
        return "deeply nested lists"


def encode_answer(header: dict[str, Any], body: Iterable[bytes | memoryview] = ()) -> bytes:
    """The bytes of an answer."""
    head = json.dumps(header, separators=(",", ":")).encode()
    return b"".join([len(head).to_bytes(4, "big"), head, *body])


def split_answer(data: bytes | memoryview) -> tuple[dict[str, Any], memoryview]:
    """The header and the raw bytes of an answer. Not checked: the host is trusted."""
    view = memoryview(data)
    head_bytes = int.from_bytes(view[:4], "big")
    return json.loads(bytes(view[4 : 4 + head_bytes])), view[4 + head_bytes :]


# -- records, without their keys and offsets in storage ----------------------------------------------------------------


def frame_row(frame: Frame) -> list[int]:
    """The row of a frame: what a worker may know of it."""
    return [
        frame.number, frame.start, frame.characters, frame.bytes, frame.newlines, frame.flags, frame.start_byte,
        frame.start_newline,
    ]  # fmt: skip


def frame_of(row: Sequence[int]) -> Frame:
    """The frame of a `frame_row`. Its object and offset are placeholders, since a worker must not know them."""
    number, start, characters, size_bytes, newlines, flags, start_byte, start_newline = row
    return Frame(
        number, "the host's text", start_byte, size_bytes, size_bytes, characters, newlines, 0, flags, "raw", None,
        start, start_byte, start_newline,
    )  # fmt: skip


def page_row(ref: DocumentPageRef) -> list[int]:
    """The row of a `DocumentPageRef`, without its key in storage."""
    return list(astuple(ref)[1:])


def page_of(row: Sequence[int]) -> DocumentPageRef:
    """The `DocumentPageRef` of a `page_row`. Its key is a placeholder."""
    return DocumentPageRef("the host's page", *row)


# -- queries -----------------------------------------------------------------------------------------------------------


def query_row(query: Query) -> list[Any]:
    """The row of a query, whose first item is "literal", "often", "all" or "any"."""
    match query:
        case Literal():
            return ["literal", query.text[:MAX_LITERAL], query.flags, query.earliest, query.latest]
        case FrequencyQuery():
            return ["often", list(query.words), query.level]
        case All(queries):
            return ["all", [query_row(item) for item in queries]]
        case AnyOf(queries):
            return ["any", [query_row(item) for item in queries]]


def query_of(row: Any, depth: int = 0) -> Query:
    """The query of a `query_row`. Raises `BadRequest`."""
    match row:
        case ["literal", str(text), int(flags), int(earliest), int(latest)] if len(text) <= MAX_LITERAL:
            return Literal(text, flags, earliest, latest)
        case ["often", [str(), *_] as words, int(level)] if all(isinstance(word, str) for word in words):
            if 0 <= level < len(LEVELS):
                return FrequencyQuery(tuple(words), level)
        case ["all", [_, *_] as rows] if depth < _MAX_DEPTH:
            return All(tuple(query_of(row, depth + 1) for row in rows))
        case ["any", [_, *_] as rows] if depth < _MAX_DEPTH:
            return AnyOf(tuple(query_of(row, depth + 1) for row in rows))
    raise BadRequest(f"expected a query (literal, often, all or any), found {_shown(row)}")
