"""Compute `lower()`, `replace()`, `translate()` and similar methods of a large text while the result is read.

A derivation produces pieces of output from a *state*, a character of the base text, and gives the state after each
piece. Reading may begin at any remembered state. One forward pass finds the states, one for each piece of about a
frame. Where the flags of the frames prove that a case mapping keeps every length, the state of a character is that
character, and no pass is needed.

A read costs the same as a read of the same range of the base text. Without that proof, `len` and the first read far
into the result need a pass over the text before it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Protocol

from monocontext.engine.candidates import Candidates
from monocontext.format.filters.query import Query
from monocontext.text.source import OPEN, Span
from monocontext.text.windows import Window, join_texts, overlap

PIECE_CHARACTERS = 1 << 18
"""The characters that are computed at a time."""


class Derivation(Protocol):
    """One way to compute a text. It has no side effects but reads of its base."""

    base: Span
    keeps_length: bool
    """Character i of the result comes from character i of the base."""
    keeps_newlines: bool
    r"""Line i of the result comes from line i of the base."""

    @property
    def map_piece(self) -> Callable[[str, int], str] | None:
        """A function (text, start) that returns the output for any part of the base. None where more than case changes:
        then search filters of the base say nothing about the output (`filters.case_folding`)."""
        ...

    def pieces(self, state: int, stop: int | None = None) -> Iterator[tuple[str, int]]:
        """Pieces of output from a state on, each with the state after it. States increase from 0. With `stop`, only the
        output of base characters before it is needed."""
        ...


class Derived:
    """A text source that computes its characters from a `Derivation`, and remembers the states it has passed."""

    final_newline: bool | None = None

    def __init__(self, derivation: Derivation):
        self._derivation = derivation
        self._lock = threading.Lock()
        # One entry per known piece in each list: its beginning in the result, the newlines before it, and the state
        # from which it is computed.
        self._outputs = [0]
        self._newlines = [0]
        self._states = [0]
        self._complete = False

    @property
    def characters(self) -> int:
        if self._derivation.keeps_length:
            return len(self._derivation.base)
        self._scan(lambda: False)
        return self._outputs[-1]

    def read(self, start: int, stop: int) -> str:
        return "".join(window.data for window in self.windows(start, stop))

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        if stop <= start:
            return
        if only is not None:
            yield from self._windows_in(start, stop, reverse, eager, only)
            return
        if reverse:
            yield from self._reverse_windows(start, stop)
            return
        keeps_length = self._derivation.keeps_length
        output, state = self._state_before(start)
        for text, after in self._derivation.pieces(state, stop if keeps_length and stop < OPEN else None):
            if not keeps_length:
                self._remember(output, text, after)
            if text and output + len(text) > start:
                low, high = max(start - output, 0), min(stop - output, len(text))
                yield Window(output + low, text[low:high])
            output += len(text)
            if output >= stop:
                return

    def candidates(self, query: Query | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        derivation = self._derivation
        if derivation.map_piece is None:
            return None
        if not derivation.keeps_length:  # offsets are unknown, but a base without a match has an output without one
            found = derivation.base.candidates(query, 0, None, within_line)
            return found.moved(derivation.base.start) if found and not found.runs else None
        found = derivation.base.candidates(query, start, stop, within_line)
        return found.moved(derivation.base.start) if found else None

    @property
    def filtered_base(self) -> Span | None:
        """The text whose search filters apply to this one at the same offsets; None if there is none."""
        derivation = self._derivation
        return derivation.base if derivation.map_piece and derivation.keeps_length else None

    def _windows_in(self, start: int, stop: int, reverse: bool, eager: bool, only: Candidates) -> Iterator[Window]:
        base, mapped = self._derivation.base, self._derivation.map_piece
        # Only case mappings have candidates with runs; for other derivations the most that is known is "no match".
        if not only.runs or mapped is None:
            return
        for window in base.windows(start, stop, reverse=reverse, eager=eager, only=only):
            at = window.start - base.start
            yield Window(at, mapped(window.text, at))

    def _reverse_windows(self, start: int, stop: int) -> Iterator[Window]:
        at = stop
        while at > start:
            output = max(self._state_before(at - 1)[0], start)
            if self._derivation.keeps_length:
                output = max(at - PIECE_CHARACTERS, start)
            yield Window(output, self.read(output, at))
            at = output

    def line_start(self, line: int) -> int:
        if self._derivation.keeps_newlines and self._derivation.keeps_length:
            return self._derivation.base.line_start(line)
        if line <= 0:
            return 0
        self._scan(lambda: self._newlines[-1] >= line)
        with self._lock:
            if line > self._newlines[-1]:
                return self._outputs[-1]
            i = bisect_right(self._newlines, line - 1) - 1
            output, before, stop = self._outputs[i], self._newlines[i], self._outputs[i + 1]
        at = -1
        text = self.read(output, stop)
        for _ in range(line - before):
            at = text.index("\n", at + 1)
        return output + at + 1

    def line_of(self, character: int) -> int:
        if self._derivation.keeps_newlines and self._derivation.keeps_length:
            return self._derivation.base.line_of(character)
        self._scan(lambda: self._outputs[-1] > character)
        with self._lock:
            i = bisect_right(self._outputs, character) - 1
            output, before = self._outputs[i], self._newlines[i]
        return before + self.read(output, character).count("\n")

    def _state_before(self, character: int) -> tuple[int, int]:
        """The beginning of the nearest known piece at or before a character, and its state."""
        if self._derivation.keeps_length or not character:
            return character, character
        self._scan(lambda: self._outputs[-1] > character)
        with self._lock:
            i = bisect_right(self._outputs, character) - 1
            return self._outputs[i], self._states[i]

    def _scan(self, reached: Callable[[], bool]) -> None:
        """Compute from the last known state on, until `reached()` or the end."""
        if self._complete or reached():
            return
        output, state = self._outputs[-1], self._states[-1]
        for text, after in self._derivation.pieces(state):
            self._remember(output, text, after)
            output += len(text)
            if reached():
                return
        self._complete = True

    def _remember(self, output: int, text: str, after: int) -> None:
        with self._lock:
            if output == self._outputs[-1] and after > self._states[-1]:
                self._outputs.append(output + len(text))
                self._newlines.append(self._newlines[-1] + text.count("\n"))
                self._states.append(after)


class PerCharacter:
    """A mapping of each character by itself: `upper`, `casefold`, `translate`."""

    def __init__(self, base: Span, mapping: Callable[[str], str], *, is_case: bool = False, keeps_length: bool = False):
        """`is_case`: the mapping changes nothing but case."""
        self.base = base
        self.keeps_length = keeps_length
        self.keeps_newlines = self._is_case = is_case
        self._mapping = mapping

    @property
    def map_piece(self) -> Callable[[str, int], str] | None:
        return (lambda text, start: self._mapping(text)) if self._is_case else None

    def pieces(self, state: int, stop: int | None = None) -> Iterator[tuple[str, int]]:
        for text in self.base.texts(state, stop):
            state += len(text)
            yield self._mapping(text), state


class InContext:
    """A case mapping that depends on neighbouring characters: `lower`, `swapcase`, `title`, `capitalize`.

    Two rules look at neighbours. A capital sigma gets its final form if a cased letter comes before it and none after
    it, where both looks skip case-ignorable characters. `title` checks whether the character before is cased. So a
    piece is mapped together with the deciding neighbours, which are then cut off.
    """

    def __init__(self, base: Span, mapping: Callable[[str], str], keeps_length: bool, capitalize: bool = False):
        self.base = base
        self.keeps_length = keeps_length
        self.keeps_newlines = True
        self._mapping = mapping
        self._capitalize = capitalize

    def pieces(self, state: int, stop: int | None = None) -> Iterator[tuple[str, int]]:
        for text in self.base.texts(state, stop):
            yield self.map_piece(text, state), state + len(text)
            state += len(text)

    def map_piece(self, text: str, start: int) -> str:
        sigma = "\u03a3" in text
        left = self._left_context(start) if sigma or self._mapping is str.title else ""
        right = self._right_context(start + len(text)) if sigma else ""
        whole = self._mapping(left + text + right)
        end = len(self._mapping(left + text)) if right else len(whole)
        mapped = whole[len(self._mapping(left)) : end]
        if self._capitalize and start == 0:
            return text[0].title() + mapped[len(self._mapping(text[0])) :]
        return mapped

    def _left_context(self, start: int) -> str:
        """The characters before `start`, back to the last one that is not case-ignorable."""
        low = start
        while low > 0:
            low = max(low - 64, 0)
            text = self.base.read(low, start)
            for i in range(len(text) - 1, -1, -1):
                if not is_case_ignorable(text[i]):
                    return text[i:]
        return self.base.read(0, start) if start else ""

    def _right_context(self, stop: int) -> str:
        """The characters from `stop` on, up to the first one that is not case-ignorable."""
        end, high = len(self.base), stop
        while high < end:
            high = min(high + 64, end)
            text = self.base.read(stop, high)
            for i, character in enumerate(text):
                if not is_case_ignorable(character):
                    return text[: i + 1]
        return self.base.read(stop, end) if stop < end else ""


def is_case_ignorable(character: str) -> bool:
    """Whether the rule of the final sigma skips a character, tested with `str.lower` itself."""
    is_cased_or_skipped = ("A" + character + "\u03a3").lower().endswith("\u03c2")
    is_cased = (character + "\u03a3").lower().endswith("\u03c2")
    return is_cased_or_skipped and not is_cased


class Replaced:
    """`replace(old, new)`.

    A state is the end of an occurrence, or an offset that no occurrence spans.
    """

    map_piece = None

    def __init__(self, base: Span, old: str, new: str):
        self.base = base
        self.keeps_length = len(old) == len(new) == 1
        self.keeps_newlines = "\n" not in old + new
        self._old, self._new = old, new

    def pieces(self, state: int, stop: int | None = None) -> Iterator[tuple[str, int]]:
        old, new = self._old, self._new
        rest = ""  # a possible beginning of an occurrence
        for text in join_texts(self.base.texts(state, stop), old):
            parts = (rest + text).split(old)
            safe = len(parts[-1]) - overlap(parts[-1], old)
            rest, parts[-1] = parts[-1][safe:], parts[-1][:safe]
            state += sum(map(len, parts)) + len(old) * (len(parts) - 1)
            if len(parts) > 1 or parts[0]:
                yield new.join(parts), state
        if rest:
            yield rest, state + len(rest)


class Tabs:
    """`expandtabs(size)`."""

    keeps_length = False
    keeps_newlines = True
    map_piece = None

    def __init__(self, base: Span, size: int):
        self.base = base
        self._size = size
        self._columns = {0: 0}

    def pieces(self, state: int, stop: int | None = None) -> Iterator[tuple[str, int]]:
        column = self._columns[state]
        for text in self.base.texts(state, stop):
            expanded = (" " * column + text).expandtabs(self._size)[column:]
            line = max(expanded.rfind("\n"), expanded.rfind("\r")) + 1
            column = len(expanded) - line if line else column + len(expanded)
            column = column % self._size if self._size > 0 else 0
            state += len(text)
            self._columns[state] = column
            yield expanded, state
