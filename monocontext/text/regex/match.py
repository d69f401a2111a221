"""`Match`: the `re.Match` of a match in a lazy text."""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from monocontext.text.str_methods import StrLike


class CompiledPattern(Protocol):
    """The part of `Pattern` that its matches use."""

    @property
    def groups(self) -> int: ...

    @property
    def groupindex(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class Subject:
    """The arguments of one call, which all of its matches share."""

    pattern: CompiledPattern
    text: StrLike
    pos: int
    endpos: int
    sees_outside: bool
    """Whether groups may be outside the match."""


class Match(metaclass=ABCMeta):
    """A match in a `Monocontext`. Offsets are those of the whole text. `string` is the text itself, still lazy.

    Groups are real strings, copied when the match is made, so they cost no GET and keep no window in memory. For
    `isinstance`, a match of the real `re` is an instance too.
    """

    __slots__ = ("_base", "_piece", "_spans", "_subject", "lastindex")

    _subject: Subject
    _base: int
    """The character of the text at which the window of the match begins."""
    _spans: tuple[tuple[int, int], ...]
    """The spans of the match and its groups in that window, and at the end those of the marker group, if there is
    one."""
    _piece: str
    """The text of the match and of groups outside it."""
    lastindex: int | None

    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self) -> None:
        raise TypeError("cannot create 're.Match' instances")

    @property
    def re(self) -> Any:
        return self._subject.pattern

    @property
    def string(self) -> StrLike:
        return self._subject.text

    @property
    def pos(self) -> int:
        return self._subject.pos

    @property
    def endpos(self) -> int:
        return self._subject.endpos

    def _number(self, group: Any) -> int:
        number: int
        if isinstance(group, str):
            number = self.re.groupindex.get(group, -1)
        else:
            try:
                number = group.__index__()
            except AttributeError:
                number = -1
        if not 0 <= number <= self.re.groups:
            raise IndexError("no such group")
        return number

    def _text(self, number: int, default: Any = None) -> Any:
        spans = self._spans
        start, stop = spans[number]
        if start < 0:
            return default
        first = _group_range(spans, self.re.groups)[0] if self._subject.sees_outside else spans[0][0]
        return self._piece[start - first : stop - first]

    def group(self, *groups: Any) -> Any:
        """The text of a group, or None; of several groups, a tuple. Without arguments, or with 0, the whole match."""
        if not groups:
            return self._text(0)
        if len(groups) == 1:
            return self._text(self._number(groups[0]))
        return tuple(self._text(self._number(group)) for group in groups)

    def __getitem__(self, group: Any) -> Any:
        return self._text(self._number(group))

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        return tuple(self._text(number, default) for number in range(1, self.re.groups + 1))

    def groupdict(self, default: Any = None) -> dict[str, Any]:
        return {name: self._text(number, default) for name, number in self.re.groupindex.items()}

    def start(self, group: Any = 0, /) -> int:
        return self.span(group)[0]

    def end(self, group: Any = 0, /) -> int:
        return self.span(group)[1]

    def span(self, group: Any = 0, /) -> tuple[int, int]:
        start, stop = self._spans[self._number(group)]
        return (start, stop) if start < 0 else (start + self._base, stop + self._base)

    @property
    def regs(self) -> tuple[tuple[int, int], ...]:
        return tuple(self.span(number) for number in range(self.re.groups + 1))

    @property
    def lastgroup(self) -> str | None:
        if self.lastindex is None:
            return None
        return next((name for name, number in self.re.groupindex.items() if number == self.lastindex), None)

    def expand(self, template: str) -> str:
        """Fill the groups of this match into the template, as `sub` does."""
        return self._fill(self.re._template(template))

    def _fill(self, parts: list[str | int]) -> str:
        return "".join([part if isinstance(part, str) else self._text(part, "") for part in parts])

    def __copy__(self) -> Match:
        return self

    def __deepcopy__(self, memo: object) -> Match:
        return self

    def __repr__(self) -> str:
        return f"<re.Match object; span={self.span()}, match={repr(self.group())[:50]}>"


def make_match(found: re.Match[str], base: int, subject: Subject) -> Match:
    """The `Match` of a match in a window that begins at character `base`."""
    match = _new(Match)
    match._subject = subject
    match._base = base
    match._spans = spans = found.regs
    match.lastindex = found.lastindex
    if subject.sees_outside:
        start, stop = _group_range(spans, subject.pattern.groups)
        match._piece = found.string[start:stop]
    else:
        start, stop = spans[0]
        match._piece = found[0]
    subject.text.span.log_received(base + start, base + stop)
    return match


def _group_range(spans: tuple[tuple[int, int], ...], groups: int) -> tuple[int, int]:
    """The range of the window that covers the match and all groups."""
    matched = [span for span in spans[: groups + 1] if span[0] >= 0]
    return min(span[0] for span in matched), max(span[1] for span in matched)


_new = object.__new__
Match.register(re.Match)
