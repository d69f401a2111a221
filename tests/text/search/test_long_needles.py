"""Needles that are much longer than the windows that a text comes in: the same answers, and not at quadratic cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.text import windows as search
from monocontext.text.windows import Window


def windows(text: str, size: int, *, reverse: bool = False, as_bytes: bool = False) -> Iterator[Window]:
    starts = list(range(0, len(text), size))
    for start in reversed(starts) if reverse else starts:
        piece: Any = text[start : start + size]
        yield Window(start, piece.encode() if as_bytes else piece)


@pytest.fixture(autouse=True)
def every_needle_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SHORT_NEEDLE", 1)


def test_the_number_of_steps_depends_on_the_needle_and_not_on_the_windows() -> None:
    """A step costs what the needle is long: 4 steps for each length of a needle are linear, whatever the frames."""
    needle = "abcdefgh" * 50_000
    text = "x" * len(needle) + needle[1:] + "y" + needle
    for size in (64, 1000, 1 << 20):
        for reverse in (False, True):
            seen = list(search.join_windows(windows(text, size, reverse=reverse), needle, reverse))
            assert len(seen) <= 4 * len(text) / len(needle) + 1
            assert max(len(window.data) for window in seen) <= len(needle) // 4 + size
            assert "".join(window.data for window in (reversed(seen) if reverse else seen)) == text
    assert next(search.occurrences(search.join_windows(windows(text, 64), needle), needle)) == 2 * len(needle)


def test_on_a_text() -> None:
    needle = "".join(f"line {i}\n" for i in range(3000))
    text = f"{needle[1:]}{needle}{needle[:-1]}{needle}end"
    publish(text, "memory://long-needles", frame_bytes=64, replace=True)
    with Monocontext.open("memory://long-needles", materialize_limit=len(needle) + 1) as context:
        assert needle in context
        assert context.find(needle) == text.find(needle)
        assert context.rfind(needle) == text.rfind(needle)
        assert context.count(needle) == 2
        assert context.split(needle) == text.split(needle)
        assert context.replace(needle, "-") == text.replace(needle, "-")
        assert context.partition(needle) == text.partition(needle)
