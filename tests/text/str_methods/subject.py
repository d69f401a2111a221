"""A `str` as a context over awkward frames, and what a result stands for once it has been read."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.engine import reader
from monocontext.stores.memory import MemoryStore, forget
from monocontext.text import derived, splitting
from monocontext.text import lazy_lists as splits
from monocontext.text import windows as search
from monocontext.text.lazy_kinds import LazyItems
from monocontext.text.monocontext import MATERIALIZE_LIMIT
from tests.simulated import SimulatedWorkers

_SURROGATES = re.compile("[\ud800-\udfff]")


def stored(text: str, frame_bytes: int = 3, limit: int = MATERIALIZE_LIMIT, cache_bytes: int = 1 << 20) -> Any:
    """The text in memory, in frames of so many bytes; no thread has a part in reading it.

    Lone surrogates have no UTF-8 form, so no store holds them: such a text stays a `str`.
    """
    if _SURROGATES.search(text):
        return text
    name = uuid.uuid4().hex
    store = MemoryStore(name)
    publish(text, store, frame_bytes=frame_bytes, segment_bytes=3 * frame_bytes, codec="raw")
    forget(name)
    workers = SimulatedWorkers(lambda request: 0.0)
    return Monocontext.open(store, materialize_limit=limit, cache_bytes=cache_bytes, workers=workers)


@contextmanager
def small_pieces(random: Random) -> Iterator[None]:
    """The sizes at which the code goes another way, made so small that short texts go all of them."""
    apart = Random(repr(random.getstate()))  # draws nothing from `random`, whose cases stay what they were
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "ITEMS_PER_CHECKPOINT", random.choice((1, 2, 3, 4096)))
        patch.setattr(splits, "CHECKPOINT_CHARACTERS", apart.choice((1, 5, 1 << 18)))
        patch.setattr(splitting, "MAX_WAIT_CHARACTERS", random.choice((0, 1, 2, 5, 8 << 20)))
        patch.setattr(derived, "SEGMENT_CHARACTERS", random.choice((1, 2, 3, 1 << 18)))
        patch.setattr(search, "MOST_STARTS", apart.choice((0, 1, 100)))
        patch.setattr(reader, "FIRST_BATCH_BYTES", random.choice((1, 7, 1 << 20)))
        yield


class Inconsistent(AssertionError):
    """A lazy result that says one thing when it is read one way, and another when it is read another way."""


def read(value: Any) -> Any:
    """A result as the kind of thing it is and what it holds; lazy ones are read in several ways, which must agree."""
    if isinstance(value, Monocontext):
        return "str", _read_text(value)
    if isinstance(value, LazyItems):
        return "list", _read_items(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [read(item) for item in value]
    return type(value).__name__, value


def _read_text(text: Monocontext) -> str:
    whole = "".join(text)
    size = len(text)
    step = min(text._limit, 7)
    _agree("len", size, len(whole))
    _agree("bool", bool(text), bool(whole))
    _agree("slices", "".join(text[at : at + step] for at in range(0, size, step)), whole)
    _agree("reversed", "".join(reversed(text)), whole[::-1])
    _agree("items", [text[at] for at in (0, -1, size // 2) if size], [whole[at] for at in (0, -1, size // 2) if size])
    _agree("newlines", text.count("\n", size // 3), whole.count("\n", size // 3))
    _agree("lines", [read(line)[1] for line in text.lines], re.findall(r"[^\n]*\n|[^\n]+", whole))
    return whole


def _read_items(items: Any) -> list[Any]:
    first, *_ = [read(item) for item in items[:1]] or [None]
    everything = [read(item) for item in items]
    size = len(everything)
    _agree("the first", first, everything[0] if everything else None)
    _agree("len", len(items), size)
    _agree("reversed", [read(item) for item in reversed(items)], everything[::-1])
    _agree("by index", [read(items[at]) for at in range(-size, size)], everything * 2)
    for key in (
        slice(None, -1),
        slice(-2, None),
        slice(1, 3),
        slice(None, None, -2),
        slice(size, 0, -1),
        slice(2, 99, 2),
    ):
        _agree(f"[{key}]", [read(item) for item in items[key]], everything[key])
    _agree("by index, from the end", [read(items[at]) for at in reversed(range(size))], everything[::-1])
    for item in items[:3]:
        if not isinstance(item, Monocontext):
            _agree("index", items.index(item), everything.index(read(item)))
            _agree("count", items.count(item), everything.count(read(item)))
            _agree("in", item in items, True)
            for bounds in ((1,), (-2,), (0, -1), (2, 99), (size // 2, size)):
                _agree(f"index{bounds}", _index(items, item, *bounds), _index(list(items), item, *bounds))
    _agree("not in", "no item of any test" in items or items.count("no item of any test") > 0, False)
    _agree("index beyond", _raises_index_error(items, size) and _raises_index_error(items, -size - 1), True)
    return everything


def _index(items: Sequence[Any], item: Any, *bounds: int) -> int | None:
    try:
        return items.index(item, *bounds)
    except ValueError:
        return None


def _raises_index_error(items: Any, at: int) -> bool:
    try:
        items[at]
    except IndexError:
        return True
    return False


def _agree(way: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise Inconsistent(f"{way}: {found!r}, by iteration {expected!r}")
