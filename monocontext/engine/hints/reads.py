"""Record the reads of operations on the context: slices, lines, searches, passes.

Each function records the reads of one operation, and returns its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from monocontext.engine.hints.hint import Hint, Lines, Needle, Pattern, Ranges, Reach, Whole
from monocontext.engine.hints.values import UNKNOWN, LineList, Loaded, PatternValue, Pieces, TextValue

LAZY_CHARACTERS = 64 << 20
"""A slice above this is a view, read only as far as it is used."""
_MATCH_CHARACTERS = 1 << 16
"""The characters at which `re.match` is assumed to look."""
_NEEDLE_CHARACTERS = 4096
"""The most characters of a needle that a hint keeps: a longer needle narrows a search no further."""
_CHUNK_CHARACTERS = 100_000
"""Default size of a chunk of `context.chunks()`, in characters."""
_MOST_RECORDED = 4096
"""The most hints of one block, before progressions are made of them."""
_IGNORE_CASE = 2
"""`re.I`."""

# Methods of a text, by what they return: a place, something else about a literal, a text of equal or of similar length.
_FINDS = frozenset({"find", "index", "rfind", "rindex"})
_SEARCHES = _FINDS | {"count", "split"}
_FOLDS = frozenset({"lower", "upper", "casefold"})
_NEAR = frozenset({"strip", "lstrip", "rstrip", "replace"})
REGEX = frozenset({"search", "match", "fullmatch", "findall", "finditer", "split", "sub"})


class Spent(Exception):
    """A block has used up its work. The hints found until then are kept."""


@dataclass(slots=True)
class Trace:
    """The hints of a program that is followed, in the order of execution, and the work that it may still take."""

    characters: int
    """Length of the context, in characters."""
    lines: int | None
    """Lines of the context; None if unknown."""
    work: int
    """The number of nodes of the program that may still be evaluated."""
    hints: list[Hint] = field(default_factory=list)
    doubt: int = 0
    """The number of conditions around the current statement whose outcome is unknown."""
    loops: int = 0
    """The number of loops around it: a search for one match may continue from there in the next round."""
    rounds: int = 0
    """The number of rounds of the innermost loop if only a failed search ends it early; else 0."""
    ends_early: bool = False
    """Whether the evaluated value may be consumed in part: by a loop that may end early, by `next` or the like."""
    may_leave: bool = False
    """Whether it is consumed by a loop that may be left, or whose end is not written yet."""

    def spend(self, nodes: int = 1) -> None:
        """Use up work. Raises `Spent` when there is none left."""
        self.work -= nodes
        if self.work < 0:
            raise Spent

    @contextmanager
    def taken_in_part(self, ends_early: bool, may_leave: bool = False) -> Iterator[None]:
        """Inside, the evaluated value may be consumed only in part."""
        outer = self.ends_early, self.may_leave
        self.ends_early, self.may_leave = self.ends_early or ends_early, may_leave
        try:
            yield
        finally:
            self.ends_early, self.may_leave = outer

    def record(self, hint: Hint) -> None:
        """Add a hint, made less certain by the loops and conditions around it."""
        if len(self.hints) >= _MOST_RECORDED:
            raise Spent
        if isinstance(hint, Ranges):
            hint = replace(hint, is_literal=False) if self.doubt and hint.is_literal else hint
        elif not isinstance(hint, Lines):
            if (self.ends_early and hint.reach == "all") or (self.loops > 0 and hint.reach == "first"):
                hint = replace(hint, reach="some")
            if self.rounds and isinstance(hint, Needle) and hint.reach == "unplaced":  # continues after the last match
                hint = replace(hint, reach="some", hits=self.rounds)
        self.hints.append(hint)

    def record_range(self, start: int, stop: int, *, is_exact: bool = True) -> None:
        """Add a slice of the context, in characters, unless it is empty."""
        start, stop = max(start, 0), min(stop, self.characters)
        if start < stop:
            self.record(Ranges(start, stop - start, stop - start, 1, is_literal=is_exact))

    def take(self, mark: int) -> list[Hint]:
        """Remove the hints after the first `mark` from the trace, and return them."""
        taken = self.hints[mark:]
        del self.hints[mark:]
        return taken

    def is_all(self, text: TextValue) -> bool:
        """Whether a text is the whole context."""
        return text.start == 0 and text.stop == self.characters


def whole(trace: Trace, text: TextValue, *, backward: bool = False) -> None:
    """A pass over a text in order."""
    if trace.is_all(text):
        trace.record(Whole(backward))
    else:
        trace.record_range(text.start, text.stop, is_exact=text.is_exact)


def text_slice(trace: Trace, text: TextValue, bounds: slice) -> object:
    """The value of `text[a:b:c]`, with known bounds."""
    start, stop, step = bounds.indices(text.stop - text.start)
    count = len(range(start, stop, step))
    if not count:
        return Loaded(0)
    low, high = sorted((start, start + (count - 1) * step))
    if step == 1 and count > LAZY_CHARACTERS:
        return TextValue(text.start + low, text.start + high + 1, text.folded, text.is_exact)
    if high - low >= LAZY_CHARACTERS:
        trace.record(Whole(backward=step < 0))
    else:
        trace.record_range(text.start + low, text.start + high + 1, is_exact=text.is_exact)
    return Loaded(count)


def text_method(trace: Trace, text: TextValue, name: str, arguments: Sequence[object]) -> object:
    """The value of a method of a text."""
    if name in _SEARCHES and arguments and not (name == "split" and arguments[0] == "\n"):
        _search(trace, text, name, arguments)
    if name in _FOLDS:
        return replace(text, folded=True)
    if name in _NEAR:
        return replace(text, is_exact=False)
    match name, arguments:
        case "split", ["\n", *_]:  # the index has the number of lines of a long text
            return LineList(text, counted=text.stop - text.start > LAZY_CHARACTERS)
        case "split", _:
            return Pieces(text)
        case "splitlines", _:
            return LineList(text, counted=False)
        case "chunks", [] | [int()]:
            return _chunks(trace, text, arguments[0] if arguments else _CHUNK_CHARACTERS)
        case "grep", [str() as pattern, *_]:
            trace.record(Pattern(pattern, 0, text.start, text.stop))
        case "grep", [PatternValue() as compiled, *_]:
            trace.record(Pattern(compiled.pattern, compiled.flags, text.start, text.stop))
    return UNKNOWN


def _chunks(trace: Trace, text: TextValue, size: object) -> object:
    if not isinstance(size, int) or size < 1:
        return UNKNOWN
    count, rest = divmod(text.stop - text.start, size)
    if count:
        trace.record(Ranges(text.start, size, size, count, is_literal=False))
    if rest:
        trace.record(Ranges(text.stop - rest, rest, rest, 1, is_literal=False))
    return UNKNOWN


def contains(trace: Trace, text: TextValue, needle: object) -> object:
    """The value of `needle in text`."""
    _search(trace, text, "in", [needle])
    return UNKNOWN


def _search(trace: Trace, text: TextValue, name: str, arguments: Sequence[object]) -> None:
    reach: Reach = "first" if name in _FINDS or name == "in" else "all"
    needle, *bounds = arguments
    start, stop = text.start, text.stop
    if name in _FINDS or name == "count":
        start, stop = _bounds(text, bounds)
        begins = bounds[1:2] if name[0] == "r" else bounds[:1]
        reach = "unplaced" if any(bound is not None and type(bound) is not int for bound in begins) else reach
    if isinstance(needle, str) and 0 < len(needle) <= stop - start:
        trace.record(Needle(needle[:_NEEDLE_CHARACTERS], text.folded, name[0] == "r", start, stop, reach))


def _bounds(text: TextValue, bounds: Sequence[object]) -> tuple[int, int]:
    """The range in which a method with these bounds looks; a bound that depends on data counts as absent."""
    start, stop = (bound if type(bound) is int else None for bound in (*bounds, None, None)[:2])
    low, high, _ = slice(start, stop).indices(text.stop - text.start)
    return text.start + low, text.start + max(low, high)


def line_slice(trace: Trace, lines: LineList, bounds: slice) -> object:
    """The value of `lines[a:b]`, with known bounds."""
    total = trace.lines if trace.is_all(lines.text) else None
    step = 1 if bounds.step is None else bounds.step
    if bounds.start is None and bounds.stop is None:
        whole(trace, lines.text, backward=step < 0)
        return UNKNOWN
    if total is None or step < 1:
        return UNKNOWN
    start, stop, step = bounds.indices(total)
    if start < stop:
        trace.record(Lines(start, stop))
    return UNKNOWN


def line_count(trace: Trace, lines: LineList) -> object:
    """The value of `len(lines)`."""
    if not lines.counted:
        whole(trace, lines.text)
    return trace.lines if trace.is_all(lines.text) and trace.lines is not None else UNKNOWN


def regex(
    trace: Trace, name: str, pattern: object, arguments: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """The value of `re.<name>(pattern, ...)` with the arguments after the pattern, or `compiled.<name>(...)`."""
    subject, *rest = arguments[name == "sub" :] or [keywords.get("string")]
    if not isinstance(subject, TextValue):
        return UNKNOWN
    start, stop = subject.start, subject.stop
    if isinstance(pattern, PatternValue):
        start, stop = _bounds(subject, rest if name not in ("split", "sub") else ())
    elif isinstance(pattern, str):
        flags = keywords.get("flags", rest[-1] if rest and name not in ("split", "sub") else 0)
        pattern = PatternValue(pattern, flags if isinstance(flags, int) else 0)
    if isinstance(pattern, PatternValue):
        stop = min(stop, start + _MATCH_CHARACTERS) if name == "match" else stop
        flags = int(pattern.flags) | (_IGNORE_CASE if subject.folded else 0)
        reach: Reach = "first" if name in ("search", "match") else "all"
        reach = "some" if name == "finditer" and trace.may_leave else reach
        trace.record(Pattern(pattern.pattern, flags, start, stop, reach))
    return replace(subject, is_exact=False) if name == "sub" else UNKNOWN
