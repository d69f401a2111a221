"""Encode and decode values between host and worker.

A worker sends the host plain data as JSON, with long texts next to it as bytes. The host sends a worker, which trusts
it, plain data by `marshal`, which is exact for data of any size.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import Any

from monocontext.text.lazy_kinds import LazyContext, LazyText
from rlm.context.lazy import lazy_parts
from rlm.errors import ChannelAbuse

_SHORT_CHARACTERS = 100
"""A string of at most this length, in ASCII, is part of the JSON."""
_BATCH_ITEMS = 100
"""A list of at least this many strings is sent as its range in the texts, about three bytes a string."""
_MOST_DEPTH = 50
"""Deepest nesting of a value."""
MOST_SURROGATES = 100_000
"""The most lone surrogates in the texts of a message: reading one takes 140 ns, some 200 times as long as a letter."""
_MARK_SECOND_BYTES = bytes(ord("!") if 0xA0 <= byte <= 0xBF else byte for byte in range(256))
"""Translates the second byte of a surrogate in UTF-8, which comes after 0xED, to `!`."""


def encode_for_host(value: Any, texts: list[bytes], depth: int = 0, known: Sequence[object] = ()) -> Any:
    """`value` as plain data for JSON, with its long texts appended to `texts`.

    A value that the host has in `known` too, in the same order, is sent as its number there; another lazy text as its
    `str`. Raises TypeError for a value that is no plain data, and ValueError for one that is nested too deeply.
    """
    for number, entry in enumerate(known):
        if value is entry and value is not None:
            return {"known": number}
    if depth > _MOST_DEPTH:
        raise ValueError(f"a value nested deeper than {_MOST_DEPTH} levels cannot leave the sandbox: pass parts of it")
    if isinstance(value, LazyText):
        value = f"{value}"  # reads the text; raises where it is longer than its limit
    if isinstance(value, str):
        if len(value) <= _SHORT_CHARACTERS and value.isascii():
            return str(value)
        texts.append(value.encode("utf-8", "surrogatepass"))
        return {"text": len(texts) - 1}
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and value.bit_length() < 10_000):
        return value
    if isinstance(value, (list, tuple)):
        if len(value) >= _BATCH_ITEMS and all(isinstance(item, str) for item in value):
            texts += [item.encode("utf-8", "surrogatepass") for item in value]
            return {"texts": [len(texts) - len(value), len(value)]}
        return [encode_for_host(item, texts, depth + 1, known) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, encode_for_host(item, texts, depth + 1, known)] for key, item in value.items()]}
    raise TypeError(
        f"a {type(value).__name__} cannot leave the sandbox: pass a str such as context[a:b], numbers, lists or dicts"
    )


def decode_from_worker(
    tree: Any, texts: Sequence[str], known: Sequence[object] = (), depth: int = 0, used: bytearray | None = None
) -> Any:
    """The value that `encode_for_host` encoded. Raises ChannelAbuse.

    Each text may be named once: a few bytes that name a long text many times would be as many long prompts.
    """
    used = bytearray(len(texts)) if used is None else used
    if depth > _MOST_DEPTH:
        raise ChannelAbuse("the worker sent a value that is nested too deeply")
    match tree:
        case {"known": int(number)} if len(tree) == 1 and 0 <= number < len(known):
            return known[number]
        case {"text": int(at)} if len(tree) == 1:
            return _take_texts(texts, at, 1, used)[0]
        case {"texts": [int(first), int(count)]} if len(tree) == 1:
            return _take_texts(texts, first, count, used)
        case {"dict": [*items]} if len(tree) == 1 and all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in items
        ):
            return {key: decode_from_worker(item, texts, known, depth + 1, used) for key, item in items}
        case [*items]:
            return [decode_from_worker(item, texts, known, depth + 1, used) for item in items]
        case dict():
            raise ChannelAbuse("the worker sent a JSON object that is not an encoded value")
    return tree


def _take_texts(texts: Sequence[str], first: int, count: int, used: bytearray) -> list[str]:
    if not 0 <= first <= first + count <= len(texts) or any(used[first : first + count]):
        raise ChannelAbuse("the worker names a text that it has not sent, or names one twice")
    used[first : first + count] = b"\1" * count
    return list(texts[first : first + count])


def split_texts(sizes: Any, body: memoryview) -> list[str]:
    """The texts of a body, in which they follow each other with these sizes in bytes. Raises ChannelAbuse."""
    if not isinstance(sizes, list) or any(type(size) is not int or size < 0 for size in sizes):
        raise ChannelAbuse("the worker sent malformed lengths")
    if sum(sizes) != len(body):
        raise ChannelAbuse(f"the worker sent texts of {sum(sizes):,} bytes in a body of {len(body):,}")
    texts, offset, surrogates = [], 0, 0
    for size in sizes:
        part = body[offset : offset + size]
        offset += size
        try:
            texts.append(str(part, "utf-8"))
            continue
        except UnicodeDecodeError:
            surrogates += count_lone_surrogates([part])
        if surrogates > MOST_SURROGATES:
            raise ChannelAbuse(f"the worker sent more than {MOST_SURROGATES:,} lone surrogates at once")
        try:
            texts.append(str(part, "utf-8", "surrogatepass"))
        except UnicodeDecodeError as exc:
            raise ChannelAbuse(f"the worker sent a text that is not UTF-8: {exc.reason}") from None
    return texts


def count_lone_surrogates(texts: Sequence[bytes | memoryview]) -> int:
    """The number of lone surrogates in texts in UTF-8, counted at 1 GB/s."""
    return sum(bytes(text).translate(_MARK_SECOND_BYTES).count(b"\xed!") for text in texts)


def is_plain_data(value: object) -> bool:
    """Whether the type of a value is one that `pack_for_worker` takes."""
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
    """`value` as a tree of plain data, in which a lazy text is its number in `texts`, to which new ones are added."""
    if isinstance(value, LazyContext):
        number = next((number for number, text in enumerate(texts) if text is value), len(texts))
        texts[number:] = texts[number:] or [value]
        return "text", number
    if not any(lazy_parts(value)):
        return "plain", value
    if isinstance(value, dict):
        return "dict", [(key, take_texts_out(item, texts)) for key, item in value.items()]
    return "tuple" if isinstance(value, tuple) else "list", [take_texts_out(item, texts) for item in value]


def put_texts_in(tree: Any, texts: Sequence[object]) -> Any:
    """The value of which `take_texts_out` made a tree."""
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
