"""What a line of streamed code says about the reads that it will do: a table, and what holds for any reply."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monocontext.engine.hints import MOST_HINTS, CodeHints, Hint, Ranges, Search
from tests.budget import examples

N = 1_000_000


def _one(start: int, stop: int) -> Ranges:
    return Ranges(start, stop - start, stop - start, 1)


def _look(needle: str, **fields: object) -> Search:
    return Search(needle, **({"start": 0, "stop": N, "reach": "first"} | fields))  # type: ignore[arg-type]


def _feed(reply: str, hints: CodeHints | None = None, size: int = 4) -> list[Hint]:
    hints = hints or CodeHints(N)
    told = [hint for i in range(0, len(reply), size) for hint in hints.feed(reply[i : i + size])]
    return told + hints.feed("\n")


TABLE: dict[str, list[Hint]] = {
    "context[100:500]": [_one(100, 500)],
    "print(context[1_000:5_000]); print(context[-3000:-2000], context[7], context[-1])": [
        _one(1000, 5000), _one(997_000, 998_000), _one(7, 8), _one(N - 1, N),
    ],
    'print(f"{len(context):,} {context[:200]!r}")': [_one(0, 200)],
    "n = len(context)\nprint(context[n - 1000:])": [_one(999_000, N)],
    "mid = len(context) // 2\ncontext[mid - 20:mid + 20]": [_one(499_980, 500_020)],
    "text = context\ntext[5:9]": [_one(5, 9)],
    "if ready:\n    context[5:9]": [_one(5, 9)],
    "x = [\n    context[5:9],\n    context[10:20],\n]": [_one(5, 9), _one(10, 20)],
    "C = 100_000\nparts = [context[i:i + C] for i in range(0, len(context), C)]": [
        Ranges(0, 100_000, 100_000, 10)
    ],
    "for i in range(0, len(context), 1000):\n    start = i\n    end = start + 1000\n    context[start:end]": [
        Ranges(0, 1000, 1000, 1000)
    ],
    "for i in range(len(context) - 500, 0, -1000):\n    context[i:i + 500]": [
        Ranges(999_500, 500, -1000, 1000)
    ],
    "for i in range(0, len(context), 10_000):\n    context[max(0, i - 500):i + 10_500]": [
        Ranges(0, 10_500, 10_500, 1), Ranges(9_500, 11_000, 10_000, 99),
    ],
    "for part in (0.25, 0.5):\n    at = int(len(context) * part)\n    context[at:at + 30]": [
        _one(250_000, 250_030), _one(500_000, 500_030),
    ],
    "starts = [5, 900]\nfor at in starts:\n    context[at:at + 10]": [
        _one(5, 15), _one(900, 910),
    ],
    "i = 0\nwhile i < len(context):\n    context[i:i + 50]\n    i += 50\ncontext[i:]": [_one(0, 50)],
    "if 'Error' in context: pass": [_look("Error")],
    "for word in ['a', 'b']:\n    word in context": [_look("a"), _look("b")],
    "context.count('x')": [_look("x", reach="all")],
    "context.rfind('x', 5, 900)": [_look("x", start=5, stop=900, backward=True)],
    "at = context.find('x', at + 1)": [_look("x", reach="unplaced")],
    "low = context.lower()\nlow.find('error')": [_look("error", ignore_case=True)],
    "import re\nre.search('a+b', context)": [_look("a+b", flags=0)],
    "re.findall('a+b', context.upper(), re.S | re.M)": [_look("a+b", reach="all", flags=26)],
    "re.finditer('a', context, flags=re.I)": [_look("a", flags=2)],
    # What says nothing.
    "I will read context[100:500] and then context[1:2].": [],
    "x = 'context[100:500]'  # context[1:2]": [],
    "data[100:500]; self.context[100:500]; context[a:b]; context[::2]; context['x']; context[5:5]": [],
    "x = 9 ** 9 ** 9\ny = 'a' * 10 ** 9\ncontext[x:]; context[:y]": [],
    "range(10 ** 30)\nfor i in range(10 ** 30): context[i:i + 5]": [],
    "i = i + 1\nfor i in range(3): i = i + 1\ncontext[i:i + 1]": [],
}  # fmt: skip


@pytest.mark.parametrize("code", TABLE)
def test_a_reply(code: str) -> None:
    assert _feed(code) == TABLE[code]
    assert [hint for hint in _feed(f"Look:\n\n1. ```repl\n{code}\n```\n") if hint not in TABLE[code]] == []


def test_a_slice_is_known_with_its_line_and_once_a_reply() -> None:
    hints = CodeHints(N)
    assert hints.feed("W = 400\nprint(context[100:500]") == []
    assert hints.feed(", context[100:100 + W])\n") == [_one(100, 500)]
    assert hints.feed("context[100:500]\n") == []
    hints.begin()
    assert hints.feed("context[100:100 + W]\n") == [_one(100, 500)]  # names of earlier replies are kept


def test_hints_of_a_reply_are_bounded() -> None:
    reply = "".join(f"context[{i * 10}:{i * 10 + 5}]\n" for i in range(1000))
    assert len(_feed(reply, size=100)) == MOST_HINTS


BOMBS = {
    "doubled values": "for i in range(9):\n    a = i\n" + "    a = a + a\n" * 500 + "    context[a:a + 5]\n",
    "brackets": "x = " + "(" * 5000 + ")" * 5000,
    "subscripts": "x = " + "context[" * 490 + "1" + "]" * 490,
    "minus signs": "x = " + "-" * 3900 + "1",
    "attributes": "x = context" + ".a" * 1900,
    "calls": "x = context" + ".lower()" * 490 + "[1:2]",
    "an endless line": "context[1:2] + " * 100_000,
    "open brackets": "x = [\n" * 1000,
    "NUL and surrogates": "x = 1\0\ncontext['\ud800':5]; context.find('\ud800')",
    "the largest of a range": "x = max(range(len(context) * 1000000))\n",
    "rounding to a power": "x = round(1, -1000000000)\n",
    "an invalid escape": r"x = '\d'; context['\w':5]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_nothing_raises_warns_or_takes_long(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _feed(BOMBS[name], size=500)


PIECES = st.one_of(
    st.sampled_from(
        ["```repl\n", "```\n", "\n", "\r\n", "    ", "#", "\\", "'", '"""', "(", ")", "[", "]", "context["]
    ),
    st.sampled_from(["1_000:", "5]", "for i in range(9):\n", "    x = context[i:i + 5]\n", "else:\n", "@d\n"]),
    st.sampled_from(list(TABLE)),
    st.text(max_size=12),
)


@settings(max_examples=examples(75))
@given(st.lists(PIECES, max_size=12), st.integers(1, 50))
def test_hints_are_within_the_text_and_do_not_depend_on_the_cuts(pieces: list[str], size: int) -> None:
    reply = "".join(pieces)
    told = _feed(reply, size=len(reply) + 1)
    assert _feed(reply, size=size) == told
    for hint in told:
        if isinstance(hint, Ranges):
            last = hint.start + hint.step * (hint.count - 1)
            assert hint.width > 0
            assert min(hint.start, last) >= 0
            assert max(hint.start, last) <= N
        else:
            assert 0 <= hint.start < hint.stop <= N
