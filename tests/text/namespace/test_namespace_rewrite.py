"""The pass over the code: what lazy values pass for, and that everything else meets the very call that was written."""

from __future__ import annotations

import ast
import traceback
from typing import Any

import pytest
from namespace_hosts import run

from monocontext import Monocontext
from monocontext.text.namespace import NamespacePatch
from monocontext.text.namespace.rewrite import HELPER


@pytest.fixture
def context(contexts: dict[str, Monocontext]) -> Monocontext:
    return contexts["small"]


def value(code: str, context: object, **names: object) -> Any:
    """What an expression gives in a namespace with the kit."""
    caught: list[Any] = []
    ran = run(f"keep({code})", context, keep=caught.append, **names)
    assert not ran.error, ran.traceback
    return caught[0]


# -- what lazy values pass for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("isinstance(context, str)", True),
        ("isinstance(context, (int, str))", True),
        ("isinstance(context, (int, (list, str)))", True),
        ("isinstance(context, int | str)", True),
        ("isinstance(context, str | None)", True),
        ("isinstance(context, (list, tuple, dict))", False),
        ("isinstance(context, list | None)", False),
        ("isinstance(context, object)", True),
        ("isinstance(context, Sequence)", True),
        ("isinstance(context, Hashable)", True),
        ("isinstance(context, Mapping)", False),
        ("isinstance(context, Monocontext)", True),
        ("isinstance(context[5:], str)", True),
        ("isinstance(context[5:10], str)", True),
        ("isinstance(context, bytes)", False),
        ("type(context) is str", True),
        ("type(context) == type('')", True),
        ("type(context) in (str, bytes)", True),
        ("issubclass(type(context), str)", True),
        ("type(context).__name__", "str"),
        ("type(context)(5)", "5"),
        ("isinstance(context, type(context))", True),
        ("isinstance('a', type(context))", True),
        ("str(context) is context", True),
        ("str(context[10:]) == context[10:]", True),
        ("list(map(str, [context, 5]))[0] is context", True),
        ("list(map(str, [context, 5]))[1]", "5"),
        ("isinstance(context.split('\\n'), list)", True),
        ("isinstance(context.split('\\n'), (str, list))", True),
        ("isinstance(context.split('\\n'), str)", False),
        ("type(context.splitlines()) is list", True),
        ("type(list(context.splitlines()))", list),
        ("f'{type(context).__name__:>5} {isinstance(context, str)!r}'", "  str True"),
        ("(lambda x: type(x) is str)(context)", True),
        ("[type(x).__name__ for x in (context, 1, None)]", ["str", "int", "NoneType"]),
        ("{type(x): isinstance(x, str) for x in (context,)}", {str: True}),
        ("', '.join(['a', context[:2]])", "a, Qu"),
    ],
)
def test_lazy_values_pass_for_real_ones(code: str, expected: object, context: Monocontext) -> None:
    from collections.abc import Hashable, Mapping, Sequence

    names = {"Sequence": Sequence, "Mapping": Mapping, "Hashable": Hashable, "Monocontext": Monocontext}
    assert value(code, context, **names) == expected


def test_lazy_text_is_joined_up_to_its_limit(contexts: dict[str, Monocontext], text: str) -> None:
    assert value("'-'.join(['a', context])", contexts["default"]) == f"a-{text}"
    assert value("f'{1}'.join((context, 'b'))", contexts["default"]) == f"{text}1b"
    assert run("','.join(['a', context])", contexts["small"]).error == "ContextTooLarge"
    assert run("','.join(['a', 5])", contexts["small"]).message == "sequence item 1: expected str instance, int found"


def test_nothing_is_read_to_answer(context: Monocontext) -> None:
    before = context.stats.gets
    assert value("[isinstance(context, (int, str)), type(context), str(context)]", context)[0]
    assert run("match context:\n    case [a, *b]: pass\n    case str(): print('str')", context).stdout == "str\n"
    assert context.stats.gets == before


# -- only the builtin, only the plain form ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def str(x): return 'mine'\nprint(str(context))", "mine\n"),
        ("def f(type): return type(context)\nprint(f(len))", "{length}\n"),
        ("def type(x): return 'mine'\nprint(type(context))", "mine\n"),
        ("isinstance = lambda x, t: 'mine'\nprint(isinstance(context, str))", "mine\n"),
        ("str = len\nprint(str(context))\ndel str\nprint(str(context) is context)", "{length}\nTrue\n"),
        ("def f():\n    global str\n    str = len\nf()\nprint(str(context))", "{length}\n"),
        (
            "def f():\n    str = len\n    def g():\n        nonlocal str\n        str = type\n    print(str(context))\n"
            "    g()\n    print(str(5))\nf()",
            "{length}\n<class 'int'>\n",
        ),
        ("class C:\n    type = len\n    n = type(context)\nprint(C.n)", "{length}\n"),
        ("map = lambda f, xs: [f is str]\nprint(map(str, [context]))", "[True]\n"),
        ("str = len\nprint(list(map(str, [context])))", "[{length}]\n"),
        ("from builtins import str as s, type as t\nprint(t(context).__name__)", "Monocontext\n"),
        ("import builtins\nprint(builtins.isinstance(context, str))", "False\n"),
        ("print(type(*[context]).__name__)", "Monocontext\n"),
        ("print([str][0] is str, type('a') is str, type is type)", "True True True\n"),
        ("class M(type): pass\nprint(type('X', (), {}).__name__, type(M('Y', (), {})) is M)", "X True\n"),
        ("print(str(), str(b'a', 'ascii'), str(object=5))", " a 5\n"),
    ],
)
def test_only_the_builtin_in_the_plain_form(code: str, expected: str, context: Monocontext) -> None:
    ran = run(code, context)
    assert not ran.error, ran.traceback
    assert ran.stdout == expected.format(length=len(context))


def test_name_that_is_not_bound_yet_raises_as_ever(context: Monocontext) -> None:
    ran = run("def f():\n    str(context)\n    str = 1\nf()", context)
    assert ran.error == "UnboundLocalError"


SCOPES = """
import asyncio, functools
from dataclasses import dataclass
def decorate(kind):
    assert kind is str
    return lambda f: functools.wraps(f)(lambda *a: ("decorated", f(*a)))
class Outer:
    kind = type(context)
    class __Inner:
        def __private(self, x=type(context)): return x, isinstance(context, str), type(self).__name__
        def call(self): return self.__private()
    def call(self): return self.__Inner().call()
@decorate(type(context))
def f(x, /, *, y=str(5)): return str(x), y
async def g():
    async def gen():
        for x in (context, 1): yield type(x)
    async with asyncio.timeout(5):
        return [t async for t in gen()], isinstance(await asyncio.sleep(0, context), str)
def counter():
    n = 0
    def step():
        nonlocal n
        n += isinstance(context, str)
        return n
    return step
def generator():
    got = yield str(1)
    yield type(got)
def annotated(x: type(1), *a: str) -> isinstance(1, int): y: type(2) = 3; return y
gen = generator()
step = counter()
print(Outer().call(), Outer.kind, f(1), asyncio.run(g()), step(), step(), next(gen), gen.send(context))
print(annotated.__annotations__, annotated(1), (lambda *a, k=type(context): k)())
print([y for x in (context, 2) if isinstance(x, str) for y in (type(x), str(len(x)))])
print((z := type(context)), z, f"{type(context)!s:>20}", f"{f'{str(1)}'}")
try:
    raise ExceptionGroup("g", [ValueError(1)])
except* ValueError as group:
    print(type(group).__name__, str(group.exceptions[0]))
with open("/dev/null") as a, open("/dev/null") as b:
    print(isinstance(a, type(b)))
while isinstance(context, str):
    context = 5
else:
    print(context)
del context
"""


def test_every_scope_and_statement(context: Monocontext, text: str) -> None:
    ran, expected = run(SCOPES, context), run(SCOPES, text)
    assert not expected.error, expected.traceback
    assert ran == expected


def test_annotations_are_left_as_they_are_written() -> None:
    code = "from __future__ import annotations\ndef f(x: str(5), *y: type(1)) -> isinstance(1, int): pass\n"
    shown = "z: type(3)\nprint(f.__annotations__, __annotations__)"
    assert run(code + shown).stdout == (
        "{'x': 'str(5)', 'y': 'type(1)', 'return': 'isinstance(1, int)'} {'z': 'type(3)'}\n"
    )


# -- tracebacks ------------------------------------------------------------------------------------------------------

FAILING = [
    "class C:\n    def __str__(self):\n        raise ValueError('no text')\n\nx = [1,\n     str(C())]",
    "x = 1\ny = isinstance(x,\n               5)",
    "def str(x):\n    return 1 / x\nprint('a', str(0) + 1)",
    "type = 5\ntype(3)",
    "def f(x):\n    return f'{str(x)}' + isinstance(1)\nf(3)",
    "class T:\n    __instancecheck__ = 1\nisinstance(1, T())",
    "class M(type):\n    def __instancecheck__(c, x): raise KeyError(c)\nclass C(metaclass=M): pass\nisinstance(1, C)",
    "str(undefined)",
    "undefined(str(1))",
    "match 5:\n    case str(a, b): pass\n    case int(a, b): pass",
    "', '.join(['a', 5])",
    "def deep(n):\n    return str(deep(n - 1)) if n else 1 / 0\ndeep(3)",
]


@pytest.mark.parametrize("code", FAILING)
def test_tracebacks_are_those_of_the_code_as_written(code: str) -> None:
    import linecache

    linecache.cache["<written>"] = (len(code), None, code.splitlines(keepends=True), "<written>")
    kit = NamespacePatch()

    def run_cell(tree: ast.Module) -> str:
        try:
            exec(compile(tree, "<written>", "exec"), {"__name__": "cell", HELPER: kit.names[HELPER]})
        except Exception:
            return traceback.format_exc()
        return ""

    plain = run_cell(ast.parse(code))
    assert plain
    assert run_cell(kit.transform(ast.parse(code))) == plain


def test_expressions_of_any_depth() -> None:
    assert run(f"print(len({' + '.join(['str(1)'] * 300)}))").stdout == "300\n"
    deep: ast.expr = ast.Constant(1)
    for _ in range(5000):
        deep = ast.BinOp(deep, ast.Add(), ast.Constant(1))
    NamespacePatch().transform(ast.Module([ast.Expr(deep)], []))


def test_the_helper_costs_little(context: Monocontext) -> None:
    code = """
import time
def seconds():
    began = time.thread_time()
    for i in range(50_000): isinstance(i, str)
    return time.thread_time() - began
print(min(seconds() for _ in range(5)))
"""
    with_kit = float(run(code).stdout)
    assert with_kit < 50_000 * 5e-6  # a call of 40 ns becomes one of 400: far from where a cell would notice


# -- a real str where one fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "str(context)",
        "list(map(str, [context]))[0]",
        "__import__('textwrap').dedent(str(context))",
        "__import__('unicodedata').normalize('NFC', str(context))",
        "__import__('html').unescape(str(context))",
        "str.lower(str(context))",
        "'x'.replace('x', str(context))",
    ],
)
def test_str_of_a_text_below_the_limit_is_a_real_str(code: str, contexts: dict[str, Monocontext], text: str) -> None:
    found = value(code, contexts["default"])
    assert type(found) is str
    assert found == value(code, text)


def test_str_of_a_text_above_the_limit_is_the_lazy_text(contexts: dict[str, Monocontext]) -> None:
    before = contexts["small"].stats.gets
    assert value("str(context) is context and list(map(str, [context]))[0] is context", contexts["small"]) is True
    assert value("str(context.replace('Q', 'qq'))[:3]", contexts["small"]).startswith("qq")
    assert contexts["small"].stats.gets - before < 3
