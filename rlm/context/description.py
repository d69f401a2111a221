"""Describe the type and size of a context for the model, and refuse a context that is only an address."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from rlm.context.excerpt import bounded_repr
from rlm.context.lazy import is_lazy, is_text, lazy_texts
from rlm.errors import InvalidArgument

_ADDRESS = re.compile(r"(s3|gs|az|abfs|memory|file)://\S+")  # "s3://bucket/prefix", and nothing beside it
_MOST_TEXTS = 20  # the most lazy texts of a dict that are described
_TEXTS_ACCESS = """\
The texts in it are kept in storage and read where you look. Each reads like a str: slices, `in`, `find`, `count` and \
`re` work on it, `text.lines[a:b]` gives lines, `text.grep(pattern)` hits with `.offset`, `.line_number` and `.line`, \
and `text.chunks(100_000)` pieces for a pass over all of it. Do not print or copy a whole one."""


@dataclass(frozen=True, slots=True)
class Description:
    """The type and size of a context, found without reading it."""

    kind: str  # "lazy text", "lazy list", "lazy dict", "str", "list", "dict", "nothing" or "object"
    type_name: str
    length: int | None  # characters of a text, items of a list, keys of a dict; None if it has no length
    lines: int | None  # of a text; None for anything else
    sentence: str  # for the model: "a str of 1,200 characters in 30 lines"
    uri: str | None = None  # the URL of a lazy text, if it has one
    access: str = ""  # for the model: how to read a lazy list or dict, or the lazy texts in a plain one


def describe(context: object) -> Description:
    """Describe `context`. A lazy list or dict costs 1 GET for its first names, a lazy text at most 1 for its lines."""
    name = type(context).__name__
    if context is None:
        return Description("nothing", name, None, None, "nothing: the question stands alone, and `context` is None")
    if isinstance(context, str):
        count = context.count("\n") + (not context.endswith("\n") and bool(context))
        size = f"{len(context):,} character{'s' * (len(context) != 1)} in {count:,} line{'s' * (count != 1)}"
        return Description("str", name, len(context), count, f"a {name} of {size}")
    if is_lazy(context):
        return _describe_lazy(context, name)
    access = _TEXTS_ACCESS if next(lazy_texts(context), None) is not None else ""
    if isinstance(context, Mapping):
        keys = bounded_repr([key for key, _ in zip(context, range(50), strict=False)], 300)
        sentence = f"a {name} with {_count_nouns(len(context), 'key')}, first {keys}"
        return Description("dict", name, len(context), None, sentence + _describe_texts(context), access=access)
    if isinstance(context, (list, tuple)):
        sentence = f"a {name} of {_count_nouns(len(context), 'item')}{_describe_items(context)}"
        return Description("list", name, len(context), None, sentence, access=access)
    length = len(context) if isinstance(context, Sized) else None
    return Description("object", name, length, None, f"a {name}: {bounded_repr(context, 300)}")


def _describe_lazy(context: Any, name: str) -> Description:
    if not is_text(context):
        fields = context.describe()
        kind, sentence, access = fields["kind"], fields["sentence"], fields["access"]
        return Description(kind, name, len(context), None, sentence, context.url or None, access)
    lines = len(context.lines)
    size = f"{_count_nouns(len(context), 'character')} in {_count_nouns(lines, 'line')}"
    sentence = f"a {name}: text of {size}, kept in storage and read where you look"
    return Description("lazy text", name, len(context), lines, sentence, context.url or None)


def _describe_texts(context: Mapping[Any, Any]) -> str:
    """Clauses on the first lazy texts of a dict, and on how many more there are."""
    texts = [(key, value) for key, value in zip(context, context.values(), strict=False) if is_lazy(value)]
    described = "".join(f"; {key!r} is {describe(value).sentence}" for key, value in texts[:_MOST_TEXTS])
    left_out = len(texts) - _MOST_TEXTS
    return f"{described}; and {_count_nouns(left_out, 'more text')}" if left_out > 0 else described


def _describe_items(items: Sequence[object]) -> str:
    """A clause on the sizes of the items if all are strings, else on their types; empty for an empty list."""
    types = sorted({type(item).__name__ for item in items})
    lengths = [len(item) for item in items if isinstance(item, str)]
    if lengths and len(lengths) == len(items):
        return f", all str, {sum(lengths):,} characters together, the longest {max(lengths):,}"
    return f", of type {', '.join(types)}" if types else ""


def _count_nouns(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def check_context(context: object) -> None:
    """Raise InvalidArgument for a str that is only the address of a stored text, or the name of a file."""
    if not isinstance(context, str) or len(context) > 1000 or "\n" in context:
        return
    if _ADDRESS.fullmatch(context):
        raise InvalidArgument(f"the context is an address, not a text: pass Monocontext.open({context!r})")
    if "\0" not in context and os.path.isfile(context):
        raise InvalidArgument(f"the context is the name of a file, not its text: pass open({context!r}).read()")
