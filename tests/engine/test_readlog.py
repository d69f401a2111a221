"""What a run has looked at, in process and from a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from monocontext import Monocontext, publish
from monocontext.engine.read_log import MOST_RANGES, ReadLog

TEXT = "".join(f"line {i:06d}\n" for i in range(4000))


@pytest.fixture
def context(tmp_path: Path) -> Monocontext:
    publish(TEXT, str(tmp_path / "ctx"), frame_bytes=4096)
    return Monocontext.open(str(tmp_path / "ctx"))


def test_too_many_ranges_cover_more_never_less() -> None:
    log = ReadLog()
    mark, _ = log.since(None)
    starts = range(0, 1000 * 3 * MOST_RANGES, 1000)
    for start in starts:
        log.add(start, start + 10)
    _, ranges = log.since(mark)
    assert len(ranges) <= MOST_RANGES
    assert ranges == sorted(ranges)
    covered = iter(ranges)
    low, high = next(covered)
    for start in starts:
        while start >= high:
            low, high = next(covered)
        assert low <= start
        assert start + 10 <= high


def test_each_read_of_a_text_is_written_down_once_asked(context: Monocontext) -> None:
    assert context[0:10] == TEXT[0:10]
    mark, ranges = context.reads_since(None)
    assert ranges == []
    for start in (110, 100, 100):
        assert context[start : start + 10] == TEXT[start : start + 10]
    assert context[-20:] == TEXT[-20:]
    assert context[5000:5001] == TEXT[5000]
    mark, ranges = context.reads_since(mark)
    assert ranges == [(100, 120), (5000, 5001), (len(TEXT) - 20, len(TEXT))]
    assert context.reads_since(mark)[1] == []


def test_a_search_reads_the_frames_it_looks_at(context: Monocontext) -> None:
    mark, _ = context.reads_since()
    assert context.find("line 000900") == TEXT.find("line 000900")
    _, ranges = context.reads_since(mark)
    assert any(start <= TEXT.find("line 000900") < stop for start, stop in ranges)
    assert max(stop for _, stop in ranges) < len(TEXT) // 2


def test_a_view_speaks_of_its_own_characters(context: Monocontext) -> None:
    view = context.view(1000, 2000)
    mark, _ = view.reads_since()
    assert context[900:1010] == TEXT[900:1010]
    assert view[50:60] == TEXT[1050:1060]
    assert view.reads_since(mark)[1] == [(0, 10), (50, 60)]
    assert context.reads_since(mark)[1] == [(900, 1010), (1050, 1060)]


PIECES = {
    "context[96:107]": ["line 000008"],
    "list(context.grep('line 000900'))": ["line 000900"],
    "re.search('0009(..)', context)": ["000900"],
    "list(re.finditer('line 00[12]000', context))": ["line 001000", "line 002000"],
    "re.findall('00300(.)', context)": [f"00300{i}" for i in range(10)],
    "context.lines[50]": ["line 000050\n"],
    "context.search('000901', k=1)[0]": None,
    "context.find('line 000777')": [],
    "context.count('line')": [],
    "[line for line in context.lines if '77' in line]": [],
    "[part for part in context.chunks(900) if '77' in part]": [],
    "context[:30_000]": [],
}
"""Code, and the pieces that it is given; None: one that holds what was asked for."""


@pytest.mark.parametrize("runner", ["local", "subprocess"])
def test_a_run_records_the_pieces_that_code_was_given(context: Monocontext, runner: str) -> None:
    from rlm import RLM, ScriptedLM

    replies = [f"```repl\nimport re\nx = {code}\n```" for code in PIECES]
    run = RLM(lm=ScriptedLM([*replies, "FINAL(done)"]), runner=runner).completion("?", context)
    blocks = [block for line in run.trajectory for block in line.get("code_blocks", [])]
    assert len(blocks) == len(PIECES)
    for block, (code, expected) in zip(blocks, PIECES.items(), strict=True):
        pieces = [TEXT[start:stop] for start, stop in block["result"]["handed"]]
        if expected is None:
            assert len(pieces) == 1
            assert "line 000901\n" in pieces[0] + "\n"
        else:
            assert pieces == expected, code


def test_a_view_speaks_of_pieces_in_its_own_characters(context: Monocontext) -> None:
    view = context.view(1200, 2400)
    mark, none = view.handed_since()
    assert none == []
    assert [hit.line for hit in view.grep("line 000150")] == ["line 000150"]
    assert view.handed_since(mark)[1] == [(600, 611)]
    assert str(context.view(12, 23)) == "line 000001"
    assert context.handed_since(mark)[1] == [(12, 23), (1800, 1811)]
