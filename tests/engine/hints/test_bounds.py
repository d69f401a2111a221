"""Hints cost bounded work whatever is written, and nothing raises."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monocontext.engine.hints import CodeHints, Ranges, code_hints, read_block, statements
from monocontext.engine.hints.reads import Trace
from tests.budget import examples

N = 10**12

BOMBS = {
    "power": "x = 9**9**9\nprint(context[:5])",
    "power of a power": "x = 2\nfor i in range(100):\n    x = x ** x\nprint(context[:5])",
    "squares": "x = 3\nwhile True:\n    x *= x\n",
    "shift": "x = 1 << 10**10\nprint(context[:5])",
    "repeated text": "x = 'a' * 10**9\nprint(context[:5])",
    "doubled text": "x = 'a'\nfor i in range(60):\n    x += x\nprint(context[:5])",
    "doubled list": "x = [1]\nfor i in range(60):\n    x = x + x; x += x; x.extend(x)\nprint(context[:5])",
    "nested tuples": "x = ()\nfor i in range(100_000):\n    x = (x, x)\nprint(context[:5], x == x, str(x))",
    "shared tuples": (
        "x = y = ()\nfor i in range(30):\n    x = (x, x); y = (y, y)\nif z:\n    x = y\n"
        "a = x == y; b = x in (y, y); c = str(x); d = f'{x}'; e = {x: y}; g = x + y; k = sorted([x, y])\n"
        "print(context[:5])"
    ),
    "wide tuple": "x = ('a' * 4000,) * 4000\ny = str(x); z = '%s' % x; w = f'{x}'\nprint(context[:5])",
    "wide format": "x = f'{1:>9999999999}'; y = '%9999999999d' % 1; z = '{:>9999999999}'.format(1)\nprint(context[:5])",
    "join": "x = ('a' * 4000).join(['b' * 4000] * 4000)\nprint(context[:5])",
    "replace": "x = ('a' * 4000).replace('a', 'b' * 4000).replace('', 'c' * 4000)\nprint(context[:5])",
    "rounding": "x = round(5, -10**9)\nprint(context[:5])",
    "long range": "x = list(range(10**15)); y = sum(range(10**15)); z = max(range(10**15))\nprint(context[:5])",
    "added range": "x = []\nx += range(10**15)\nprint(context[:5])",
    "too long a range": "x = range(10**30); y = len(x)\nprint(context[:5])",
    "big number": "x = int('9' * 4000); y = 0x" + "f" * 50_000 + "\nprint(context[:5])",
    "decimal": "x = " + "9" * 50_000 + "\nprint(context[:5])",
    "recursion": "def f(n):\n    f(n + 1); f(n + 2)\n    context[n:n + 5]\nf(0)",
    "mutual recursion": "f = lambda n: g(n)\ng = lambda n: f(n) + f(n)\nf(0)",
    "loops in loops": "for a in range(10**6):\n  for b in range(10**6):\n    for c in range(9):\n      context[a:b]",
    "endless loop": "while True:\n    context[5:10]",
    "endless loop with a list": "x = []\nwhile True:\n    x.append(x)\n    context[len(x):len(x) + 5]",
    "round brackets": "x = " + "(" * 5000 + ")" * 5000,
    "subscripts": "x = " + "context[" * 3000 + "1" + "]" * 3000,
    "minus signs": "x = " + "-" * 100_000 + "1",
    "attributes": "x = context" + ".a" * 30_000,
    "calls": "x = f" + "()" * 30_000,
    "long sum": "x = " + " + ".join(["context[:5]"] * 5000),
    "deep blocks": "\n".join(" " * i + "if x:" for i in range(95)) + "\n" + " " * 95 + "context[:5]",
    "many arms": "\n".join(f"if x{i}:\n    y{i} = context[{i}:{i + 5}]" for i in range(3000)),
    "arms in arms": "def f(n):\n    if a: f(n)\n    if b: f(n)\n    if c: f(n)\nf(0)",
    "own items": "x = []\nx.append(x)\nprint(x, x == x, len(x), str(x), context[:5])",
    "own keys": "x = {}\nx['x'] = x\nfor k, v in x.items():\n    print(context[:5])",
    "NUL": "x = 1\0\ncontext[:5]",
    "surrogates": "x = '\ud800'\nprint(context[:5], context.find('\ud800'))",
    "form feeds": "\f\f x = 1\n\fcontext[:5]",
    "bytes": "x = b'a' * 5; y = context[b'':x]; z = context[1.5:2j:...]",
    "step 0": "x = context[1:5:0]",
    "far slices": "x = context[10**30:-10**30]; y = context[-10**40:10**40:10**20]; z = context[True:False]",
    "stars": "a, *b = context; print(*context, **context); x = [*context]; y = {**context}",
    "walrus": "while (x := context[:5]) and (y := [z := 1 for _ in range(5)]):\n    pass",
    "del": "del context\nprint(context[:5])",
    "everything": (
        "async def f():\n    async for x in context:\n        await x\n    async with a as b, c:\n        yield b\n"
        "class A(B, metaclass=C):\n    x: int = context[:5]\nmatch context:\n    case [1, *r]:\n        r\n"
        "    case {'k': v, **w} | A(x=w) if v:\n        pass\n    case str() as s:\n        s\n"
        "try:\n    raise E from None\nexcept* E as e:\n    pass\nglobal g\nassert context, context[5:6]\n"
        "x = lambda *a, k=1, **b: (yield)\nprint(f'{context!r:>{5}}')\nx[1:2, ...] @= 5\nimport a.b as c, re.x\n"
        "from . import *\nfor i, in [(1,)]: continue\nelse: pass\nreturn 5"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_nothing_is_worked_out_that_is_large(name: str) -> None:
    source = BOMBS[name]
    hints = read_block(source, N, lines=10**9)
    assert len(hints) <= 256
    stream = CodeHints(N, lines=10**9)
    reply = f"```repl\n{source}\n```\n```repl\nprint(context[7:9])\n```\n"
    found = [hint for i in range(0, len(reply), 4) for hint in stream.feed(reply[i : i + 4])]
    assert len(found) <= 256
    assert Ranges(7, 2, 2, 1, is_literal=True) in found or len(found) == 256
    if source.endswith("\nprint(context[:5])") and name != "del":
        assert Ranges(0, 5, 5, 1, is_literal=True) in found


def test_known_values_are_taken_as_far_as_they_are_plain() -> None:
    class Odd(int):
        def __add__(self, other: object) -> int:
            raise AssertionError("no code runs")

    own: list[object] = [5]
    own.append(own)
    known = {"own": own, "odd": Odd(5), "text": "a" * 10**6, "at": 700, "spots": [(1, 2), (8, 9)]}
    source = "context[odd:odd + 9]; context[own[0]:50]; context[at - 5:at]\n"
    source += "for a, b in spots:\n    context[a:b]"
    wanted = [(5, 50), (695, 700), (1, 2), (8, 9)]
    assert [next(iter(hint)) for hint in read_block(source, N, known=known) if isinstance(hint, Ranges)] == wanted
    stream = CodeHints(N, fenced=False)
    stream.feed("at = context.find('x')\n")
    stream.know(known)
    assert [next(iter(hint)) for hint in stream.feed(source) + stream.end() if isinstance(hint, Ranges)] == wanted
    stream.begin()
    stream.know({"at": object()})
    assert stream.feed("context[at - 5:at]\n") == []


@settings(max_examples=examples(300))
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    CodeHints(1000).feed(text)
    CodeHints(1000, fenced=False).feed(text)
    read_block(text, 1000)


WORDS = """context lines text = == [ ] ( ) { } : , . + - * ** // % 5 100 len range for in if else while def return
    lambda find count 'a' \"\"\" f' re search compile print yield import try except with as not and or is None del"""
TOKENS = st.sampled_from(
    [*WORDS.split(), "\n", "\n    ", "\n        ", ":\n    ", "0x", "1_0", "\\", "#", "`", "```\n"]
)


@settings(max_examples=examples(300))
@given(st.lists(TOKENS, max_size=80), st.integers(0, 10_000))
def test_any_tokens(tokens: list[str], characters: int) -> None:
    source = " ".join(tokens)
    stream = CodeHints(characters, fenced=False)
    stream.feed(source)
    stream.end()
    read_block(source, characters, lines=5)


def test_a_full_stack_is_no_harm() -> None:
    def deep(left: int) -> object:
        return deep(left - 1) if left else (read_block("print(context[:5] + f(g(h(context[3:4]))))", 100), feed())

    def feed() -> object:
        return CodeHints(100).feed("```repl\nprint(context[:5])\n```")

    for left in range(100):
        try:
            deep(sys.getrecursionlimit() - 100 - left)
        except RecursionError:  # of ours, before the library was reached
            continue


def test_no_warning_is_printed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_block(r"import re; re.findall('\d+', context)", N) != []
        assert read_block("context[1:5]if 1else 0", N) != []


# -- work: how much is parsed and looked at for a long reply


def _reply_of(kind: str, size: int) -> str:
    match kind:
        case "statements":
            return "".join(f"value_{i} = context.find('word {i}')\n" for i in range(size // 36))
        case "one loop":
            return "for i in range(9):\n" + "".join(f"    context[{i}:i + 5]\n" for i in range(size // 22))
        case "one expression":
            return "x = [" + "context[5:10], " * (size // 15) + "]\n"
        case "one string":
            return 'x = """' + "context[5:10] ```\n" * (size // 18)
        case "one line":
            return "x = " + "context[y]" * (size // 10)
        case "brackets":
            return "x = context" + "[[" * (size // 2)
        case "headers":
            return "for i in context:\n" * (size // 18)
        case "blocks":
            return "context[1:2]\n```\n```repl\n" * (size // 25)
    return "a line of prose, nothing more. `context[1:2]`\n" * (size // 46)


KINDS = ["statements", "one loop", "one expression", "one string", "one line", "brackets", "headers", "blocks", "prose"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_with_the_reply_not_with_its_square(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = nodes = 0
    parse, spend = ast.parse, Trace.spend

    def counted_parse(source: str) -> ast.Module:
        nonlocal parsed
        parsed += len(source)
        return parse(source)

    def counted_spend(trace: Trace, some: int = 1) -> None:
        nonlocal nodes
        nodes += some
        spend(trace, some)

    monkeypatch.setattr(statements.ast, "parse", counted_parse)
    monkeypatch.setattr(Trace, "spend", counted_spend)
    work = []
    for size in (50_000, 100_000):
        parsed = nodes = 0
        reply = ("" if kind == "prose" else "```repl\n") + _reply_of(kind, size)
        stream = CodeHints(N)
        for i in range(0, len(reply), 4):
            stream.feed(reply[i : i + 4])
        stream.end()
        assert parsed <= 4 * len(reply)
        assert nodes <= 5 * code_hints.WORK + len(reply)  # the latter: subscripts, told also when the work is used up
        work.append((parsed, nodes))
    assert work[1][0] <= 2.2 * work[0][0] + 1000


def test_loops_around_a_large_body_that_is_never_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loop binds is looked up at each visit: that is work too."""
    walked = 0
    walk = ast.walk

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        nonlocal walked
        for inner in walk(node):
            walked += 1
            yield inner

    monkeypatch.setattr(ast, "walk", counted)
    large = "            x = a + b + c + d\n" * 1000
    read_block(f"for i in range(99):\n    for j in [1]:\n        if i < 0:\n{large}", N)
    assert walked < 20 * code_hints.WORK


LOOPS = {
    "for": ("for i in range(0, len(context), 100_000):\n    part = context[i:i + 100_000]", 1),
    "comprehension": ("parts = [context[i:i + 100_000] for i in range(0, len(context), 100_000)]", 1),
    "while": ("i = 0\nwhile i < len(context):\n    part = context[i:i + 100_000]\n    i += 100_000", 1),
    "while with a break": (
        "i = 0\nwhile True:\n    part = context[i:i + 100_000]\n    if not part:\n        break\n    i += len(part)",
        1,
    ),
    "overlapping": ("for i in range(0, len(context), 80_000):\n    part = context[max(0, i - 50):i + 100_000]", 4),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_long_loop_costs_what_a_short_one_costs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, most_hints = LOOPS[name]
    nodes = 0
    spend = Trace.spend

    def counted(trace: Trace, some: int = 1) -> None:
        nonlocal nodes
        nodes += some
        spend(trace, some)

    monkeypatch.setattr(Trace, "spend", counted)
    work = []
    for characters in (10**7, 10**12):
        nodes = 0
        hints = read_block(source, characters)
        assert len(hints) <= most_hints
        assert sum(hint.count for hint in hints if isinstance(hint, Ranges)) == characters // (
            80_000 if name == "overlapping" else 100_000
        )
        work.append(nodes)
    assert work[1] < 1000
    assert work[1] < 1.25 * work[0]  # the end of a `while` is looked for by halving
