"""A loop over items or short slices by number reads a frame that the text keeps as a `str`."""

from __future__ import annotations

from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.errors import ContextClosed
from tests.text.str_methods.subject import stored

TEXT = "aé😀\n" * 9 + "plain " * 30


@pytest.mark.parametrize(("frame_bytes", "limit"), [(1, 2), (7, 4096), (64, 2), (4096, 4096)])
def test_a_loop_by_number_gives_the_text(frame_bytes: int, limit: int) -> None:
    whole = stored(TEXT, frame_bytes, limit)
    for text, expected in ((whole, TEXT), (whole.view(5, 90), TEXT[5:90])):
        numbers = list(range(-len(expected), len(expected)))
        for i in [*numbers, *reversed(numbers), 3, 0, 80, -1, 40, 41]:
            for key in (i, slice(i, i + 2), slice(i, i - 3)):
                assert text[key] == expected[key]


def test_a_loop_goes_on_in_the_frame_after_the_copy_of_the_beginning_in_the_root(tmp_path: Any) -> None:
    publish("0123456789" * 600_000, tmp_path, codec="raw")
    with Monocontext.open(tmp_path) as text:
        assert "".join(text[i] for i in range(20_000)) == "0123456789" * 2000
        assert len(text._source.loop_frame[1]) > 200_000


def test_reads_of_a_kept_frame_are_logged_closed_and_refreshed(tmp_path: Any) -> None:
    publish("old " * 99, tmp_path)
    text: Any = Monocontext.open(tmp_path)
    assert "".join(text[i] for i in range(8)) == "old old "
    (read, _), (handed, _) = text.reads_since(), text.handed_since()
    assert text[2:4] + text[5] == "d l"
    assert text.reads_since(read)[1] == text.handed_since(handed)[1] == [(2, 4), (5, 6)]
    text = Monocontext.open(tmp_path)
    publish("newest" * 99, tmp_path, replace=True)
    assert text[3:5] + text[4] + text.refresh()[4] == " oos"
    text = Monocontext.open(tmp_path)
    publish("latest" * 99, tmp_path, replace=True)
    first, read = text[0], text._reader.text_within
    text._reader.text_within = lambda start, stop: (text.refresh(), read(start, stop))[1]  # as another thread may
    assert first + text[1] + text[2] == "net"
    part = text.view(2, 9)
    assert part[0] + part[1] + part[2] == "tes"
    text.close()
    with pytest.raises(ContextClosed):
        part[0]
