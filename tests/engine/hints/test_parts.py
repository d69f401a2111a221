"""What takes a part of a text is told as a part: `next`, `readline`, loops that are left, the number of lines."""

from __future__ import annotations

import pytest

from monocontext.engine.hints import Hint, Lines, Pattern, Ranges, Whole, read_block

LARGE, SMALL, LINES = 200_000_000, 20_000_000, 2_000_000
SOME, ALL = Whole(reach="some"), Whole()
BLOCKS: dict[str, list[Hint]] = {
    "len(context.split('\\n'))": [],
    "lines = context.split('\\n')\nprint(len(lines), lines[0], lines[-1])": [Lines(0, 1), Lines(LINES - 1, LINES)],
    "next(iter(context.split('\\n')))": [SOME],
    "next(line for line in context.splitlines() if 'x' in line)": [SOME],
    "it = iter(context.lines)\nhead = next(it)": [SOME],
    "import io\nio.StringIO(context).readline()": [SOME],
    "import csv\nnext(csv.reader(context.splitlines()))": [SOME],
    "import itertools\nlist(itertools.islice(context.splitlines(), 3))": [SOME],
    "any('x' in line for line in context.lines)": [SOME],
    "for line in context.split('\\n'):\n    if 'x' in line:\n        break": [SOME],
    "for i, line in enumerate(context.lines):\n    if i > 3: break": [SOME],
    "next(context.grep('x'))": [Pattern("x", 0, 0, LARGE, "some")],
    "context.replace('a', 'b')[:100]": [Ranges(0, 100, 100, 1, False)],
    "for line in context.split('\\n'):\n    print(line)": [ALL],
    "n = sum(1 for line in context.lines if 'x' in line)": [ALL],
    "found = [line for line in context.splitlines() if 'x' in line]": [ALL],
}


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block(block: str) -> None:
    hints = read_block(block, LARGE, lines=LINES)
    assert hints == BLOCKS[block]
    assert [getattr(hint, "reach", "") for hint in hints] == [getattr(hint, "reach", "") for hint in BLOCKS[block]]


def test_where_a_list_of_lines_is_a_real_one_all_is_read() -> None:
    assert read_block("lines = context.split('\\n')\nprint(len(lines))", SMALL, lines=LINES) == [ALL]
    assert read_block("len(context.split('\\n'))", SMALL, lines=LINES) == []
