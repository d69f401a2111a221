"""docs/semantics.md says what the code does: each row of its table is tried on a text of 10 GB."""

from __future__ import annotations

import ast
import base64
import codecs
import csv
import difflib
import html
import io
import json
import operator
import os
import re
import sqlite3
import string
import subprocess
import textwrap
import unicodedata
import urllib.parse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.text import windows as search
from monocontext.text.lazy_lists import LazyList
from monocontext.text.source import Span

from .big import FRAME_BYTES, MIB, Big
from .subject import read, stored

PAGE = Path(__file__, "../../../../docs/semantics.md").resolve().read_text()
FAR = 5 * 10**9
SMALL = "  # one two\nINFO three INFO\n\tfour aa aaa\n \n"


OPERATORS = {
    "`len(t)`": "__len__",
    "`t[i]`": "__getitem__",
    "`for c in t`": "__iter__",
    "`==`": "__eq__ __ne__ __lt__ __le__ __gt__ __ge__",
    "`in`": "__contains__",
    "`t + s`": "__add__",
    "`t * n`": "__mul__ __rmul__",
    "`hash(t)`": "__hash__ __str__ __format__ __mod__ __rmod__",
    "`repr(t)`": "__repr__",
}
"""The rows of operators, by what they begin with."""


@dataclass(frozen=True)
class Row:
    label: str
    kind: str
    gets: str

    @property
    def names(self) -> set[str]:
        """The public methods of `str` that it speaks of, and the operators."""
        methods = re.findall(r"`(?:t\.)?([a-z_]+)", self.label)
        operators = [
            name for start, names in OPERATORS.items() if self.label.startswith(start) for name in names.split()
        ]
        return {name for name in methods if hasattr(str, name)} | set(operators)


def rows() -> list[Row]:
    table = PAGE[PAGE.index("| operation | class |") :].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return [Row(*row) for row in cells]


ROWS = rows()
Operation = Callable[[Any], Any]

SAME: dict[str, list[Operation]] = {
    "len(t)": [len, bool],
    "t[i]": [lambda t: t[FAR % len(t)]],
    "t[a:b]`, small": [lambda t: t[len(t) // 2 : len(t) // 2 + 9]],
    "for c in t": [lambda t: list(islice(t, 5)), lambda t: list(islice(reversed(t), 5))],
    "==": [lambda t: t == "abc", lambda t: t != "abc", lambda t: t < "abc", lambda t: t <= "abc"],
    "in`, ": [lambda t: "INFO" in t, lambda t: t.find("INFO"), lambda t: t.index("INFO") > 0],
    "rfind`, ": [lambda t: t.rfind("INFO"), lambda t: t.rindex("INFO") > 0],
    "count`": [lambda t: t.count("INFO", 0, 10**6)],
    'count("': [lambda t: t.count("\n"), lambda t: t.count("\n", 5, FAR)],
    "startswith`, ": [lambda t: t.startswith("  "), lambda t: t.endswith(("x", "\n"))],
    "isascii`": [lambda t: t.isascii()],
    "the other": [
        *(lambda t: t.isalnum(), lambda t: t.isalpha(), lambda t: t.isdecimal(), lambda t: t.isdigit()),
        *(lambda t: t.isidentifier(), lambda t: t.islower(), lambda t: t.isnumeric(), lambda t: t.isprintable()),
        *(lambda t: t.isspace(), lambda t: t.istitle(), lambda t: t.isupper()),
    ],
    'f"{t:.500}"': [lambda t: f"{t:.500}", lambda t: f"{t:>600.500}"],
    "t.maketrans": [lambda t: t.maketrans("a", "b")],
}
LAZY: dict[str, list[Operation]] = {
    "t[a:b]`, large": [lambda t: t[3:], lambda t: t[:-1], lambda t: t[1:-2]],
    "lower`, ": [
        *(lambda t: t.lower(), lambda t: t.swapcase(), lambda t: t.title(), lambda t: t.capitalize()),
        *(lambda t: t.upper(), lambda t: t.casefold()),
    ],
    "replace(old, new)`": [
        lambda t: t.replace("INFO", "info"),
        lambda t: t.replace("a", "bb"),
        lambda t: t.replace("", "-"),
        *(lambda t: t.translate({97: None}), lambda t: t.expandtabs(4)),
    ],
    "replace(old, new, count)": [lambda t: t.replace("INFO", "info", 2)],
    "strip`, ": [lambda t: t.strip(), lambda t: t.lstrip(), lambda t: t.rstrip("\n ")],
    "removeprefix`, ": [lambda t: t.removeprefix("  "), lambda t: t.removesuffix(" \n")],
    "partition`, ": [lambda t: t.partition("INFO"), lambda t: t.rpartition("INFO")],
    "split(sep)`, ": [lambda t: t.split("\n"), lambda t: t.split("INFO"), lambda t: t.split()],
    "splitlines`": [lambda t: t.splitlines(), lambda t: t.splitlines(True)],
    "rsplit(sep)": [lambda t: t.rsplit("INFO"), lambda t: t.rsplit()],
    "split(sep, n)": [lambda t: t.split("INFO", 1), lambda t: t.split(None, 2), lambda t: t.rsplit("\n", 2)],
    "t + s": [lambda t: t + "x", lambda t: "x" + t, lambda t: t + t],
    "center`, ": [lambda t: t.center(len(t) + 7), lambda t: t.ljust(3), lambda t: t.rjust(len(t) + 2, "*")],
    "zfill": [lambda t: t.zfill(len(t) + 3)],
}
BOUNDED: dict[str, tuple[list[Operation], list[Operation]]] = {
    "t[a:b:step]": (
        [lambda t: t[1000:2000][::-1], lambda t: t[100:0:-3], lambda t: t[:: len(t) // 3]],
        [lambda t: t[::-1], lambda t: t[::2]],
    ),
    "t * n": ([lambda t: t * 0, lambda t: -1 * t], [lambda t: t * 2, lambda t: 3 * t]),
}
REFUSED: dict[str, list[Operation]] = {
    "hash(t)": [
        *(hash, lambda t: {t: 1}),
        *(str, print, lambda t: "%s" % t, lambda t: t % ()),  # noqa: UP031
        *(lambda t: f"{t}", lambda t: format(t, ">9"), lambda t: f"{t:.99999999999}"),
        *(lambda t: t.format(1), lambda t: t.format_map({})),
        *(lambda t: t.join(["a", "b"]), lambda t: t.encode()),
    ],
}
BY_HAND = {
    "rsplit` at": "a pass over 10 GB: see test_rsplit_at_a_separator_that_overlaps_itself",
    "repr(t)": "see test_repr_differs",
}


def example(row: Row, examples: dict[str, Any]) -> Any:
    (found,) = (
        examples[start] for start in examples if row.label.startswith("`" + start) or row.label.startswith(start)
    )
    return found


def of_kind(kind: str) -> Any:
    chosen = [
        row for row in ROWS if row.kind == kind and not any(row.label.startswith("`" + start) for start in BY_HAND)
    ]
    return pytest.mark.parametrize("row", chosen, ids=[row.label for row in chosen])


def test_every_attribute_of_str_has_a_row() -> None:
    described = set().union(*(row.names for row in ROWS))
    public = {name for name in dir(str) if not name.startswith("_")}
    assert described >= public
    operators = {"__add__", "__contains__", "__eq__", "__format__", "__ge__", "__getitem__", "__gt__", "__hash__"}
    operators |= {"__iter__", "__le__", "__len__", "__lt__", "__mod__", "__mul__", "__ne__", "__repr__", "__rmod__"}
    assert described == public | operators | {"__rmul__", "__str__"}
    assert {row.kind for row in ROWS} == {"same", "lazy", "bounded", "refused", "differs"}


def within(row: Row, gets: int, bytes_read: int) -> bool:
    """Whether what was fetched is what the row allows."""
    if row.gets.startswith(("0", "1", "2")):
        most = int(row.gets[0])
        return gets <= most and bytes_read <= most * FRAME_BYTES
    return bytes_read <= 4 * MIB  # the examples are decided early, and a scan begins with 1 MiB at each end


@of_kind("same")
def test_same(row: Row, big: Big) -> None:
    for operation in example(row, SAME):
        cost = big.cost(operation)
        assert type(cost.result) is type(operation(SMALL))
        assert not isinstance(cost.result, Monocontext | LazyList)
        assert within(row, cost.gets, cost.bytes_read), cost


@of_kind("lazy")
def test_lazy(row: Row, big: Big) -> None:
    for operation in example(row, LAZY):
        cost = big.cost(operation)
        expected = operation(SMALL)
        parts = (
            cost.result
            if isinstance(expected, tuple | list) and isinstance(cost.result, tuple | list)
            else [cost.result]
        )
        assert any(isinstance(part, Monocontext | LazyList) for part in parts)
        assert within(row, cost.gets, cost.bytes_read), cost
        context = stored(SMALL, 5)
        assert type(operation(context)) is type(expected)  # up to the limit they are real
        assert operation(context) == expected


@of_kind("bounded")
def test_bounded(row: Row, big: Big) -> None:
    small, large = example(row, BOUNDED)
    for operation in small:
        cost = big.cost(operation)
        assert type(cost.result) is str
        assert cost.bytes_read <= 4 * MIB
    for operation in large:
        assert_refused(operation, big)


@of_kind("refused")
def test_refused(row: Row, big: Big) -> None:
    for operation in example(row, REFUSED):
        assert_refused(operation, big)


def assert_refused(operation: Operation, big: Big) -> None:
    """With the size, the limit and what to write, and before any text is read."""

    def attempt(text: Any) -> str:
        with pytest.raises(ContextTooLarge) as raised:
            operation(text)
        return str(raised.value)

    cost = big.cost(attempt)
    assert cost.gets == 0
    pattern = r".+ would make [0-9,]{13,} characters, more than the limit of 67,108,864 \(materialize_limit\): .{10,}"
    assert re.fullmatch(pattern, cost.result), cost.result


def test_the_limit_is_what_it_says() -> None:
    text = stored("abcdef", 2, limit=3)
    assert [type(part) for part in (text[:3], text[1:4], text[::2], text[:0] + "abc")] == [str] * 4
    assert [type(part) for part in (text[:4], text[:3] + text[:3] + text[:1], text.strip("af"))] == [
        Monocontext,
        str,
        Monocontext,
    ]
    for just, over in ((text.view(0, 3), text.view(0, 4)), (text.view(0, 4).replace("a", ""), text.replace("a", ""))):
        for operation in (str, hash, lambda t: t.encode(), lambda t: f"{t}", lambda t: t[::-1], lambda t: t * 1 % ()):
            operation(just)
            with pytest.raises(ContextTooLarge, match="than the limit of 3 "):
                operation(over)
        assert type(just[:]) is type(just * 1) is type(just[1:]) is type(just.ljust(2)) is str
        assert type(over[:]) is type(over * 1) is type(over.ljust(2)) is type(over + "") is Monocontext
        assert type(just.partition("!")[0]) is type(just.split("!", 1)[0]) is str


def test_padding_above_the_limit_is_refused(big: Big) -> None:
    for operation in (lambda t: t.center(10**12), lambda t: t.ljust(10**12), lambda t: t.zfill(10**12)):
        assert_refused(operation, big)


def test_lazy_arguments_are_refused_above_the_limit(big: Big) -> None:
    for operation in (
        *(lambda t: t.find(t[1:]), lambda t: t.replace("a", t), lambda t: t.split(t[5:]), lambda t: t.strip(t)),
        *(lambda t: t[3:] in t, lambda t: t.startswith((t,)), lambda t: t.removeprefix(t)),
    ):

        def attempt(text: Any, operation: Operation = operation) -> None:
            with pytest.raises(ContextTooLarge, match="give a slice of it"):
                operation(text)

        assert big.cost(attempt).bytes_read <= 4 * MIB


def test_rsplit_at_a_separator_that_overlaps_itself() -> None:
    context = stored(SMALL, 5, limit=3)
    parts = context.rsplit("aa")
    assert isinstance(parts, LazyList)
    assert parts == SMALL.rsplit("aa") != SMALL.split("aa")


@pytest.mark.slow
@pytest.mark.parametrize("separator", ["a", "aa", "aba", "abab", "é", "éaé", "ab" * 8])
def test_rsplit_goes_through_the_text_once(separator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many separators there are, and however frames cut them."""
    random = Random(separator)
    passes = []
    real = Span.windows
    for frame_bytes in (1, 2, 3, 7, 100):
        text = "".join(random.choices(["a", "ab", "aba", "é"], k=300))
        with monkeypatch.context() as patch:
            patch.setattr(Span, "windows", lambda *args, **more: passes.append(args) or real(*args, **more))
            parts = stored(text, frame_bytes, limit=3).rsplit(separator)
        assert parts == text.rsplit(separator)
        for most in (1, 2, 7, 10**9):
            assert read(stored(text, frame_bytes, limit=3).rsplit(separator, most)) == read(
                text.rsplit(separator, most)
            )
    assert len(passes) == (5 if search.has_border(separator) else 0)  # else it is `split`, which waits to be asked


def test_repr_differs(big: Big) -> None:
    cost = big.cost(repr)
    assert cost.gets == 0
    assert re.fullmatch(r"<Monocontext 10,\d+,\d+,\d+ characters of virtual:.*>", cost.result)


DEMAND_A_STR: list[tuple[Operation, type[Exception]]] = [
    *((call, TypeError) for call in (lambda t: re.search("a", t), lambda t: re.compile("a").sub("b", t), re.escape)),
    *((call, TypeError) for call in (json.loads, lambda t: json.dumps({"k": t}), lambda t: json.dumps({t: 1}))),
    *((call, TypeError) for call in (io.StringIO, lambda t: io.StringIO().write(t), lambda t: Path("x").write_text(t))),
    (lambda t: list(csv.reader([t])), csv.Error),
    *((call, TypeError) for call in (lambda t: "abc".find(t), lambda t: t in "abc", lambda t: "abc".replace(t, "x"))),
    *((call, TypeError) for call in (lambda t: ",".join([t]), str.lower, lambda t: "abc".split(t))),
    *((call, TypeError) for call in (int, float, ord, Decimal, unicodedata.name)),
    *((call, TypeError) for call in (eval, exec, lambda t: compile(t, "x", "exec"))),
    (ast.literal_eval, ValueError),
    *((call, TypeError) for call in (lambda t: getattr(t, t), open, os.fspath, Path, os.path.join)),
    *(
        (call, TypeError)
        for call in (lambda t: bytes(t, "utf-8"), lambda t: codecs.encode(t, "utf-8"), base64.b64decode)
    ),
    *((call, TypeError) for call in (textwrap.dedent, urllib.parse.quote, lambda t: string.Template(t).substitute())),
    (lambda t: sqlite3.connect(":memory:").execute("select ?", (t,)), sqlite3.ProgrammingError),
]
TAKE_IT: list[Operation] = [
    lambda t: textwrap.wrap(t, 20),
    lambda t: list(difflib.ndiff(t.splitlines(), ["a"])),
    lambda t: csv.writer(io.StringIO()).writerow([t]),
    lambda t: list(csv.reader(t.splitlines())),
    html.escape,
    Counter,
    lambda t: subprocess.run(["cat"], input=t, capture_output=True, text=True, check=True, timeout=60).stdout,
    lambda t: _written(lambda file: file.writelines(t)),
    lambda t: _written(lambda file: file.writelines(t.chunks() if isinstance(t, Monocontext) else t)),
    lambda t: "%s" % t,  # noqa: UP031
    lambda t: ",".join(t),
]


def _written(write: Callable[[io.StringIO], None]) -> str:
    file = io.StringIO()
    write(file)
    return file.getvalue()


def test_what_demands_a_str_is_loud() -> None:
    for context in (stored(SMALL, 5), stored(SMALL, 5, limit=3)):
        for number, (operation, error) in enumerate(DEMAND_A_STR):
            taken = False
            try:
                operation(context)
                taken = True
            except error:
                pass
            assert not taken, f"number {number} of them took it"


def test_what_takes_it() -> None:
    for operation in TAKE_IT:
        assert operation(stored(SMALL, 5)) == operation(SMALL)


def test_the_differences_that_the_page_names() -> None:
    import numpy as np

    context: Any = stored("abc", 2)
    assert not isinstance(context, str)
    match context:
        case [first, *_]:
            assert first == "a"
        case _:
            pytest.fail("no sequence")
    assert repr(context) == ascii(context) == "%r" % context != repr("abc")  # noqa: UP031
    assert "abc".__mod__(context) == "abc"
    assert (context + "\ud800")[3] == "\ud800"
    assert context.replace("a", "b", count=1) == "bbc"
    assert np.array(context).shape == ()
    assert np.array(context) == "abc"


def test_the_page_is_short_and_ours() -> None:
    table = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(PAGE.splitlines()) - len(table) < 200
    assert all(word in PAGE for word in ('"".join(t)', "stream", "materialize_limit", "ContextTooLarge"))


CHANGES: list[Operation] = [
    lambda parts: parts.append("x"),
    lambda parts: parts.extend(["x"]),
    lambda parts: parts.insert(0, "x"),
    lambda parts: parts.pop(),
    lambda parts: parts.remove("x"),
    lambda parts: parts.clear(),
    lambda parts: parts.sort(key=len),
    lambda parts: parts.reverse(),
    lambda parts: parts.__setitem__(0, "x"),
    lambda parts: parts.__delitem__(slice(2)),
    lambda parts: operator.iadd(parts, ["x"]),
    lambda parts: operator.imul(parts, 2),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_a_lazy_list_cannot_be_changed_and_says_so(number: int) -> None:
    """`b = a; b += [...]` changes `a` too where both are one list: a list made for `b` alone would be another thing."""
    parts = stored(SMALL, 5, limit=3).split("\n")
    assert isinstance(parts, LazyList)
    with pytest.raises(TypeError, match=r"parts = list\(parts\)"):
        CHANGES[number](parts)
    assert parts == SMALL.split("\n")


def test_every_method_of_a_list_is_there() -> None:
    parts: Any = stored(SMALL, 5, limit=3).split("\n")
    assert [name for name in dir([]) if not name.startswith("_") and not hasattr(parts, name)] == []
    assert 2 * parts == parts * 2 == 2 * SMALL.split("\n")


@pytest.mark.parametrize("keepends", [None, 0, 1, -1, True, 1.5, "x", 1 << 40, [], b""])
def test_keepends_is_what_str_takes(keepends: Any) -> None:
    assert_same_outcome(lambda t: list(t.splitlines(keepends)), SMALL)


@pytest.mark.parametrize("text", ["", "a", SMALL])
def test_bytes_wants_an_encoding(text: str) -> None:
    assert_same_outcome(bytes, text)


BAD: list[Any] = [None, 0, -1, 3, True, 1.5, "", "a", "ab", b"a", ["a"], ("a",), ("a", 1), 1 << 70, {}, {97: "b"}, len]


@pytest.mark.parametrize("name", sorted(name for name in dir(str) if not name.startswith("_")))
def test_arguments_of_any_type_are_taken_or_refused_as_by_str(name: str) -> None:
    """None, numbers, bytes, lists in each place: the same result, or the same class of error, on lazy results too."""
    few = BAD if name in ("find", "count", "startswith", "replace", "split") else BAD[:9]
    calls: list[tuple[Any, ...]] = [(), *((one,) for one in BAD), *((a, b) for a in few for b in few)]
    calls += [(a, b, c) for a in ("a", "") for b in BAD for c in BAD]
    for arguments in calls:
        assert_same_outcome(lambda t, given=arguments: getattr(t, name)(*given), SMALL, arguments)


def assert_same_outcome(operation: Operation, text: str, told: object = "") -> None:
    """On a text that is all real, and on one whose results are lazy, it gives or raises what it does on the `str`."""

    def outcome(subject: Any) -> Any:
        try:
            return read(operation(subject))[1]
        except ContextTooLarge:
            return ContextTooLarge
        except Exception as error:
            return type(error)

    expected = outcome(text)
    for limit in (1 << 20, 3):
        found = outcome(_stored_once(text, limit))
        assert found == expected or (found is ContextTooLarge and limit == 3), (told, limit, found, expected)


@cache
def _stored_once(text: str, limit: int) -> Monocontext:
    return stored(text, 5, limit=limit)
