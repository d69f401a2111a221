"""A needle that is much longer than the windows that a text comes in."""

from __future__ import annotations

import pytest

from monocontext import Monocontext, publish


@pytest.mark.parametrize(("lines", "word"), [(3000, "line"), (8000, "line"), (9000, "łine")])
def test_on_a_text(lines: int, word: str) -> None:
    needle = "".join(f"{word} {i}\n" for i in range(lines))
    text = f"{needle[1:]}{needle}{needle[:-1]}{needle}end"
    publish(text, "memory://long-needles", frame_bytes=256, replace=True)
    with Monocontext.open("memory://long-needles", materialize_limit=len(needle) + 1) as context:
        assert needle in context
        assert context.find(needle) == text.find(needle)
        assert context.rfind(needle) == text.rfind(needle)
        assert context.count(needle) == 2
        assert context.split(needle) == text.split(needle)
        assert context.replace(needle, "-") == text.replace(needle, "-")
        assert context.partition(needle) == text.partition(needle)
