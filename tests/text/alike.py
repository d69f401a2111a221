"""One operation on a `str` and on the text that stands for it: equal results, or errors of one kind."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import MemoryStore, forget
from monocontext.text.lazy_lists import LazyList
from monocontext.writing.publish import publish

ALPHABET = [
    *("a", "b", "ab", "aab", "A", " ", "\t", "\n", "\n\n", "\r", "\r\n", ".", "0"),
    *(
        "é",
        "e\u0301",
        "漢",
        "😀",
        "👍🏽",
        "\u2028",
        "\x0b",
        "\x85",
        "\x1c",
        "\u00a0",
        "ß",
        "İ",
        "Σ",
        "ς",
        "ŉ",
        "\ufb01",
    ),
]
texts = st.lists(st.sampled_from(ALPHABET), max_size=40).map("".join)
huge = st.sampled_from([10**18, -(10**18), 10**30, -(10**30)])
offsets = st.integers(-60, 60)
bounds = st.none() | offsets | huge
steps = st.none() | st.integers(-7, 7).filter(bool) | huge
slices = st.builds(slice, bounds, bounds, steps)

# Frames of 1 to 100 bytes, caches from nothing up.
frame_sizes = st.integers(1, 100)
cache_sizes = st.sampled_from([0, 1, 310, 1000, 5000, 1 << 20])


def needles(text: str) -> st.SearchStrategy[str]:
    """What lies in the text, what may lie in it, and what does not."""
    if not text:
        return st.sampled_from(["", "a", "\ud83d"])
    inside = st.tuples(st.integers(0, len(text) - 1), st.integers(1, 12)).map(lambda at: text[at[0] : at[0] + at[1]])
    return inside | st.lists(st.sampled_from(ALPHABET), max_size=4).map("".join) | st.sampled_from(["\ud83d", text])


class Stored:
    """A text in memory, opened; use as a context manager."""

    def __init__(self, text: str, frame_bytes: int, **options: Any):
        name = uuid.uuid4().hex
        store = MemoryStore(name)
        publish(text, store, frame_bytes=frame_bytes, segment_bytes=3 * frame_bytes, codec="raw")
        self._name, self._context = name, Monocontext.open(store, **options)

    def __enter__(self) -> Monocontext:
        return self._context

    def __exit__(self, *_: object) -> None:
        self._context.close()
        forget(self._name)


def plain(value: Any) -> Any:
    """A result as what it stands for, after a look at whether it is consistent in itself."""
    if isinstance(value, Monocontext):
        text = "".join(value)
        assert len(value) == len(text)
        assert bool(value) == bool(text)
        return text
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list | LazyList):
        items = list(map(plain, value))
        assert len(value) == len(items)
        return items
    return value


def outcome(operation: Callable[[Any], Any], text: Any) -> Any:
    """What an operation gives, or the kind of its error."""
    try:
        return plain(operation(text))
    except ContextTooLarge:
        return ContextTooLarge
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        return next(
            kind for kind in (TypeError, IndexError, KeyError, OverflowError, ValueError) if isinstance(error, kind)
        )


def assert_alike(operation: Callable[[Any], Any], context: Any, text: str) -> None:
    """The operation gives the same on both; where the limit forbids it, it says so instead."""
    found = outcome(operation, context)
    if found is ContextTooLarge:
        assert len(text) > context._limit or context._limit < 1 << 20
        return
    expected = outcome(operation, text)
    assert type(found) is type(expected)
    assert found == expected
