"""Replies as they stream in: fences, early hints, what is kept from reply to reply."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monocontext.engine.hints import CodeHints, Hint, Lines, Needle, Pattern, Ranges, Whole
from tests.budget import examples
from tests.engine.hints.model_blocks import DEPENDENT, EXACT

N = 1_000_000
FIRST = Ranges(100, 400, 400, 1, is_literal=True)


def _all(reply: str, hints: CodeHints | None = None, size: int = 4) -> list[Hint]:
    hints = hints or CodeHints(N)
    found = [hint for i in range(0, len(reply), size) for hint in hints.feed(reply[i : i + size])]
    return found + hints.end()


CODE = "x = context[100:500]"
CARRIED = {
    "repl": f"Look:\n```repl\n{CODE}\n```\n",
    "python": f"Look:\n\n```python\n{CODE}\n```",
    "py": f"```py\n{CODE}\n```",
    "upper case": f"```Python\n{CODE}\n```",
    "no tag": f"Look:\n```\n{CODE}\n```\n",
    "tildes": f"Look:\n~~~python\n{CODE}\n~~~\nmore",
    "long fence": f"````repl\n{CODE}\n````",
    "never closed": f"Look:\n```repl\n{CODE}",
    "closed on the last line of code": f"```repl\n{CODE}```",
    "indented": f"1. first\n   ```repl\n   {CODE}\n   ```\n",
    "after a list marker": f"- ```repl\n  {CODE}\n  ```\n",
    "code deeper than its fence": f"```repl\n    {CODE}\n    y = 1\n```\n",
    "CRLF": f"Look:\r\n```repl\r\n{CODE}\r\n```\r\n",
    "after an empty block": f"```repl\n```\n\n```repl\n{CODE}\n```\n",
    "after another language": f'```json\n{{"a": [1]}}\n```\n```repl\n{CODE}\n```\n',
    "after broken code": f"```repl\nfor x in (\n```\n```repl\n{CODE}\n```\n",
    "after an unclosed string": f"```repl\ns = 'it\n{CODE}\n```\n",
    "after a fence in a string": f'```repl\np = """\n```\ncontext[1:2]\n```\n"""\n{CODE}\n```\n',
    "after a fence in a comment": f"```repl\n# as ```python\n{CODE}\n```\n",
    "block that was not closed before the next": f"```repl\ny = 1\n```repl\n{CODE}\n```\n",
    "no fence, code at once": f"{CODE}\n",
    "no fence, comment first": f"# look at it\nimport re\n{CODE}\n",
    "no fence, loop first": "for i in range(1):\n    x = context[100:500]\n",
    "prose after a call that is none": f"Well (in short), look\n```repl\n{CODE}\n```",
}


@pytest.mark.parametrize("name", CARRIED)
def test_code_is_found(name: str) -> None:
    found = _all(CARRIED[name])
    assert [(hint.start, hint.width) for hint in found if isinstance(hint, Ranges)] == [(100, 400)]


NOT_CODE = {
    "prose": "I will read context[100:500] and then context[1:2].\nThen `context[5:6]`.\n",
    "another language": "```json\ncontext[100:500]\n```\n",
    "output": "```text\ncontext[100:500]\n```\n",
    "after a block": "```repl\nx = 1\n```\nThis reads context[100:500] next.\n",
    "in a string": '```repl\nx = "context[100:500]"\n```\n',
    "in a comment": "```repl\n# context[100:500]\n```\n",
    "another name": "```repl\nx = data[100:500]; y = self.context[100:500]\n```\n",
}


@pytest.mark.parametrize("name", NOT_CODE)
def test_what_is_no_code_says_nothing(name: str) -> None:
    assert _all(NOT_CODE[name]) == []


def test_the_caller_may_say_whether_there_are_fences() -> None:
    assert _all("Sure\nx = context[100:500]\n", CodeHints(N, fenced=False)) == [FIRST]
    assert _all("x = context[100:500]\n", CodeHints(N, fenced=True)) == []


def test_a_slice_is_known_with_its_line() -> None:
    hints = CodeHints(N)
    assert hints.feed("```repl\nWIDTH = 400\ntext = context\n") == []
    assert hints.feed("print(context[100:500], text[100:100 + WIDTH], context[-2_000:])") == []
    assert hints.feed("\n") == [FIRST, Ranges(998_000, 2000, 2000, 1, is_literal=True)]


def test_the_last_line_is_known_with_its_fence() -> None:
    hints = CodeHints(N)
    assert hints.feed(f"```repl\nfor i in [7]:\n    y = {'a' * 30!r}\n    context[i]\n``") == []
    assert hints.feed("`") == [Ranges(7, 1, 1, 1, is_literal=True)]


def test_a_loop_is_known_with_its_first_line() -> None:
    hints = CodeHints(N)
    hints.feed("```repl\nSIZE = 100_000\nfor i in range(0, len(context), SIZE):\n    part = context[i:i + SIZE]")
    assert hints.feed("\n") == [Ranges(0, 100_000, 100_000, 10, is_literal=False)]
    assert hints.feed("    print(part)\n    if part:\n        print(context[i:i + 50])\nprint(1)\n```\n") == [
        Ranges(0, 50, 100_000, 10, is_literal=False)
    ]


def test_each_hint_comes_once_a_reply() -> None:
    hints = CodeHints(N)
    reply = "```repl\nx = context[100:500]\ny = context[100:500]\n```\n```repl\nx = context[100:500]\n```\n"
    assert _all(reply, hints) == [FIRST]
    hints.begin()
    assert _all(reply, hints) == [FIRST]


def test_names_of_earlier_blocks_are_kept() -> None:
    hints = CodeHints(N)
    _all("```repl\nCHUNK = 400\nt = context.lower()\n```\n", hints)
    hints.begin()
    assert _all("```repl\ncontext[100:100 + CHUNK]\nt.find('error')\n```\n", hints) == [
        FIRST,
        Needle("error", True, False, 0, N),
    ]


def test_the_context_has_its_name_back_in_each_block() -> None:
    hints = CodeHints(N, names=("context", "context_0"))
    assert _all("```repl\ncontext = 5\n```\n```repl\ncontext[100:500]\ncontext_0[7:8]\n```\n", hints) == [
        FIRST,
        Ranges(7, 1, 1, 1, is_literal=True),
    ]


def test_a_reply_that_was_cut_does_not_reach_into_the_next() -> None:
    hints = CodeHints(N)
    hints.feed("```repl\ns = '''never closed ")
    hints.begin()
    assert _all("It reads context[1:2]\n```repl\nx = context[100:500]\n```\n", hints) == [FIRST]


def test_hints_of_a_reply_are_bounded() -> None:
    reply = "```repl\n" + "".join(f"context[{i * 10}:{i * 10 + 5}]\n" for i in range(1000)) + "```\n"
    assert len(_all(reply)) == 256
    reply = "```repl\nfor i in range(300):\n    context[i * i:i * i + 5]\n```\n"
    assert len(_all(reply)) == 256


def test_all_kinds_stream() -> None:
    reply = (
        "```repl\nimport re\nprint(context.splitlines()[2:4])\nprint(re.findall('a+', context, re.S))\n"
        "print(context.rfind('x', 10, 20))\nfor line in context.split('\\n'): pass\n```"
    )
    assert _all(reply, CodeHints(N, lines=1000)) == [
        Lines(2, 4),
        Pattern("a+", 16, 0, N),
        Needle("x", False, True, 10, 20),
        Whole(),
    ]


# -- where a reply is cut does not matter

PIECES = st.one_of(
    st.sampled_from(["```repl\n", "```python\n", "```\n", "```", "~~~\n", "\n", "\r\n", "`", "``", "    ", "#", "\\"]),
    st.sampled_from(["'", '"', "'''", '"""', "(", ")", "[", "]", "context[", "1_000:", "5]", "f'{context[1:2]}'"]),
    st.sampled_from(["for i in range(9):\n", "    x = context[i:i + 5]\n", "else:\n", "try:\n", "@d\n", "match x:\n"]),
    st.sampled_from([*EXACT.values(), *(source for source, _ in DEPENDENT.values())]),
    st.text(max_size=12),
)


@settings(max_examples=examples(75))
@given(st.lists(PIECES, max_size=12), st.data())
def test_hints_do_not_depend_on_the_cuts(pieces: list[str], data: st.DataObject) -> None:
    reply = "".join(pieces)
    whole = CodeHints(N)
    expected = whole.feed(reply) + whole.end()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=20)))
    hints = CodeHints(N)
    found = []
    for start, stop in zip([0, *cuts], [*cuts, len(reply)], strict=True):
        found += hints.feed(reply[start:stop])
    assert found + hints.end() == expected
    assert len(expected) <= 256
    for hint in expected:
        if isinstance(hint, Ranges):
            last = hint.start + hint.step * (hint.count - 1)
            assert hint.width > 0
            assert hint.count > 0
            assert min(hint.start, last) >= 0
            assert max(hint.start, last) + hint.width <= N
        elif isinstance(hint, Needle | Pattern):
            assert 0 <= hint.start <= hint.stop <= N
        elif isinstance(hint, Lines):
            assert 0 <= hint.start < hint.stop
