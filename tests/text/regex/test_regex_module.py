"""The functions, `Pattern` and `Match` as model code meets them; errors; what goes to `re` untouched."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator

import pytest
from regex_equality import context_of, outcome, seen, windows

from monocontext import Monocontext, regex
from monocontext.errors import ContextTooLarge
from monocontext.text.regex import syntax

TEXT = "intro ERROR disk: sda1\nlabel: one two\n\nname=Ann age=7 🙂 end\n" * 20


@pytest.fixture(scope="module")
def context() -> Iterator[Monocontext]:
    with context_of(TEXT, 50, limit=1500, name="regex-module") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small_windows() -> Iterator[None]:
    with windows(64):
        yield


@pytest.mark.parametrize("name", re.__all__)
def test_names_of_re(name: str) -> None:
    ours, theirs = getattr(regex, name), getattr(re, name)
    if not callable(theirs) or (isinstance(theirs, type) and name not in ("Pattern", "Match")):
        assert ours is theirs
    assert name in dir(regex)


def test_other_names_of_re_pass_through() -> None:
    assert regex.Scanner is re.Scanner
    with pytest.raises(AttributeError):
        regex.no_such_name  # noqa: B018


@pytest.mark.parametrize("subject", ["one error", b"one error", bytearray(b"error"), 7, None, ["error"]])
@pytest.mark.parametrize("name", ["search", "match", "fullmatch", "findall", "split"])
def test_other_subjects_go_to_re(name: str, subject: object) -> None:
    pattern = b"err.r" if isinstance(subject, bytes | bytearray) else "err.r"

    def of(module: object) -> object:
        return outcome(lambda p, s: repr(getattr(module, name)(p, s)), pattern, subject)

    assert of(regex) == of(re)
    assert outcome(lambda p, s: repr(getattr(p, name)(s)), regex.compile(pattern), subject) == of(re)


def test_real_matches_on_str() -> None:
    found = regex.search("a(b)", "xab")
    assert type(found) is re.Match
    assert isinstance(found, regex.Match)
    assert isinstance(re.compile("a"), regex.Pattern)
    assert regex.sub("a", "b", "aa", count=1) == "ba"
    assert regex.subn("a", "b", "aa", 1, 0) == re.subn("a", "b", "aa", count=1)
    assert [m.span() for m in regex.finditer(regex.compile("a"), "aa")] == [(0, 1), (1, 2)]
    assert regex.split(",", "a,b", maxsplit=1) == ["a", "b"]
    assert regex.escape("a.b") == re.escape("a.b")
    regex.purge()


def test_match_object(context: Monocontext) -> None:
    pattern = r"(?P<key>\w+)=(?P<value>\w+)(x)?"
    ours = list(regex.finditer(pattern, context))[7]
    real = list(re.finditer(pattern, TEXT))[7]
    assert seen(ours) == seen(real)
    assert ours.string is context
    assert ours.string[ours.start() - 5 : ours.end() + 5] == TEXT[real.start() - 5 : real.end() + 5]
    assert ours.group("key", 2) == real.group("key", 2)
    assert ours["value"] == real["value"]
    assert ours[0] == real[0]
    assert (ours.start(3), ours.end("value"), ours.span("key")) == (-1, real.end("value"), real.span("key"))
    assert ours.groups("none") == real.groups("none")
    assert ours.expand(r"\2-\g<key>\3\n") == real.expand(r"\2-\g<key>\3\n")
    assert bool(ours)
    assert copy.copy(ours) is copy.deepcopy(ours) is ours
    assert ours.re == re.compile(pattern)
    for wrong in (4, -1, "nobody", 1.5, None):
        with pytest.raises(IndexError, match="no such group"):
            ours.group(wrong)
    assert isinstance(ours, regex.Match)
    assert regex.Match[str]


def test_pattern_object(context: Monocontext) -> None:
    ours, real = regex.compile(r"(?P<a>x)|y", re.I), re.compile(r"(?P<a>x)|y", re.I)
    for name in ("pattern", "flags", "groups", "groupindex"):
        assert getattr(ours, name) == getattr(real, name)
    assert repr(ours) == repr(real)
    assert ours == regex.compile(ours) == real
    assert hash(ours) == hash(real)
    assert regex.compile(r"(?P<a>x)|y", re.I) is ours
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert copy.deepcopy(ours) is ours
    with pytest.raises(ValueError, match="cannot process flags"):
        regex.compile(ours, re.I)
    with pytest.raises(ValueError, match="LOCALE"):
        regex.compile("a", re.L)
    with pytest.raises(re.error):
        regex.search("(", context)
    assert regex.search(re.compile("disk"), context).span() == re.search("disk", TEXT).span()


def test_functions_on_a_text(context: Monocontext) -> None:
    assert regex.findall(r"(\w+)=(\w+)", context) == re.findall(r"(\w+)=(\w+)", TEXT)
    assert regex.search("LABEL: (.+)", context, re.I)[1] == "one two"
    assert regex.match("intro", context)
    assert regex.match("label", context) is None
    assert regex.fullmatch("intro", context) is None
    assert regex.split(r"\n\n", context, maxsplit=2) == re.split(r"\n\n", TEXT, maxsplit=2)
    assert regex.split(r"\n\n", context, 2, re.I) == re.split(r"\n\n", TEXT, maxsplit=2)
    assert regex.sub("e", "", context, flags=re.I) == re.sub("e", "", TEXT, flags=re.I)
    assert regex.subn("e", "", context, 3) == re.subn("e", "", TEXT, count=3)
    assert regex.search(pattern="x", string=context) is None
    with pytest.raises(TypeError):
        regex.sub("a", "b", context, 1, count=2)
    with pytest.raises(TypeError):
        regex.sub("a", "b", context, 1, 0, 0)


def test_lazy_pattern_and_replacement(context: Monocontext) -> None:
    with context_of("on.", 1, limit=10, name="regex-lazy") as lazy:
        assert regex.findall(lazy, "one on!") == ["one", "on!"]
        assert regex.findall(lazy, context) == re.findall("on.", TEXT)
        assert regex.sub("one", lazy, "one") == "on."
        assert regex.sub("one", lazy, context) == TEXT.replace("one", "on.")
        assert regex.sub("one", lambda match: lazy, context) == TEXT.replace("one", "on.")
        assert regex.escape(lazy) == re.escape("on.")
    with context_of("a" * 30, 9, limit=10, name="regex-long") as long, pytest.raises(ContextTooLarge):
        regex.search(long, "a")


def test_bytes_pattern(context: Monocontext) -> None:
    for name in ("search", "match", "fullmatch", "findall", "finditer", "split"):
        with pytest.raises(TypeError, match="cannot use a bytes pattern on a string-like object"):
            getattr(regex, name)(b"a", context)
    with pytest.raises(TypeError, match="bytes pattern"):
        regex.sub(b"a", b"b", context)


def test_without_the_private_module(context: Monocontext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "_parser", None)
    regex.purge()
    with context_of(TEXT, 50, name="regex-whole") as whole:
        assert [m.span() for m in regex.finditer(r"\s+", whole)] == [m.span() for m in re.finditer(r"\s+", TEXT)]
    with context_of(TEXT, 50, limit=200, name="regex-small") as small, pytest.raises(ContextTooLarge):
        regex.findall("nowhere", small)
    regex.purge()
