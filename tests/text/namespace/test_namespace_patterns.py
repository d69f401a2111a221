"""The patterns of `match`: a lazy text is a `str` and no sequence, a lazy list is a `list`, at any depth."""

from __future__ import annotations

import pytest
from namespace_hosts import run

from monocontext import Monocontext


@pytest.fixture
def context(contexts: dict[str, Monocontext]) -> Monocontext:
    return contexts["small"]


PATTERNS = """
def which(x):
    match x:
        case [a, [b, *_]]: return "nested items"
        case [a, *rest]: return "items", len(rest)
        case {"text": str(s), "n": int(n)}: return "text in dict", len(s)
        case {"text": [a, *b]}: return "items in dict"
        case Point(x=str() as s): return "text in Point", len(s)
        case Point(x=[*_]): return "items in Point"
        case "literal": return "literal"
        case bytes() | str() as s if len(s) > 3: return "long text", len(s)
        case str(""): return "empty"
        case str() | None: return "short or none"
        case list(items): return "list", len(items)
        case _: return "other"
"""


def test_patterns(context: Monocontext, text: str) -> None:
    code = """
class Point:
    def __init__(self, x): self.x = x
values = [context, context[1:], {"text": context, "n": 1}, {"text": context}, Point(context), [context, context],
          [1, [2, 3]], [1], (1, 2), [], "abc", "abcd", "", "literal", None, 5, Point([1]), {"text": [1]}, b"bytes",
          {"text": "t", "n": 2}]
print([which(value) for value in values])
"""
    ran = run(PATTERNS + code, context)
    assert ran == run(PATTERNS + code, text)
    assert not ran.error, ran.traceback


def test_patterns_of_lazy_lists(context: Monocontext, text: str) -> None:
    code = """
match context.split("\\n"):
    case [first, *rest]: print(first, len(rest))
match context.split("\\n"):
    case str(): print("str")
    case list() as lines: print(len(lines), lines[0])
"""
    assert run(code, context) == run(code, text)


@pytest.mark.parametrize(
    "code",
    [
        "class str: pass\ndef f(x):\n    {match}\nf(context)",
        "def f(x):\n    class str: pass\n    {match}\nf(context)",
        "def f(x, str=int):\n    {match}\nf(context)",
        "def f(str):\n    def g(x):\n        {match}\n    g(context)\nf(int)",
        "class C:\n    str = int\n    x = context\n    {match}",
        "x = context\nstr = int\nif True:\n    {match}",
    ],
)
def test_patterns_of_a_shadowed_name_do_not_take_texts(code: str, context: Monocontext) -> None:
    deep = "        " if "def g" in code else "    "
    match = f"match x:\n{deep}    case str(): print('str')\n{deep}    case _: print('other')"
    assert run(code.format(match=match), context).stdout == "other\n"
