"""Values that cross the channel. Pure.

From a worker to the host: plain data as JSON, long texts beside it as bytes; nothing that could run. From the host to a
worker, which trusts it: `marshal`, exact for plain data of any size, and nothing but plain data.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import Any

from rlm.errors import ChannelAbuse

_SHORT = 100
_MANY = 100
"""A list of at least so many strings crosses as its place among the texts, some three bytes a string: a batch."""
_DEEPEST = 50


def outgoing(value: Any, texts: list[bytes], depth: int = 0, context: object = None) -> Any:
    """`value` as JSON, its long texts appended to `texts`; `context` itself goes by name. Raises TypeError for what is
    no plain data."""
    if value is context and context is not None:
        return {"context": True}
    if depth > _DEEPEST:
        raise ValueError(f"a value nested deeper than {_DEEPEST} levels cannot leave the sandbox")
    if isinstance(value, str):
        if len(value) <= _SHORT and value.isascii():
            return str(value)
        texts.append(value.encode("utf-8", "surrogatepass"))
        return {"text": len(texts) - 1}
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and value.bit_length() < 10_000):
        return value
    if isinstance(value, (list, tuple)):
        if len(value) >= _MANY and all(isinstance(item, str) and item is not context for item in value):
            texts += [item.encode("utf-8", "surrogatepass") for item in value]
            return {"texts": [len(texts) - len(value), len(value)]}
        return [outgoing(item, texts, depth + 1, context) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, outgoing(item, texts, depth + 1, context)] for key, item in value.items()]}
    raise TypeError(
        f"a {type(value).__name__} cannot leave the sandbox: pass a str such as context[a:b], numbers, lists or dicts"
    )


def incoming(
    tree: Any, texts: Sequence[str], context: object = None, depth: int = 0, used: bytearray | None = None
) -> Any:
    """What `outgoing` made JSON of, with the `context` of this side. Raises ChannelAbuse.

    Each text is named once: a few bytes that name a long one again and again would be as many long prompts.
    """
    used = bytearray(len(texts)) if used is None else used
    if depth > _DEEPEST:
        raise ChannelAbuse("the worker sent a value that is nested too deeply")
    match tree:
        case {"context": True} if len(tree) == 1:
            return context
        case {"text": int(at)} if len(tree) == 1:
            return _taken(texts, at, 1, used)[0]
        case {"texts": [int(first), int(count)]} if len(tree) == 1:
            return _taken(texts, first, count, used)
        case {"dict": [*items]} if len(tree) == 1 and all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in items
        ):
            return {key: incoming(item, texts, context, depth + 1, used) for key, item in items}
        case [*items]:
            return [incoming(item, texts, context, depth + 1, used) for item in items]
        case dict():
            raise ChannelAbuse("the worker sent an object that is no value")
    return tree


def _taken(texts: Sequence[str], first: int, count: int, used: bytearray) -> list[str]:
    if not 0 <= first <= first + count <= len(texts) or any(used[first : first + count]):
        raise ChannelAbuse("the worker names a text that it has not sent, or one twice")
    used[first : first + count] = b"\1" * count
    return list(texts[first : first + count])


def split_texts(sizes: Any, body: memoryview) -> list[str]:
    """The texts that lie back to back in a body. Raises ChannelAbuse."""
    if not isinstance(sizes, list) or any(type(size) is not int or size < 0 for size in sizes):
        raise ChannelAbuse("the worker sent lengths that are none")
    if sum(sizes) != len(body):
        raise ChannelAbuse(f"the worker sent texts of {sum(sizes):,} bytes in a body of {len(body):,}")
    texts, at = [], 0
    for size in sizes:
        try:
            texts.append(str(body[at : at + size], "utf-8", "surrogatepass"))
        except UnicodeDecodeError as exc:
            raise ChannelAbuse(f"the worker sent a text that is not UTF-8: {exc.reason}") from None
        at += size
    return texts


def is_data(value: object) -> bool:
    """Whether `packed` would take a value, told from its type alone."""
    return value is None or type(value) in (str, bytes, bool, int, float, list, tuple, dict, set, frozenset)


def packed(value: Any) -> bytes:
    """Plain data for a worker. Raises TypeError for anything else in it."""
    try:
        return marshal.dumps(value, 4)
    except ValueError as exc:
        raise TypeError(f"this {type(value).__name__} holds more than plain data, or is nested too deeply") from exc


def unpacked(data: memoryview) -> Any:
    """In the worker alone: `marshal` must not be given what an enemy wrote."""
    return marshal.loads(data)
