"""`.lines` as a sequence."""

from __future__ import annotations

import bisect
from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import ContextTooLarge

LINES = [f"{i:04d} line\n" for i in range(1000)]


@pytest.fixture
def context(tmp_path: Path) -> Monocontext:
    publish("".join(LINES), tmp_path / "context", frame_bytes=500)
    return Monocontext.open(tmp_path / "context", materialize_limit=50)


def test_lines_are_a_sequence(context: Monocontext) -> None:
    lines = context.lines
    assert bisect.bisect_left(lines, "0500") == 500
    assert lines.index("0007 line\n") == LINES.index("0007 line\n")
    assert lines.index("0007 line\n", 3, 9) == 7
    with pytest.raises(ValueError, match=r"^$"):
        lines.index("0007 line\n", 8)
    assert lines.count("0007 line\n") == 1
    assert "0009 line\n" in lines
    assert "0009 line" not in lines
    assert list(reversed(lines)) == LINES[::-1]
    assert lines[3:8:2] == "".join(LINES[3:8:2])
    with pytest.raises(ContextTooLarge, match=r"\.lines"):
        lines[::2]
