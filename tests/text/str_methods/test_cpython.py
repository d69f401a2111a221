"""CPython's own tests of strings and sequences, imported from the installed `test` package, on contexts.

Three suites: the checks that `str` and `collections.UserString` share; those of `str` alone; those of any sequence. The
last two speak of literals in many places (`"abc".find(...)`), which would never touch a context: their classes are
compiled once more with such receivers wrapped.

Only the receiver is a context, arguments stay `str`. What needs the whole text as one `str` has its limit at the
default; elsewhere the limit is the parameter, so 3 makes nearly everything lazy.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
import unittest
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.text.monocontext import MATERIALIZE_LIMIT

from .cases import LOUD
from .subject import read, stored

try:
    string_tests: ModuleType = importlib.import_module("test.string_tests")
    str_tests: ModuleType = importlib.import_module(
        "test.test_str" if sys.version_info >= (3, 13) else "test.test_unicode"
    )
    seq_tests: ModuleType = importlib.import_module("test.seq_tests")
except ImportError as error:
    if os.environ.get("MONOCONTEXT_REQUIRE_CPYTHON_TESTS") == "1":
        raise
    pytest.skip(f"this Python comes without CPython's own tests ({error})", allow_module_level=True)

EXCEPTIONS = {
    "test_mul: 'abc'.__mul__('')": "`__mul__` called by name with a wrong argument gives NotImplemented; `*` raises TypeError",
}
"""Checks of CPython that a context does not pass, and why; docs/semantics.md lists the same ones."""

NOT_ABOUT_THE_SUBJECT = {
    "test_fixtype": "asks for the type of what the test class itself makes",
    "test_find_many_lengths": "hands wrapped arguments to slices of its subject, which are real `str`",
}
ALL_PAIRS = {"test_count", "test_find", "test_rfind"}
"""They compare some 60,000 pairs of short strings, which takes half a minute on contexts: the slow form does."""
MANY_LONG_TEXTS = {"test_find_periodic_pattern"}
WHOLE = {"test_hash": "hashes what it adds up", "test_format": "formats what it adds up"}
"""Tests that make their subjects themselves, for what needs the whole text."""


class Subject:
    """Makes contexts, and counts what was asked of them."""

    frame_bytes = 3
    limit = MATERIALIZE_LIMIT
    test = ""
    all_pairs = False
    checks = 0

    def __call__(self, text: Any = "", method: str = "") -> Monocontext:
        self.checks += 1
        whole = method in LOUD or self.test in WHOLE
        frame_bytes = max(self.frame_bytes, len(text) // 100)
        return _context(str(text), frame_bytes, MATERIALIZE_LIMIT if whole else self.limit)

    maketrans = staticmethod(str.maketrans)


@lru_cache(maxsize=512)
def _context(text: str, frame_bytes: int, limit: int) -> Monocontext:
    return stored(text, frame_bytes, limit)


subject = Subject()


class Checks:
    """The three checks of CPython's classes, with only the receiver wrapped."""

    type2test = subject

    def fixtype(self, value: Any) -> Any:
        """A receiver in one call, an argument in the next: as one `str` it has to be had."""
        is_wrapped = isinstance(value, str) and (subject.all_pairs or subject.test not in ALL_PAIRS)
        return _context(value, subject.frame_bytes, MATERIALIZE_LIMIT) if is_wrapped else value

    def checkequal(self, result: Any, receiver: str, name: str, *arguments: Any, **named: Any) -> None:
        assert read(getattr(subject(receiver, name), name)(*arguments, **named)) == read(result)
        if name in LOUD and subject.limit < MATERIALIZE_LIMIT:
            try:
                value = getattr(subject(receiver), name)(*arguments, **named)
            except ContextTooLarge:
                return
            assert read(value) == read(result)

    checkequalnofix = checkequal

    def checkraises(
        self, kind: Any, receiver: str, name: str, *arguments: Any, expected_msg: str | None = None
    ) -> None:
        if f"{subject.test}: {receiver!r}.{name}({', '.join(map(repr, arguments))})" in EXCEPTIONS:
            assert getattr(subject(receiver, name), name)(*arguments) is NotImplemented
            return
        with pytest.raises(kind) as raised:
            read(getattr(subject(receiver, name), name)(*arguments))
        assert str(raised.value)
        if expected_msg is not None:
            assert str(raised.value) == expected_msg

    def checkcall(self, receiver: str, name: str, *arguments: Any) -> None:
        getattr(subject(receiver, name), name)(*arguments)


class _Receivers(ast.NodeTransformer):
    """Wraps literals that something is asked of: `"abc".find`, `"%s" % x`."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node  # its methods give Python what has to be a `str`

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.value = self._wrap_receiver(node.value, node.attr)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        operators: dict[type[ast.operator], str] = {ast.Mod: "__mod__", ast.Add: "__add__", ast.Mult: "__mul__"}
        if type(node.op) in operators:
            node.left = self._wrap_receiver(node.left, operators[type(node.op)])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_check = isinstance(node.func, ast.Attribute) and node.func.attr.startswith("check")
        return node if is_check else self.generic_visit(node)

    def _wrap_receiver(self, node: ast.expr, method: str) -> ast.expr:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return node
        call = ast.Call(ast.Name("_subject", ast.Load()), [node, ast.Constant(method)], [])
        return ast.copy_location(call, node)


def _rewrapped(module: ModuleType, name: str) -> tuple[type[Any], list[str]]:
    """The class of that name, compiled once more with its literals wrapped, and its tests that ask a subject anything."""
    tree = ast.parse(inspect.getsource(module))
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    receivers = _Receivers()
    found.body = [receivers.visit(node) for node in found.body]
    tree.body = [found]
    tests = [node.name for node in found.body if isinstance(node, ast.FunctionDef) and _asks(node)]
    scope = {**vars(module), "_subject": subject}
    exec(compile(ast.fix_missing_locations(tree), module.__file__ or "", "exec"), scope)
    return scope[name], [test for test in tests if test.startswith("test_")]


def _asks(function: ast.FunctionDef) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == "_subject")
        or (isinstance(node, ast.Attribute) and (node.attr == "type2test" or node.attr.startswith("check")))
        for node in ast.walk(function)
    )


def _string_suite() -> tuple[type[Any], list[str]]:
    if sys.version_info >= (3, 13):
        bases: tuple[type[Any], ...] = (string_tests.StringLikeTest,)
    else:
        bases = (string_tests.CommonTest, string_tests.MixinStrUnicodeUserStringTest)
    suite = type("StringSuite", (Checks, *bases, unittest.TestCase), {})
    return suite, [name for name in dir(suite) if name.startswith("test_")]


def _str_suite() -> tuple[type[Any], list[str]]:
    base, tests = _rewrapped(str_tests, "StrTest" if sys.version_info >= (3, 13) else "UnicodeTest")
    return type("StrSuite", (Checks, base), {}), tests


class Points:
    """A context as a sequence of the code points of its characters, for tests that are written in numbers."""

    def __init__(self, items: Any = ()):
        if isinstance(items, Points):
            items = items._numbers()
        self.text: Any = subject("".join(chr(item + 1000) for item in items))

    @classmethod
    def _from(cls, text: Any) -> Points:
        made = cls()
        made.text = text
        return made

    def _numbers(self) -> list[int]:
        return [ord(character) - 1000 for character in self.text]

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, key: Any) -> Any:
        text = self.text
        if isinstance(key, slice) and key.step is not None:  # one `str`
            text = _context("".join(text), subject.frame_bytes, MATERIALIZE_LIMIT)
        value = text[key]
        return Points._from(value) if isinstance(key, slice) else ord(value) - 1000

    def __iter__(self) -> Iterator[int]:
        return (ord(character) - 1000 for character in self.text)

    def __contains__(self, number: int) -> bool:
        return chr(number + 1000) in self.text

    def __eq__(self, other: object) -> bool:
        return bool(self.text == other.text) if isinstance(other, Points) else NotImplemented

    def __add__(self, other: Points) -> Points:
        mine, theirs = (_context("".join(one.text), subject.frame_bytes, MATERIALIZE_LIMIT) for one in (self, other))
        return Points._from(mine + theirs)

    def __mul__(self, times: int) -> Points:
        return Points._from(_context("".join(self.text), subject.frame_bytes, MATERIALIZE_LIMIT) * times)

    __rmul__ = __mul__

    def count(self, number: int) -> int:
        return int(self.text.count(chr(number + 1000)))

    def index(self, number: int, *bounds: int) -> int:
        return int(self.text.index(chr(number + 1000), *bounds))


class SeqSuite(seq_tests.CommonTest):  # type: ignore[name-defined, misc]
    """Those of its tests that a sequence of numbers which cannot change can answer."""

    __test__ = False  # pytest would collect it by itself
    type2test = Points


SEQ_TESTS = [
    *("test_truth", "test_getitem", "test_getslice", "test_contains", "test_len", "test_minmax", "test_subscript"),
    *("test_addmul", "test_repeat", "test_imul"),
]
SUITES = {"string": _string_suite(), "str": _str_suite(), "seq": (SeqSuite, SEQ_TESTS)}
TESTS = [(suite, name) for suite, (_, names) in SUITES.items() for name in names if name not in NOT_ABOUT_THE_SUBJECT]


@pytest.fixture(params=[*((frame_bytes, 3) for frame_bytes in (1, 2, 3, 4, 5)), (3, MATERIALIZE_LIMIT)], ids=str)
def awkward(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Subject:
    """The maker of contexts, with frames of so many bytes and this limit."""
    frame_bytes, limit = request.param
    for name, value in {"frame_bytes": frame_bytes, "limit": limit, "checks": 0}.items():
        monkeypatch.setattr(subject, name, value)
    return subject


def run(suite: str, name: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(subject, "test", name)
    SUITES[suite][0](name).debug()


QUICK = [(suite, name) for suite, name in TESTS if name not in MANY_LONG_TEXTS]
SLOW = [(suite, name) for suite, name in TESTS if name in MANY_LONG_TEXTS or (suite == "string" and name in ALL_PAIRS)]


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "name"), QUICK, ids=[f"{suite}-{name}" for suite, name in QUICK])
def test_of_cpython(suite: str, name: str, awkward: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    run(suite, name, monkeypatch)
    if not awkward.checks:
        pytest.skip("this one asks nothing of its subject here")


@pytest.mark.fuzz
@pytest.mark.parametrize(("suite", "name"), SLOW, ids=[f"{suite}-{name}" for suite, name in SLOW])
def test_of_cpython_at_length(suite: str, name: str, awkward: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awkward, "all_pairs", True)
    run(suite, name, monkeypatch)


def test_the_exceptions_are_documented() -> None:
    page = Path(__file__, "../../../../docs/semantics.md").resolve().read_text()
    assert len(EXCEPTIONS) <= 5
    documented = [line for line in page.splitlines() if line.startswith("- `test_")]
    assert len(documented) == len(EXCEPTIONS)
    for check, line in zip(EXCEPTIONS, documented, strict=True):
        assert line.startswith(f"- `{check}`")


def test_most_of_the_tests_ask_their_subject() -> None:
    """What is imported has not shrunk to nothing: 3.11 to 3.13 have 50 to 60, 60 to 80 and 10."""
    counts = {suite: len(names) for suite, (_, names) in SUITES.items()}
    assert counts["string"] >= 50, counts
    assert counts["str"] >= 50, counts
    assert counts["seq"] == len(SEQ_TESTS), counts
