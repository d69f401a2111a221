"""Cases for the comparison with `str`: texts, arguments that may matter, and every operation as an expression.

All choices come from one `random.Random`: hypothesis hands in one that it can shrink, the long campaign and the mutants
a seeded one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

BREAKS = ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
CASES = ["ß", "İ", "ı", "Σ", "σ", "ς", "ŉ", "ǅ", "ﬁ", "ΑΣ", "\u0345", "\u1fb3", "ſ", "\u212a"]
JOINING = ["e\u0301", "\u0301", "👩\u200d👩\u200d👧", "\u200d", "👍🏽", "😀", "\U00010427", "\U0001044f"]
NUMBERS = ["0", "7", "٣", "²", "½", "Ⅷ", "𝟘", "+", "-", "_"]
SPACES = [" ", "  ", "\t", "\u00a0", "\u3000", "\x1f", "\u2003"]
LETTERS = ["a", "b", "ab", "aab", "aba", "A", "B", "Ab", "x", "é", "漢", ".", "'", "%s", "{}", "%", "\0"]
EVERYTHING = [*LETTERS, *BREAKS, "\r\n", "\n", *CASES, *JOINING, *NUMBERS, *SPACES]
ALPHABETS = [
    EVERYTHING,
    EVERYTHING,
    ["a", "b"],
    ["a", "aba", "b", "A"],
    [*BREAKS, "\r\n", "\r\n", "a", "b"],
    ["Σ", "σ", "A", "a", ".", "'", "\u0301", " ", "İ", "\u0345"],
    ["Σ", "Σ", "A", "a", ".", "\u0301"],
    [*SPACES, "a", "bc", "\n"],
    ["a", "b", "Ab", "aB", "\n", " ", "\t", "\t", "."],
    ["Ab", "Cd", "É", "ǅ", "x", " ", "-", "Σ"],
    ["a", "b_", "é", "٣", "0"],
    ["0", "7", "٣", "𝟘", "²"],
    [*SPACES],
]


def text(random: Random, most: int = 40) -> str:
    alphabet = random.choice(ALPHABETS)
    start = random.choice("+-") if not random.randrange(10) else ""
    return start + "".join([random.choice(alphabet) for _ in range(random.randrange(most))])


def needle(random: Random, text: str) -> str:
    """What lies in the text, what may lie in it, what overlaps itself, and what does not lie in it."""
    kind = random.randrange(10)
    if kind < 5 and text:
        start = random.randrange(len(text))
        return text[start : start + random.choice((1, 1, 2, 2, 3, 5, 12))]
    if kind < 7:
        return random.choice(["a", "aa", "aba", "ab", "\n", " ", "A", "é", "\r\n", "\r"])
    if kind < 9:
        return "".join([random.choice(EVERYTHING) for _ in range(random.randrange(3))])
    return random.choice(["", text, text + "a", "\ud83d", "never there"])


def bound(random: Random, text: str) -> Any:
    kind = random.randrange(40)
    if kind == 0:
        return random.choice(["x", 1.5, True])
    if kind < 28:
        return random.randint(-len(text) - 3, len(text) + 3)
    return random.choice([None, None, 0, 10**20, -(10**20), sys.maxsize, -sys.maxsize - 1])


def few(random: Random, text: str) -> Any:
    return random.choice((-1, -1, 0, 1, 2, 3, 100, -7, sys.maxsize, 10**20, -(10**20), "x"))


def width(random: Random, text: str) -> int:
    return random.choice((-3, 0, len(text), len(text) + 1, len(text) + 2, len(text) + random.randrange(20), 10**20))


def _affix(random: Random, text: str) -> Any:
    item = random.choice((text[: random.randrange(4)], text[len(text) - random.randrange(4) :], needle(random, text)))
    return (
        item
        if random.randrange(3)
        else random.choice(((item, needle(random, text)), (), (needle(random, text),), ("a", 3)))
    )


TABLES: list[Any] = [
    {ord("a"): "xyz", ord("\n"): None, ord("é"): "e", ord("b"): 0x1F600, ord("Σ"): ""},
    {ord("x"): "\n", ord("a"): ord("b"), ord("b"): ord("a")},
    {},
    "no table of numbers" * 3,
    [None] * 60 + ["!"] * 60,
    {ord("a"): 1.5},
]


def _changed(random: Random, text: str) -> str:
    """The text with another character somewhere, or with one more."""
    offset = random.randrange(len(text) + 1)
    return text[:offset] + random.choice("aé\n\ufb01😀\ud800") + text[offset + 1 :]


def _chars(random: Random, text: str) -> str | None:
    return None if random.randrange(2) else random.choice((text[:2], text[-2:], needle(random, text), " \n", ""))


def _separator(random: Random, text: str) -> str | None:
    return None if not random.randrange(4) else needle(random, text)


def _wrong(random: Random, text: str) -> Any:
    return random.choice((3, None, b"a", ["a"], 1.5, ("a",)))


@dataclass(frozen=True)
class Operation:
    """An expression over `t`, the text, and `a`, the arguments."""

    name: str
    """The attribute of `str` that it stands for."""
    source: str
    arguments: tuple[Any, ...]

    def __call__(self, text: Any) -> Any:
        return _compiled(self.source)(text, self.arguments)

    def __str__(self) -> str:
        return f"{self.source} with a = {self.arguments!r}"


@cache
def _compiled(source: str) -> Callable[[Any, Any], Any]:
    code: Callable[[Any, Any], Any] = eval(f"lambda t, a: {source}")
    return code


Maker = Callable[[Random, str], tuple[Any, ...]]


def _none(random: Random, text: str) -> tuple[Any, ...]:
    return ()


def _of(*makers: Callable[[Random, str], Any]) -> Maker:
    return lambda random, text: tuple(make(random, text) for make in makers)


def _choice(*values: Any) -> Callable[[Random, str], Any]:
    return lambda random, text: random.choice(values)


_search = [
    ("t.{name}(a[0])", _of(needle)),
    ("t.{name}(*a)", _of(needle, bound)),
    ("t.{name}(*a)", _of(needle, bound, bound)),
]
_affixes = [("t.{name}(a[0])", _of(_affix)), ("t.{name}(*a)", _of(_affix, bound, bound))]
_strips = [("t.{name}()", _none), ("t.{name}(a[0])", _of(_chars))]
_split = [
    ("t.{name}()", _none),
    ("t.{name}(a[0])", _of(_separator)),
    ("t.{name}(*a)", _of(_separator, few)),
    ("t.{name}(sep=a[0], maxsplit=a[1])", _of(_separator, few)),
    ("t.{name}(None, a[0])", _of(few)),
    (r"t.{name}('\n')", _none),
]
_pads = [("t.{name}(a[0])", _of(width)), ("t.{name}(*a)", _of(width, _choice("x", " ", "漢", "😀")))]
_wrongs = [("t.{name}(a[0])", _of(_wrong))]
_plain = [("t.{name}()", _none)]
_order = [("t {operator} a[0]", _of(needle)), ("a[0] {operator} t", _of(needle)), ("t {operator} a[0]", _of(_wrong))]
_order += [("t {operator} a[0]", lambda random, text: (_changed(random, text),))]


def _ordered(operator: str) -> list[tuple[str, Maker]]:
    return [(source.replace("{operator}", operator), maker) for source, maker in _order]


FORMS: Mapping[str, list[tuple[str, Maker]]] = {
    "__add__": [("t + a[0]", _of(needle)), ("a[0] + t", _of(needle)), ("t + t", _none), ("t + a[0]", _of(_wrong))],
    "__contains__": [("a[0] in t", _of(needle)), ("a[0] not in t", _of(needle)), ("a[0] in t", _of(_wrong))],
    "__eq__": [*_ordered("=="), ("t == t[:len(t)]", _none)],
    "__ne__": _ordered("!="),
    "__lt__": [*_ordered("<"), ("t < t[1:]", _none)],
    "__le__": _ordered("<="),
    "__gt__": _ordered(">"),
    "__ge__": [*_ordered(">="), ("t >= t[1:]", _none)],
    "__format__": [
        ("f'{t}'", _none),
        ("format(t, a[0])", _of(_choice("", "s", ".3", ".0s", ">9.2", "<90", "^90s", "*^5.1s", "d", "x>", ".", "é^70.4"))),
        ("'{:>{}}'.format(t, a[0])", _of(width)),
    ],
    "__getitem__": [
        ("t[a[0]]", _of(lambda random, text: random.randint(-len(text) - 1, len(text)))),
        ("t[a[0]]", _of(_choice(10**20, True, 1.5, "a", None))),
        ("t[a[0]:a[1]]", _of(bound, bound)),
        ("t[a[0]:a[1]]", _of(bound, bound)),
        ("t[a[0]:]", _of(bound)),
        ("t[:a[0]]", _of(bound)),
        ("t[a[0]:a[1]:a[2]]", _of(bound, bound, _choice(1, 2, -1, -2, -3, 7, 0, 10**20, -(10**20), None))),
        ("t[::-1]", _none),
    ],
    "__hash__": [("hash(t)", _none), ("{t: 1} == {t[:]: 1}", _none)],
    "__iter__": [
        ("list(t)", _none),
        ("sorted(t)", _none),
        ("''.join(reversed(t))", _none),
        ("list(enumerate(t))", _none),
        ("len(set(t))", _none),
        ("max(t, default='')", _none),
        ("'-'.join(t)", _none),
        ("[c for c, _ in zip(t, range(3))]", _none),
    ],
    "__len__": [("len(t)", _none), ("bool(t)", _none)],
    "__mod__": [("t % a[0]", _of(_choice("x", (), ("x", "y"), 3, {"a": 1}))), ("'<%s>' % t", _none), ("'%.2s' % (t,)", _none)],
    "__mul__": [("t * a[0]", _of(_choice(0, 1, 2, 3, -1, -(10**20), "x", 1.5))), ("a[0] * t", _of(_choice(0, 1, 2)))],
    "__str__": [("str(t)", _none)],
    **dict.fromkeys(("capitalize", "casefold", "lower", "swapcase", "title", "upper"), _plain),
    **{name: _plain for name in dir(str) if name.startswith("is")},
    **{key: [*_search, *_wrongs] for key in ("count", "find", "index", "rfind", "rindex")},
    **{key: [*_affixes, *_wrongs] for key in ("startswith", "endswith")},
    **{key: [("t.{name}(a[0])", _of(needle)), *_wrongs] for key in ("partition", "rpartition")},
    **{"lstrip": _strips, "rstrip": _strips, "ljust": _pads, "rjust": _pads, "split": _split, "rsplit": _split},
    "center": [*_pads, ("t.center(a[0], 'ab')", _of(width)), ("t.center(a[0])", _of(_wrong))],
    "encode": [
        ("t.encode(*a)", _of(_choice("utf-8", "utf-16-le", "latin-1", "ascii"), _choice("strict", "replace", "ignore"))),
        ("t.encode()", _none),
        ("t.encode(encoding='ascii', errors='xmlcharrefreplace')", _none),
        ("t.encode('no such thing')", _none),
    ],
    "expandtabs": [("t.expandtabs()", _none), ("t.expandtabs(a[0])", _of(_choice(0, 1, 2, 3, 8, -1, 10**20, -(10**20), 1.5))), ("t.expandtabs(tabsize=4)", _none)],
    "format": [("t.format(*a)", _of(needle)), ("t.format(x=1)", _none)],
    "format_map": [("t.format_map({'a': 1})", _none)],
    "join": [("t.join(['x', 'y'])", _none), ("t.join(a[0])", _of(needle)), ("t.join([3])", _none), ("'-'.join(t.split())", _none)],
    "maketrans": [("t.maketrans('ab', 'xy', 'c')", _none), ("t.translate(t.maketrans('ab', 'xy', 'c'))", _none)],
    "removeprefix": [("t.removeprefix(a[0])", _of(lambda random, text: text[: random.randrange(5)])), ("t.removeprefix(a[0])", _of(needle))],
    "removesuffix": [
        ("t.removesuffix(a[0])", _of(lambda random, text: text[len(text) - random.randrange(5) :])),
        ("t.removesuffix(a[0])", _of(needle)),
    ],
    "replace": [
        ("t.replace(*a)", _of(needle, needle)),
        ("t.replace(*a)", _of(needle, needle)),
        ("t.replace(*a)", _of(needle, needle, few)),
        ("t.replace('', *a)", _of(needle, few)),
        ("t.replace(a[0], 'x')", _of(_wrong)),
    ],
    "splitlines": [("t.splitlines()", _none), ("t.splitlines(True)", _none), ("t.splitlines(keepends=a[0])", _of(_choice(0, 1)))],
    "strip": [*_strips, ("t.strip(a[0])", _of(_wrong))],
    "translate": [("t.translate(a[0])", _of(_choice(*TABLES))), ("t.translate(a[0])", _of(_choice(*TABLES[:3])))],
    "zfill": [("t.zfill(a[0])", _of(width))],
}  # fmt: skip
if sys.version_info >= (3, 13):
    FORMS["replace"].append(("t.replace(a[0], a[1], count=a[2])", _of(needle, needle, few)))

NOT_COMPARED = {
    "__repr__": "constant size by design: hosts call it on every variable",
    "__rmod__": "nobody's: `'%s' % text` asks the left side",
    "__rmul__": "the forms of __mul__",
    "__getnewargs__": "pickling: test_pickle_copy",
    "__sizeof__": "memory of the object",
}
"""Attributes of `str` that no form stands for, and why."""

NEVER_LOUD = {
    *("__contains__", "__eq__", "__ge__", "__gt__", "__iter__", "__le__", "__len__", "__lt__", "__ne__", "casefold"),
    *("count", "endswith", "find", "index", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "rfind"),
    *("rindex", "rpartition", "rstrip", "splitlines", "startswith", "strip", "upper"),
}
"""Operations that are lazy or stream at any size. Any other is the `str`'s own, and may raise `ContextTooLarge`."""
LOUD = set(FORMS) - NEVER_LOUD

NAMES = sorted(FORMS)
_LAZY = ["lower", "replace", "__getitem__", "__getitem__", "split", "strip", "splitlines", "upper"]


def operation(random: Random, text: str, name: str) -> Operation:
    """One form of an operation; arguments are made from the text."""
    source, maker = random.choice(FORMS[name])
    return Operation(name, source.replace("{name}", name), maker(random, text))


def chain(random: Random, names: Sequence[str] = NAMES) -> list[str]:
    """The names of three operations, of `names` each; what comes before the last is often one whose result is lazy."""
    return [random.choice(_LAZY if number < 2 and random.randrange(2) else names) for number in range(3)]
