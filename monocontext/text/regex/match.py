"""`Match`: the `re.Match` of a match in a lazy text."""

from __future__ import annotations

import re
from abc import ABCMeta
from operator import attrgetter
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from monocontext.records import dataclass
from monocontext.text.lazy_kinds import Unchanging

if TYPE_CHECKING:
    from monocontext.text.source import Span
    from monocontext.text.str_methods import StrLike


@dataclass(frozen=True, slots=True)
class Subject:
    """The arguments of one call of `search` or the like, which its matches share."""

    pattern: Any
    """The `Pattern`."""
    text: StrLike
    span: Span
    """The span of `text`, kept here since each access to `text.span` makes a new one."""
    pos: int
    endpos: int


class Match(Unchanging, metaclass=ABCMeta):
    """A match in a `Monocontext`. Offsets are those of the whole text. `string` is the text itself, still lazy.

    Groups are real strings, copied when the match is made, so they cost no GET and keep no window in memory. For
    `isinstance`, a match of the real `re` is an instance too.
    """

    __slots__ = ("_base", "_piece", "_piece_start", "_subject", "_window_spans", "lastindex")
    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self, real: re.Match[str], base: int, subject: Subject):
        """`real`: the match in a window that begins at character `base` of the text."""
        self._subject, self._base = subject, base
        self.lastindex = real.lastindex
        spans = self._window_spans = real.regs
        """The match and its groups in the window; (-1, -1) for a group that took no part."""
        first, last = spans[0]
        for start, stop in spans[1:]:  # a group in a look-around may be outside the match
            if start >= 0:
                first, last = min(first, start), max(last, stop)
        self._piece, self._piece_start = real.string[first:last], first
        """The text of the match and its groups, and where it begins in the window."""
        subject.span.log_received(base + spans[0][0], base + spans[0][1])

    re = property(attrgetter("_subject.pattern"))
    string = property(attrgetter("_subject.text"))
    pos = property(attrgetter("_subject.pos"))
    endpos = property(attrgetter("_subject.endpos"))

    @property
    def regs(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(self.span, range(len(self._window_spans))))

    def _number(self, group: Any) -> int:
        """The number of a group, given its number or name. Raises `IndexError`."""
        number = self.re.groupindex.get(group, -1) if isinstance(group, str) else group
        if not hasattr(number, "__index__") or not 0 <= number.__index__() < len(self._window_spans):
            raise IndexError("no such group")
        return int(number.__index__())

    def _text(self, number: int, default: Any = None) -> Any:
        start, stop = self._window_spans[number]
        return default if start < 0 else self._piece[start - self._piece_start : stop - self._piece_start]

    def group(self, *groups: Any) -> Any:
        """The text of a group, or None if it took no part; for several groups, a tuple. By default the whole match."""
        if len(groups) > 1:
            return tuple(self._text(self._number(group)) for group in groups)
        return self._text(self._number(groups[0]) if groups else 0)

    def __getitem__(self, group: Any) -> Any:
        return self._text(self._number(group))

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        return tuple(self._text(number, default) for number in range(1, len(self._window_spans)))

    def groupdict(self, default: Any = None) -> dict[str, Any]:
        return {name: self._text(number, default) for name, number in self.re.groupindex.items()}

    def start(self, group: Any = 0, /) -> int:
        return self.span(group)[0]

    def end(self, group: Any = 0, /) -> int:
        return self.span(group)[1]

    def span(self, group: Any = 0, /) -> tuple[int, int]:
        start, stop = self._window_spans[self._number(group)]
        return (self._base + start, self._base + stop) if start >= 0 else (-1, -1)

    @property
    def lastgroup(self) -> str | None:
        names = (name for name, number in self.re.groupindex.items() if number == self.lastindex)
        return next(names, None)

    def expand(self, template: str) -> str:
        """Fill the groups of this match into the template, as `sub` does."""
        # A real match with the same groups does it. It matches `whole`, and each group in a look-ahead after it.
        whole, *groups = self.group(), *self.groups()
        names = {number: f"?P<{name}>" for name, number in self.re.groupindex.items()}
        bodies = ["(?!)" if text is None else f".{{{len(text)}}}" for text in groups]
        probe = "".join(f"({names.get(number, '')}{body})?" for number, body in enumerate(bodies, 1))
        match = re.match(f"(?s).{{{len(whole)}}}(?={probe})", whole + "".join(filter(None, groups)))
        assert match is not None
        return match.expand(template)

    def __repr__(self) -> str:
        return f"<re.Match object; span={self.span()}, match={repr(self.group())[:50]}>"


Match.register(re.Match)
