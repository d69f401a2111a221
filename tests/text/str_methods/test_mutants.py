"""The comparison finds what naive chunking gets wrong: one deliberate bug each, caught within so many seeded cases."""

from __future__ import annotations

import string
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from monocontext.engine.frame import FrameText
from monocontext.text import derived, lines, predicates, rope
from monocontext.text import lazy_lists as splits
from monocontext.text import monocontext as text
from monocontext.text import str_methods as strlike
from monocontext.text import windows as search
from monocontext.text.derived import Derived, InContext, PerCharacter, Replaced, Tabs
from monocontext.text.lazy_lists import LazyList, LineSplit, OffsetSplit
from monocontext.text.rope import Rope
from monocontext.text.source import Stored
from monocontext.text.str_methods import StrLike
from monocontext.text.windows import Window

from .comparison import campaign

COMPARISONS = 3000
"""At most so many for each mutant; most are caught within a few hundred."""

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, tuple[Callable[[Patch], None], list[str]]] = {}
"""How each is made, and the operations that its cases are about."""


def mutant(name: str, operations: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def register(mutate: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[name] = (mutate, operations.split())
        return mutate

    return register


# -- case mapping --------------------------------------------------------------------------------------------------------


@mutant("case mapping piece by piece", "lower swapcase title capitalize")
def _(patch: Patch) -> None:
    patch.setattr(InContext, "map_piece", lambda self, text, start: self._mapping(text))


@mutant("final sigma decided at the end of a piece", "lower swapcase title capitalize")
def _(patch: Patch) -> None:
    patch.setattr(InContext, "_right_context", lambda self, stop: "")


@mutant("title begins anew with each piece", "title")
def _(patch: Patch) -> None:
    patch.setattr(InContext, "_left_context", lambda self, start: "")


@mutant("final sigma looks at one character only", "lower swapcase capitalize")
def _(patch: Patch) -> None:
    patch.setattr(derived, "is_case_ignorable", lambda character: False)


@mutant("capitalize goes on after the first piece", "capitalize")
def _(patch: Patch) -> None:
    real = InContext.map_piece
    patch.setattr(InContext, "map_piece", lambda self, text, start: real(self, text, 0 if self._capitalize else start))


@mutant("case mappings keep the length", "upper casefold swapcase lower")
def _(patch: Patch) -> None:
    patch.setattr(StrLike, "_all_have", lambda self, flag: True)


@mutant("translate keeps the length", "translate")
def _(patch: Patch) -> None:
    real = PerCharacter.__init__

    def change_init(self: Any, base: Any, mapping: Any, keeps_length: bool, keeps_newlines: bool) -> None:
        real(self, base, mapping, True, keeps_newlines)

    patch.setattr(PerCharacter, "__init__", change_init)


@mutant("newlines of a derived text are those of its base", "replace translate count")
def _(patch: Patch) -> None:
    def line_of(self: Any, character: int) -> int:
        base = self._derivation.base
        return int(base.source.line_of(base.start + min(character, len(base))) - base.lines_before)

    patch.setattr(Derived, "line_of", line_of)


# -- line ends and splits ------------------------------------------------------------------------------------------------


def in_blocks(split: Callable[..., Iterator[str]]) -> Callable[..., Iterator[tuple[list[str], int]]]:
    """A split that gives items, as one that gives blocks of them."""

    def blocks(texts: Iterable[str], *arguments: Any) -> Iterator[tuple[list[str], int]]:
        pieces = list(texts)
        yield list(split(pieces, *arguments)), sum(map(len, pieces))

    return blocks


@mutant("lines cut at each piece", "splitlines")
def _(patch: Patch) -> None:
    def cut(texts: Iterable[str], keepends: bool) -> Iterator[str]:
        for piece in texts:
            yield from piece.splitlines(keepends)

    patch.setattr(splits, "split_lines", in_blocks(cut))


@mutant("CR LF cut in two", "splitlines")
def _(patch: Patch) -> None:
    def cut(texts: Iterable[str], keepends: bool) -> Iterator[str]:
        rest = ""
        for piece in texts:
            *whole, rest = (rest + piece).splitlines(True) or [""]
            yield from whole if keepends else (line.splitlines()[0] for line in whole)
            if rest.endswith("\r"):
                yield rest if keepends else rest[:-1]
                rest = ""
        yield from rest.splitlines(keepends)

    patch.setattr(splits, "split_lines", in_blocks(cut))


@mutant("splitlines gives a last empty line", "splitlines")
def _(patch: Patch) -> None:
    real = splits.split_lines

    def with_last(texts: Iterable[str], keepends: bool) -> Iterator[str]:
        last = "\n"
        for line in (line for items, _ in real(texts, True) for line in items):
            last = line
            yield line if keepends else line.splitlines()[0]
        if last.splitlines()[0] != last:
            yield ""

    patch.setattr(splits, "split_lines", in_blocks(with_last))


@mutant("split('\\n') by splitlines", "split")
def _(patch: Patch) -> None:
    real = strlike.split_on
    patch.setattr(
        strlike,
        "split_on",
        lambda span, sep: strlike.split_at_line_ends(span, False) if sep == "\n" else real(span, sep),
    )


@mutant("splitlines by split('\\n')", "splitlines")
def _(patch: Patch) -> None:
    patch.setattr(strlike, "split_at_line_ends", lambda span, keepends: LineSplit(span))


@mutant("separator across an edge missed by split", "split")
def _(patch: Patch) -> None:
    def cut(texts: Iterable[str], separator: str) -> Iterator[str]:
        rest = ""
        for piece in texts:
            if separator not in piece:
                rest += piece
                continue
            *items, rest = (rest + piece).split(separator)
            yield from items
        yield rest

    patch.setattr(splits, "split_text", in_blocks(cut))


@mutant("the last empty item of split lost", "split")
def _(patch: Patch) -> None:
    real = splits.split_text

    def cut(texts: Iterable[str], separator: str) -> Iterator[str]:
        items = [item for items, _ in real(texts, separator) for item in items]
        return iter(items[:-1] if items[-1] == "" else items)

    patch.setattr(splits, "split_text", in_blocks(cut))


@mutant("words joined over an edge", "split rsplit")
def _(patch: Patch) -> None:
    def words(texts: Iterable[str]) -> Iterator[str]:
        rest = ""
        for piece in texts:
            *found, rest = (rest + piece).split() or [""]
            yield from found
        if rest:
            yield rest

    patch.setattr(splits, "split_words", in_blocks(words))


@mutant("words at ASCII spaces", "split")
def _(patch: Patch) -> None:
    def words(texts: Iterable[str]) -> Iterator[str]:
        spaces = str.maketrans(dict.fromkeys(string.whitespace, " "))
        return (word for word in "".join(texts).translate(spaces).split(" ") if word)

    patch.setattr(splits, "split_words", in_blocks(words))


@mutant("rsplit cuts where split does", "rsplit")
def _(patch: Patch) -> None:
    patch.setattr(search, "has_border", lambda needle: False)


@mutant("rsplit with a count takes the first cuts", "rsplit")
def _(patch: Patch) -> None:
    def cuts(span: Any, separator: str, most: int) -> list[int]:
        found = [at - span.start for at in search.occurrences(span.windows(), separator)]
        return found if most < 0 else found[:most]

    patch.setattr(strlike, "cuts_from_right", cuts)


@mutant("split with a count takes one cut more", "split")
def _(patch: Patch) -> None:
    real = StrLike._split_first
    patch.setattr(StrLike, "_split_first", lambda self, sep, most: real(self, sep, most + 1))


@mutant("negative ends of a lazy list clipped to 0", "split splitlines")
def _(patch: Patch) -> None:
    def sliced(self: Any, key: slice) -> list[str]:
        start, stop = (bound if bound is None else max(bound, 0) for bound in (key.start, key.stop))
        return list(self)[start : stop : key.step]

    patch.setattr(LazyList, "_slice", sliced)


@mutant("a negative index of a lazy list is one off", "split")
def _(patch: Patch) -> None:
    real = LazyList.__getitem__

    def item(self: Any, key: Any) -> Any:
        return real(self, key + 1 if isinstance(key, int) and key < -1 else key)

    patch.setattr(LazyList, "__getitem__", item)


@mutant("an item of split('\\n') keeps its end", "split")
def _(patch: Patch) -> None:
    real = LineSplit._item
    patch.setattr(LineSplit, "_item", lambda self, at: real(self, at) + "\n" * (0 <= at < len(self) - 1))


@mutant("cuts of rsplit as wide as one character", "rsplit")
def _(patch: Patch) -> None:
    real = OffsetSplit.__init__
    patch.setattr(OffsetSplit, "__init__", lambda self, span, cuts, width: real(self, span, cuts, 1))


@mutant("a remembered place of a lazy list is one item off", "split")
def _(patch: Patch) -> None:
    real = LazyList._remember
    patch.setattr(LazyList, "_remember", lambda self, item, place: real(self, item + 1, place))


# -- search --------------------------------------------------------------------------------------------------------------


@mutant("find without overlap", "find index __contains__ partition")
def _(patch: Patch) -> None:
    def find(windows: Iterable[Window], needle: str) -> int:
        for window in windows:
            at = window.data.find(search._as_units(needle, window))
            if at >= 0:
                return window.character(at)
        return -1

    patch.setattr(search, "find", find)


@mutant("rfind without overlap", "rfind rindex")
def _(patch: Patch) -> None:
    def rfind(windows: Iterable[Window], needle: str) -> int:
        for window in windows:
            at = window.data.rfind(search._as_units(needle, window))
            if at >= 0:
                return window.character(at)
        return -1

    patch.setattr(search, "rfind", rfind)


@mutant("rfind by the last of the forward scan", "rfind rpartition")
def _(patch: Patch) -> None:
    def rfind(windows: Iterable[Window], needle: str) -> int:
        return max(search.occurrences(reversed(list(windows)), needle), default=-1)

    patch.setattr(search, "rfind", rfind)


@mutant("count of a needle that overlaps itself in parallel", "count")
def _(patch: Patch) -> None:
    patch.setattr(search, "has_border", lambda needle: False)


@mutant("count of occurrences that overlap", "count")
def _(patch: Patch) -> None:
    def count(windows: Iterable[Window], needle: str) -> int:
        whole = "".join(window.text for window in windows)
        return sum(whole.startswith(needle, at) for at in range(len(whole)))

    patch.setattr(search, "count", count)


@mutant("occurrences over an edge missed", "split replace")
def _(patch: Patch) -> None:
    def occurrences(windows: Iterable[Window], needle: str) -> Iterator[int]:
        for window in windows:
            units = search._as_units(needle, window)
            at = window.data.find(units)
            while at >= 0:
                yield window.character(at)
                at = window.data.find(units, at + len(units))

    patch.setattr(search, "occurrences", occurrences)


@mutant("an occurrence over an edge counted twice", "count")
def _(patch: Patch) -> None:
    def count(windows: Iterable[Window], needle: str) -> int:
        total, carry = 0, ""
        for window in windows:
            total += (carry + window.text).count(needle)
            carry = window.text[-len(needle) :]
        return total

    patch.setattr(search, "count", count)


@mutant("find from beyond the end finds the empty string", "find rfind count startswith")
def _(patch: Patch) -> None:
    def bounds(self: Any, start: Any, end: Any, size: int) -> Any:
        low, high, _ = slice(start, end).indices(len(self))
        return None if size > max(high - low, 0) else (low, high)

    patch.setattr(StrLike, "_bounds", bounds)


@mutant("a negative start counts from the beginning", "find count")
def _(patch: Patch) -> None:
    real = StrLike._bounds

    def bounds(self: Any, start: Any, end: Any, size: int) -> Any:
        return real(self, max(start, 0) if type(start) is int else start, end, size)

    patch.setattr(StrLike, "_bounds", bounds)


@mutant("rfind of the empty string at the start", "rfind")
def _(patch: Patch) -> None:
    real = StrLike._find

    def find(self: Any, sub: str, start: Any, end: Any, reverse: bool = False) -> int:
        return real(self, sub, start, end, reverse and bool(sub))

    patch.setattr(StrLike, "_find", find)


@mutant("an end before the affix", "endswith startswith")
def _(patch: Patch) -> None:
    def ends_in(self: Any, name: str, affix: str, start: Any, end: Any) -> bool:
        low, high, _ = slice(start, end).indices(len(self))
        at = low if name == "startswith" else max(high - len(affix), 0)
        return bool(self.span.read(at, min(at + len(affix), len(self))) == affix)

    patch.setattr(StrLike, "_has_one_affix", ends_in)


@mutant("replace misses what lies over an edge", "replace")
def _(patch: Patch) -> None:
    patch.setattr(derived, "overlap", lambda text, needle: 0)


@mutant("replace with a count goes one further", "replace")
def _(patch: Patch) -> None:
    real = StrLike._replaced_end
    patch.setattr(StrLike, "_replaced_end", lambda self, old, most: real(self, old, most + 1))


@mutant("replace with an empty needle leaves the end out", "replace")
def _(patch: Patch) -> None:
    real = rope.literal
    patch.setattr(rope, "literal", lambda text: real(text[:0]) if len(text) < 4 else real(text))


@mutant("length of a replaced text taken for that of its base", "replace")
def _(patch: Patch) -> None:
    real = Replaced.__init__

    def change_init(self: Any, base: Any, old: str, new: str) -> None:
        real(self, base, old, new)
        self.keeps_length = True

    patch.setattr(Replaced, "__init__", change_init)


@mutant("tabs counted from each piece", "expandtabs")
def _(patch: Patch) -> None:
    def pieces(self: Any, state: int, stop: int | None = None) -> Iterator[tuple[str, int]]:
        for piece in self.base.texts(state, stop):
            state += len(piece)
            yield piece.expandtabs(self._size), state

    patch.setattr(Tabs, "pieces", pieces)


# -- slices and offsets --------------------------------------------------------------------------------------------------


@mutant("a negative step taken forward", "__getitem__")
def _(patch: Patch) -> None:
    real = text._pick_characters

    def stepped(windows: Any, positions: range, base: int) -> str:
        return real(windows, positions, base)[::-1] if positions.step < -1 else real(windows, positions, base)

    patch.setattr(text, "_pick_characters", stepped)


@mutant("a step that begins anew with each frame", "__getitem__")
def _(patch: Patch) -> None:
    def stepped(windows: Iterable[Window], positions: range, base: int) -> str:
        return "".join(window.text[:: positions.step] for window in windows)

    patch.setattr(text, "_pick_characters", stepped)


@mutant("bytes taken for characters in what was found", "find")
def _(patch: Patch) -> None:
    patch.setattr(Window, "character", lambda self, position: self.start + position)


@mutant("characters taken for bytes in a frame", "__getitem__ __iter__ find")
def _(patch: Patch) -> None:
    patch.setattr(FrameText, "to_byte", lambda self, character: character)


@mutant("bytes taken for characters in a frame", "find rfind")
def _(patch: Patch) -> None:
    patch.setattr(FrameText, "to_character", lambda self, byte: byte)


@mutant("a view reads the rest of its frame", "__getitem__ find")
def _(patch: Patch) -> None:
    patch.setattr(Stored, "windows", _whole_frames)


def _whole_frames(self: Any, start: int, stop: int, *, reverse: bool = False, eager: bool = False) -> Iterator[Window]:
    for frame in self.reader.frames(start, stop, reverse=reverse, eager=eager):
        yield Window(frame.frame.start, frame.data, frame)


@mutant("the frame at hand is not cut to the view", "__getitem__")
def _(patch: Patch) -> None:
    patch.setattr(text, "_clip_frame", lambda low, high, size, data: (max(low, 0), high, data))


@mutant("windows of a rope begin at 0", "__add__ find")
def _(patch: Patch) -> None:
    def windows(self: Any, start: int, stop: int, **options: Any) -> Iterator[Window]:
        found = list(self._between(start, stop))
        for _, part, low, high in reversed(found) if options.get("reverse") else found:
            for window in part.windows(low, high, **options):
                yield Window(window.start - part.start, window.text)

    patch.setattr(Rope, "windows", windows)


@mutant("a piece of a derived text begins at the one before", "upper replace __getitem__")
def _(patch: Patch) -> None:
    def before(self: Any, character: int) -> tuple[int, int]:
        if self._derivation.keeps_length or not character:
            return character, character
        self._scan(lambda: self._outputs[-1] > character)
        i = max(bisect_right(self._outputs, character) - 1, 0)
        return self._outputs[i], self._states[max(i - 1, 0)]

    patch.setattr(Derived, "_state_before", before)


@mutant("lines backwards lose a piece", "__getitem__ lower")
def _(patch: Patch) -> None:
    def backwards(texts: Iterable[str]) -> Iterator[str]:
        for piece in texts:
            yield from reversed(piece.splitlines(keepends=True))

    patch.setattr(lines, "_lines_forward", lambda texts: (line for piece in texts for line in piece.splitlines(True)))
    patch.setattr(lines, "_lines_backward", backwards)


# -- characters, comparison ----------------------------------------------------------------------------------------------


@mutant("strip of ASCII spaces", "strip lstrip rstrip split")
def _(patch: Patch) -> None:
    real = StrLike._strip

    def stripped(self: Any, name: str, chars: object, left: bool, right: bool) -> Any:
        return real(self, name, string.whitespace if chars is None else chars, left, right)

    patch.setattr(StrLike, "_strip", stripped)


@mutant("strip looks at one piece only", "strip lstrip")
def _(patch: Patch) -> None:
    def first_kept(self: Any, start: int, stop: int, chars: str | None) -> int:
        for piece in self.span.texts(start, stop):
            return int(start + len(piece) - len(piece.lstrip(chars)))
        return stop

    patch.setattr(StrLike, "_lstrip_stop", first_kept)


@mutant("istitle begins anew with each piece", "istitle")
def _(patch: Patch) -> None:
    patch.setattr(predicates, "is_title", lambda texts: predicates.all_of(str.istitle, texts))


@mutant("islower of each piece", "islower")
def _(patch: Patch) -> None:
    patch.setattr(predicates, "is_lower", lambda texts: predicates.all_of(str.islower, texts))


@mutant("isidentifier of each piece", "isidentifier")
def _(patch: Patch) -> None:
    patch.setattr(predicates, "is_identifier", lambda texts: predicates.all_of(str.isidentifier, texts))


@mutant("all of nothing", "isalpha isdigit isspace")
def _(patch: Patch) -> None:
    patch.setattr(predicates, "all_of", lambda test, texts: all(map(test, texts)))


@mutant("a shorter text equals its continuation", "__eq__ __lt__ __le__")
def _(patch: Patch) -> None:
    def compare(self: Any, other: Any) -> int:
        for mine, theirs in zip("".join(self), "".join(strlike._span_of(other).texts()), strict=False):
            if mine != theirs:
                return -1 if mine < theirs else 1
        return 0

    patch.setattr(StrLike, "_compare", compare)


@mutant("order by bytes as if they were UTF-16", "__lt__ __ge__")
def _(patch: Patch) -> None:
    def compare(self: Any, other: Any) -> int:
        mine, theirs = (
            "".join(one).encode("utf-16-be", "surrogatepass") for one in (self, strlike._span_of(other).texts())
        )
        return (mine > theirs) - (mine < theirs)

    patch.setattr(StrLike, "_compare", compare)


@mutant("zeros before the sign", "zfill")
def _(patch: Patch) -> None:
    patch.setattr(StrLike, "zfill", lambda self, width: self.rjust(width, "0"))


@mutant("the odd one of center on the other side", "center")
def _(patch: Patch) -> None:
    def center(self: Any, width: Any, fillchar: str = " ", /) -> Any:
        left = self._padding_width(width, fillchar)
        return self._pad(left // 2, left - left // 2, fillchar)

    patch.setattr(StrLike, "center", center)


@mutant("a precision cuts bytes", "__format__")
def _(patch: Patch) -> None:
    def cut_for(self: Any, spec: str) -> str | None:
        _, point, digits = spec.rstrip("s").rpartition(".")
        if not point or not digits.isdecimal():
            return None
        return str("".join(self).encode("utf-8", "replace")[: int(digits)], "utf-8", "replace")

    patch.setattr(StrLike, "_read_for_format", cut_for)


def test_nothing_is_wrong_without_a_mutant() -> None:
    assert not campaign(seed=7, compared=1500).wrong


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, operations = MUTANTS[name]
    mutate(monkeypatch)
    counts = campaign(seed=7, compared=COMPARISONS, names=operations)
    assert counts.wrong, counts
    print(f"caught after {counts.compared} comparisons: {counts.wrong[0]}")
