"""For programs without lazy values the pass changes nothing: same values, same output, same traceback to the letter."""

from __future__ import annotations

import ast
import io
import linecache
import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monocontext.text.namespace import NamespacePatch
from monocontext.text.namespace.rewrite import HELPER
from tests.budget import examples

NAMES = ["a", "b", "str", "type", "isinstance", "list", "map"]
ATOMS = st.sampled_from(
    ["1", "0", "'x'", "''", "None", "[1, 'b']", "(1, 2)", "{'k': 'v'}", "b'q'", "a", "b", "str", "type", "list", "int"]
)


def expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        inner.map(lambda x: f"str({x})"),
        inner.map(lambda x: f"type({x})"),
        two.map(lambda p: f"isinstance({p[0]}, {p[1]})"),
        two.map(lambda p: f"isinstance({p[0]}, (str, {p[1]}))"),
        inner.map(lambda x: f"isinstance({x}, str | None)"),
        inner.map(lambda x: f"list(map(str, {x}))"),
        inner.map(lambda x: f"', '.join({x})"),
        inner.map(lambda x: f"type({x}).__name__"),
        inner.map(lambda x: f"str(*{x})"),
        two.map(lambda p: f"(str({p[0]}) + {p[1]})"),
        two.map(lambda p: f"[str(i) for i in {p[0]} if isinstance(i, {p[1]})]"),
        inner.map(lambda x: f"(lambda v: type(v) is str)({x})"),
        inner.map(lambda x: f"f'{{str({x})}}'"),
        two.map(lambda p: f"({p[0]} if isinstance({p[1]}, str) else type(a))"),
        inner.map(lambda x: f"(a := str({x}))"),
        inner.map(lambda x: f"str(1 / len({x}))"),
        two.map(lambda p: f"a({p[0]}, {p[1]})"),
        two.map(lambda p: f"b({p[0]}, a={p[1]})"),
        two.map(lambda p: f"max({p[0]}, {p[1]})"),
        two.map(lambda p: f"sorted({p[0]}, key={p[1]})"),
        two.map(lambda p: f"dict(k={p[0]}).get({p[1]})"),
        two.map(lambda p: f"[].append(({p[0]}, {p[1]}))"),
        two.map(lambda p: f"int({p[0]}, base={p[1]})"),
        two.map(lambda p: f"(a\n.index({p[0]})\n.count({p[1]}))"),
    )


EXPRESSIONS = st.recursive(ATOMS, expressions, max_leaves=6)
PATTERNS = st.recursive(
    st.sampled_from(["_", "str()", "str(_)", "list()", "int()", "None", "'x'", "1", "dict()", "str(_, _)", "[]"]),
    lambda inner: st.one_of(
        inner.map(lambda p: f"[{p}, *_]"),
        inner.map(lambda p: f"[{p}]"),
        inner.map(lambda p: f"{{'k': {p}}}"),
        inner.map(lambda p: f"str({p})"),
        inner.map(lambda p: f"list({p})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) | ({p[1]})"),
    ),
    max_leaves=4,
)


def indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    name = st.sampled_from(NAMES)
    return st.one_of(
        st.tuples(name, inner, EXPRESSIONS).map(
            lambda p: f"def {p[0]}(a=1, b=2):\n{indented(p[1])}    return {p[2]}\n"
        ),
        st.tuples(name, inner).map(lambda p: f"class {p[0]}:\n{indented(p[1])}"),
        st.tuples(EXPRESSIONS, inner).map(lambda p: f"if {p[0]}:\n{indented(p[1])}"),
        st.tuples(inner, inner).map(lambda p: f"try:\n{indented(p[0])}except TypeError as b:\n{indented(p[1])}"),
        st.tuples(EXPRESSIONS, st.lists(st.tuples(PATTERNS, EXPRESSIONS), min_size=1, max_size=3)).map(
            lambda p: f"match {p[0]}:\n" + "".join(f"    case {c}:\n        print({e})\n" for c, e in p[1])
        ),
        st.tuples(inner, inner).map("".join),
        st.tuples(name, inner).map(lambda p: f"def g():\n    global {p[0]}\n{indented(p[1])}g()\n"),
    )


STATEMENTS = st.one_of(
    EXPRESSIONS.map(lambda e: f"print({e})\n"),
    st.tuples(st.sampled_from(NAMES), EXPRESSIONS).map(lambda p: f"{p[0]} = {p[1]}\n"),
    st.sampled_from(NAMES).map(lambda name: f"del {name}\n"),
    st.tuples(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS).map(lambda p: f"{p[0].join('()')}[{p[1]}] = {p[2]}\n"),
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(lambda p: f"{p[0].join('()')}.real, b = {p[1]}\n"),
)
PROGRAMS = st.recursive(STATEMENTS, blocks, max_leaves=8)


SECONDS = 2.0
"""Of the processor: a function that calls itself twice, in `try` and in `except`, would take years, and all memory."""


class TooLong(BaseException):
    pass


@contextmanager
def limited() -> Iterator[None]:
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return

    is_over = False

    def stop(*_: object) -> None:
        if not is_over:
            raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, 0.1)  # again: at the end of the stack none gets through
    try:
        yield
    finally:
        while not is_over:
            with suppress(TooLong):  # it may come here too, and would leave the clock running
                is_over = True
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def behaviour(code: str, tree: ast.Module, kit: NamespacePatch) -> tuple[str, str, dict[str, str]]:
    try:
        compiled = compile(tree, "<program>", "exec")
    except SyntaxError as error:
        return "", str(error), {}
    linecache.cache["<program>"] = (len(code), None, code.splitlines(keepends=True), "<program>")
    namespace: dict[str, object] = {"__name__": "program", HELPER: kit.names[HELPER], "a": "seed", "b": 7}
    out, told = io.StringIO(), ""
    with limited(), redirect_stdout(out):
        try:
            exec(compiled, namespace)
        except Exception:
            told = traceback.format_exc()
    left = {name: _plain(value) for name, value in namespace.items() if not name.startswith("__")}
    return _plain(out.getvalue()), _plain(told), left


def _plain(value: object) -> str:
    """Text without addresses, also where one was taken apart into characters."""
    return re.sub(r"0x[0-9a-f]+", "0x", re.sub("'?, '?", "", value if type(value) is str else repr(value)))


@pytest.mark.fuzz  # some programs take minutes to fail: their exceptions hold each other
@settings(max_examples=examples(400))
@given(PROGRAMS)
@example("def a(c=1, b=2):\n    try:\n        a()\n    except RecursionError as b:\n        a()\na()\n")
def test_programs_behave_as_before(code: str) -> None:
    kit = NamespacePatch()
    try:
        plain, rewritten = ast.parse(code), ast.parse(code)
    except SyntaxError:
        return
    try:
        expected = behaviour(code, plain, kit)
        found = behaviour(code, kit.transform(rewritten), kit)
    except TooLong:
        return
    if "RecursionError" in expected[1]:  # reached at another depth
        assert "RecursionError" in found[1]
    elif "in _text_of" in found[1]:  # `map(str, xs)` has one frame more, that of the function
        assert (found[0], found[1].splitlines()[-1], found[2]) == (
            expected[0],
            expected[1].splitlines()[-1],
            expected[2],
        )
    else:
        assert found == expected
