"""Encode and decode the values that a worker and its host exchange.

A worker sends JSON, with its texts next to it as bytes: the host must not trust what arrives. The host, which a worker
trusts, sends `marshal`, which is exact for data of any size.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Sequence, Set, ValuesView
from itertools import accumulate
from typing import Any

from monocontext.text.lazy_kinds import LazyContext, LazyText
from rlm.context.lazy import lazy_texts
from rlm.errors import ChannelAbuse

_MOST_DEPTH = 50  # deepest nesting of a value
_ROWS = (Sequence, Set, Iterator, ValuesView)  # sent as a list; not every iterable: a data frame yields columns


def encode_for_host(value: Any, texts: list[bytes], known: Sequence[object] = (), depth: int = 0) -> Any:
    """`value` as plain data for JSON, with an empty text in place of each text, which is appended to `texts`. Lone
    surrogates are escaped. A value in `known`, which the host has too, is sent as its number there; another lazy text
    as its `str`. Raises TypeError for what is not plain data, ValueError for what is nested too deeply."""
    for number, entry in enumerate(known):
        if value is entry and value is not None:
            return {"known": number}
    if depth > _MOST_DEPTH:
        raise ValueError(f"a value nested deeper than {_MOST_DEPTH} levels cannot leave the sandbox: pass parts of it")
    if isinstance(value, LazyText):
        value = f"{value}"  # reads the text; raises where it is longer than its limit
    if isinstance(value, str):
        texts.append(value.encode("utf-8", "backslashreplace"))
        return ""
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and value.bit_length() < 10_000):
        return value
    if isinstance(value, _ROWS) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [encode_for_host(item, texts, known, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        flat = [part for item in value.items() for part in item]
        return {"dict": [encode_for_host(part, texts, known, depth + 1) for part in flat]}
    type_name = "dict whose keys are not all str" if isinstance(value, dict) else type(value).__name__
    raise TypeError(f"a {type_name} cannot leave the sandbox: pass a str such as context[a:b], numbers, lists or dicts")


def decode_from_worker(tree: Any, texts: Iterator[str], known: Sequence[object] = (), depth: int = 0) -> Any:
    """The value that `encode_for_host` encoded. Raises ChannelAbuse."""
    if depth > _MOST_DEPTH:
        raise ChannelAbuse(f"the worker sent a value nested deeper than {_MOST_DEPTH} levels")
    match tree:
        case str():
            if (text := next(texts, None)) is None:
                raise ChannelAbuse("the worker sent a value that refers to more texts than it sent")
            return text
        case {"known": int(number)} if len(tree) == 1 and 0 <= number < len(known):
            return known[number]
        case {"dict": [*flat]} if len(tree) == 1 and len(flat) % 2 == 0 and set(map(type, flat[::2])) <= {str}:
            parts = [decode_from_worker(part, texts, known, depth + 1) for part in flat]
            return dict(zip(parts[::2], parts[1::2], strict=True))
        case [*items]:
            return [decode_from_worker(item, texts, known, depth + 1) for item in items]
        case dict():
            raise ChannelAbuse("the worker sent a JSON object that is not an encoded value")
    return tree


def split_texts(sizes: Any, body: memoryview) -> Iterator[str]:
    """The texts in `body`, one after another, with these sizes in bytes. Raises ChannelAbuse."""
    if not isinstance(sizes, list) or any(type(size) is not int or size < 0 for size in sizes):
        raise ChannelAbuse(f"the worker sent {str(sizes)[:50]!r} as the lengths of texts, expected a list of numbers")
    if sum(sizes) != len(body):
        raise ChannelAbuse(f"the worker sent texts of {sum(sizes):,} bytes in a body of {len(body):,} bytes")
    ends = accumulate(sizes)
    try:
        return iter([str(body[end - size : end], "utf-8") for size, end in zip(sizes, ends, strict=True)])
    except UnicodeDecodeError as exc:
        raise ChannelAbuse(f"the worker sent a text that is not UTF-8: {exc.reason}") from None


def is_plain_data(value: object) -> bool:
    """Whether `pack_for_worker` accepts the type of a value; the items may still be of other types."""
    return value is None or type(value) in (str, bytes, bool, int, float, list, tuple, dict, set, frozenset)


def pack_for_worker(value: Any) -> bytes:
    """`value` as bytes for a worker. Raises TypeError if it contains more than plain data."""
    try:
        return marshal.dumps(value, 4)
    except ValueError as exc:
        raise TypeError(f"this {type(value).__name__} contains more than plain data, or is nested too deeply") from exc


def unpack_from_host(data: memoryview) -> Any:
    """The data that the host packed. For the worker only: `marshal` must not read untrusted data."""
    return marshal.loads(data)


def take_texts_out(value: Any, texts: list[LazyContext]) -> Any:
    """`value` as a tree of plain data without its lazy texts, which are added to `texts`. Each node is a pair: its kind
    ("text", "plain", "dict", "list" or "tuple"), and its number in `texts`, its value or its items."""
    if isinstance(value, LazyContext):
        number = next((number for number, text in enumerate(texts) if text is value), len(texts))
        if number == len(texts):
            texts.append(value)
        return "text", number
    if next(lazy_texts(value), None) is None:
        return "plain", value
    if isinstance(value, dict):
        return "dict", [(key, take_texts_out(item, texts)) for key, item in value.items()]
    return "tuple" if isinstance(value, tuple) else "list", [take_texts_out(item, texts) for item in value]


def put_texts_in(tree: Any, texts: Sequence[object]) -> Any:
    """The value that `take_texts_out` turned into `tree`."""
    match tree:
        case "text", number:
            return texts[number]
        case "dict", items:
            return {key: put_texts_in(item, texts) for key, item in items}
        case "list", items:
            return [put_texts_in(item, texts) for item in items]
        case "tuple", items:
            return tuple(put_texts_in(item, texts) for item in items)
    return tree[1]
