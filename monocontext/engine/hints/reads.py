"""Evaluate operations on the context: slices, lines, searches, passes. Each gives the value and records its hints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monocontext.engine.hints.hint import Lines, Needle, Pattern, Reach, Whole
from monocontext.engine.hints.loops import clip
from monocontext.engine.hints.trace import Trace
from monocontext.engine.hints.values import UNKNOWN, Items, LineList, Loaded, PatternValue, Pieces, TextValue

LAZY_CHARACTERS = 64 << 20
"""A slice above this is a view, read only as far as it is used."""
_MATCH_CHARACTERS = 1 << 16
"""How far `re.match` is taken to look."""
_NEEDLE_CHARACTERS = 4096
"""A longer needle says no more than its beginning."""
_CHUNK_CHARACTERS = 100_000
"""Default size of a chunk of `context.chunks()`, in characters."""
_IGNORE_CASE = 2
"""`re.I`."""

_FORWARD = frozenset({"find", "index", "count", "split", "partition", "replace", "removeprefix"})
_TO_THE_FIRST = frozenset({"find", "index", "rfind", "rindex", "partition", "rpartition"})
_BACKWARD = frozenset({"rfind", "rindex", "rsplit", "rpartition", "removesuffix"})
_FOLDS = frozenset({"lower", "upper", "casefold", "swapcase", "title", "capitalize"})
_NEAR = frozenset({"strip", "lstrip", "rstrip", "expandtabs", "translate", "removeprefix", "removesuffix", "replace"})
_NUMBER_BEFORE_FLAGS = {"search": 0, "match": 0, "fullmatch": 0, "findall": 0, "finditer": 0, "split": 1, "sub": 2}
_NUMBER_BEFORE_FLAGS["subn"] = 2


def text_slice(trace: Trace, text: TextValue, bounds: slice) -> object:
    """`text[a:b:c]` with bounds that are known."""
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


def text_item(trace: Trace, text: TextValue, index: int) -> object:
    """`text[i]`."""
    size = text.stop - text.start
    if not -size <= index < size:
        return UNKNOWN
    start = text.start + index % size
    trace.record_range(start, start + 1, is_exact=text.is_exact)
    return Loaded(1)


def text_method(trace: Trace, text: TextValue, name: str, arguments: Sequence[object]) -> object:
    """A method of a text."""
    if name in _FORWARD or name in _BACKWARD:
        _search(trace, text, name, arguments)
    elif name in ("startswith", "endswith"):
        _edge(trace, text, name, arguments)
    if name in ("split", "rsplit"):
        is_lazy = text.stop - text.start > LAZY_CHARACTERS  # then the number of lines is known
        return LineList(text, counted=is_lazy) if arguments[:1] == ["\n"] else Pieces(text)
    if name == "splitlines":
        return LineList(text, counted=False)
    if name in _FOLDS:
        return TextValue(text.start, text.stop, True, text.is_exact)
    if name in _NEAR:
        return TextValue(text.start, text.stop, text.folded, is_exact=False)
    match name, arguments:
        case "view", [*bounds] if len(bounds) < 3 and all(bound is None or type(bound) is int for bound in bounds):
            start, stop, _ = slice(*(*bounds, None, None)[:2]).indices(text.stop - text.start)
            return TextValue(text.start + start, text.start + max(start, stop), text.folded, text.is_exact)
        case "chunks", [] | [int()]:
            return chunks(trace, text, arguments[0] if arguments else _CHUNK_CHARACTERS)
        case "grep", [str() as pattern, *_]:
            trace.record(Pattern(pattern, 0, text.start, text.stop))
        case "grep", [PatternValue() as compiled, *_]:
            trace.record(Pattern(compiled.pattern, compiled.flags, text.start, text.stop))
        case (("encode" | "join" | "format" | "zfill" | "__str__"), _):
            whole(trace, text)
    return UNKNOWN


def chunks(trace: Trace, text: TextValue, size: object) -> object:
    """`text.chunks(size)`."""
    if not isinstance(size, int) or size < 1:
        return UNKNOWN
    count = -(-(text.stop - text.start) // size)
    for hint in clip(text.start, size, size, count, text.stop) if count else []:
        trace.record(hint)
    return Items(None, count)


def contains(trace: Trace, text: TextValue, needle: object) -> object:
    """`needle in text`."""
    _look_for(trace, text, needle, backward=False, start=text.start, stop=text.stop)
    return UNKNOWN


def whole(trace: Trace, text: TextValue, *, backward: bool = False) -> None:
    """All of a text, in order."""
    if text.stop - text.start >= trace.characters:
        trace.record(Whole(backward))
    else:
        trace.record_range(text.start, text.stop, is_exact=text.is_exact)


def line_slice(trace: Trace, lines: LineList, bounds: slice) -> object:
    """`lines[a:b]` with bounds that are known."""
    total = trace.lines if is_all(trace, lines.text) else None
    step = 1 if bounds.step is None else bounds.step
    if bounds.start is None and bounds.stop is None:
        whole(trace, lines.text, backward=step < 0)
        return Items(None, total)
    if total is None:
        if any(bound is not None and bound < 0 for bound in (bounds.start, bounds.stop)) or bounds.stop is None:
            return Items(None)
        if not is_all(trace, lines.text) or step < 1:
            return Items(None)
        total = int(bounds.stop)
    start, stop, step = bounds.indices(total)
    count = len(range(start, stop, step))
    if count:
        low, high = sorted((start, start + (count - 1) * step))
        trace.record(Lines(low, high + 1))
    return Items(None, count if trace.lines is not None else None)


def line_item(trace: Trace, lines: LineList, index: int) -> object:
    """`lines[i]`."""
    if is_all(trace, lines.text):
        if index < 0 and trace.lines is not None:
            index += trace.lines
        if index >= 0 and (trace.lines is None or index < trace.lines):
            trace.record(Lines(index, index + 1))
    return Loaded()


def line_count(trace: Trace, lines: LineList) -> object:
    """`len(lines)`."""
    if not lines.counted:
        whole(trace, lines.text)
    return trace.lines if is_all(trace, lines.text) and trace.lines is not None else UNKNOWN


def regex(
    trace: Trace, name: str, pattern: object, arguments: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """`re.<name>(pattern, ...)` with the arguments after the pattern."""
    place = 1 if name in ("sub", "subn") else 0
    subject = arguments[place] if len(arguments) > place else keywords.get("string")
    flags = keywords.get("flags", 0)
    after = arguments[place + 1 :]
    number = _NUMBER_BEFORE_FLAGS[name] - place
    if len(after) > number:
        flags = after[number]
    if isinstance(pattern, str) and isinstance(flags, int):
        pattern = PatternValue(pattern, flags)
    if isinstance(subject, TextValue) and isinstance(pattern, PatternValue):
        _apply(trace, name, pattern, subject, subject.start, subject.stop)
    return _result(name, subject)


def use_pattern(trace: Trace, name: str, pattern: PatternValue, arguments: Sequence[object]) -> object:
    """`compiled.<name>(...)`."""
    if name in ("sub", "subn"):
        arguments = arguments[1:2]
    elif name == "split":
        arguments = arguments[:1]
    if not arguments or not isinstance(arguments[0], TextValue):
        return UNKNOWN
    subject = arguments[0]
    start, stop = _bounds(subject, arguments[1:])
    _apply(trace, name, pattern, subject, start, stop)
    return _result(name, subject)


def _result(name: str, subject: object) -> object:
    """A text, roughly, after `sub`; else what depends on data."""
    return (
        TextValue(subject.start, subject.stop, is_exact=False)
        if name == "sub" and isinstance(subject, TextValue)
        else UNKNOWN
    )


def _apply(trace: Trace, name: str, pattern: PatternValue, subject: TextValue, start: int, stop: int) -> None:
    if name == "match":
        stop = min(stop, start + _MATCH_CHARACTERS)
    flags = int(pattern.flags) | (_IGNORE_CASE if subject.folded else 0)
    reach: Reach = "first" if name in ("search", "match") else "all"
    if name == "finditer" and trace.may_leave:
        reach = "some"
    trace.record(Pattern(pattern.pattern, flags, start, stop, reach))


def _search(trace: Trace, text: TextValue, name: str, arguments: Sequence[object]) -> None:
    if not arguments:
        return
    start, stop = text.start, text.stop
    reach: Reach = "first" if name in _TO_THE_FIRST else "all"
    if name in ("find", "index", "count", "rfind", "rindex"):
        start, stop = _bounds(text, arguments[1:])
        begins = arguments[2:3] if name in _BACKWARD else arguments[1:2]
        if any(bound is not None and type(bound) is not int for bound in begins):
            reach = "unplaced"
    needle = arguments[0]
    if name == "replace":  # a text of that is read where it is used, up to the limit at once
        if text.stop - text.start <= LAZY_CHARACTERS:
            trace.record(Whole(reach="some"))
    elif name in ("removeprefix", "removesuffix"):
        name = "startswith" if name == "removeprefix" else "endswith"
        _edge(trace, text, name, arguments)
    elif not (name in ("split", "rsplit") and needle == "\n"):
        _look_for(trace, text, needle, backward=name in _BACKWARD, start=start, stop=stop, reach=reach)


def _edge(trace: Trace, text: TextValue, name: str, arguments: Sequence[object]) -> None:
    if not arguments:
        return
    start, stop = _bounds(text, arguments[1:])
    for needle in arguments[0] if isinstance(arguments[0], tuple) else (arguments[0],):
        if not isinstance(needle, str):
            continue
        if name == "startswith":
            _look_for(trace, text, needle, backward=False, start=start, stop=min(start + len(needle), stop))
        else:
            _look_for(trace, text, needle, backward=True, start=max(stop - len(needle), start), stop=stop)


def _bounds(text: TextValue, bounds: Sequence[object]) -> tuple[int, int]:
    """Where a method with these bounds looks; a bound that depends on data leaves that end open."""
    start, stop = (bound if type(bound) is int else None for bound in (*bounds, None, None)[:2])
    low, high, _ = slice(start, stop).indices(text.stop - text.start)
    return text.start + low, text.start + max(low, high)


def _look_for(
    trace: Trace, text: TextValue, needle: object, *, backward: bool, start: int, stop: int, reach: Reach = "first"
) -> None:
    if isinstance(needle, str) and 0 < len(needle) <= stop - start:
        trace.record(Needle(needle[:_NEEDLE_CHARACTERS], text.folded, backward, start, stop, reach))


def is_all(trace: Trace, text: TextValue) -> bool:
    """Whether it is the whole context, whose lines are counted."""
    return text.start == 0 and text.stop == trace.characters
