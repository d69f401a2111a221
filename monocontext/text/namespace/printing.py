"""`print` that shows the beginning of a large lazy value instead of fetching all of it."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from monocontext.text.namespace.foreign_calls import real_inside
from monocontext.text.namespace.lazy_values import is_list, is_mapping, is_text, pieces, read_head

if TYPE_CHECKING:
    from monocontext.text.lazy_kinds import LazyMapping
    from monocontext.text.lazy_lists import LazyList
    from monocontext.text.str_methods import StrLike

PRINT_CHARACTERS = 20_000
"""The most characters to show of a lazy value: a twentieth of a typical context window, as `rlm` shows."""
_NAMELESS = "name = ...; name"


def printer(limit: int = PRINT_CHARACTERS) -> Callable[..., None]:
    """Make a `print` that cuts lazy texts and lists after `limit` characters, and says how much it omits.

    Shorter lazy values, and all other values, are shown as by `print`. A file that the code names receives everything:
    the text streams into it window by window; an `io.StringIO` takes it up to the text's limit. GETs: those of a slice
    of `limit` characters.
    """

    def print(*values: Any, sep: Any = None, end: Any = None, file: Any = None, flush: Any = False) -> None:
        values = tuple(map(real_inside, values))
        if not any(is_text(value) or is_list(value) or is_mapping(value) for value in values):
            builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
        elif _stores_text(file):
            for value in values[:-1]:
                _stream(value, file, " " if sep is None else sep)
            _stream(values[-1], file, end)
            builtins.print(end="", file=file, flush=flush)
        else:
            builtins.print(*(_shorten(value, limit) for value in values), sep=sep, end=end, file=file, flush=flush)

    return print


def _stores_text(file: Any) -> bool:
    """Whether a file stores text, rather than shows it."""
    shown = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return isinstance(file, io.TextIOBase) and file not in shown and not file.isatty()


def _stream(value: Any, file: Any, end: Any) -> None:
    """Write all of a value to a file, in parts if it is lazy."""
    parts: Iterator[str]
    if is_text(value):
        parts = iter([str(value)]) if isinstance(file, io.StringIO) else pieces(value)
    elif is_list(value) or is_mapping(value):
        parts = _repr_parts(value)
    else:
        parts = iter([str(value)])
    for part in parts:
        file.write(part)
    builtins.print(end=end, file=file)


def _shorten(value: Any, limit: int) -> Any:
    if is_text(value):
        return _shorten_text(value, limit)
    return _shorten_items(value, limit) if is_list(value) or is_mapping(value) else value


def _shorten_text(text: StrLike, limit: int) -> str:
    shown = read_head(text, limit + 1)
    if len(shown) <= limit:
        return shown
    # The length of a `replace` or a similar result costs a pass over the text, too much for a print.
    omitted = f"{len(text) - limit:,} more characters" if text.span.length_is_known else "the rest"
    more = f"slice to see more: {_name_of(text)}[{limit}:{2 * limit}]"
    return f"{shown[:limit]}\n[{omitted} omitted; {more}]"


def _name_of(value: object) -> str:
    """The name of the variable with this value in the namespace that prints it, or code that makes the value."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        names = frame.f_globals
        # The frame of the namespace has our `print`. Frames of libraries may be between it and this function.
        if names.get("print", frame.f_builtins.get("print")) is not builtins.print:
            names_of_value = (
                name for name, found in list(names.items()) if found is value and not name.startswith("_")
            )
            return next(names_of_value, _NAMELESS)
        frame = frame.f_back
    return _NAMELESS


def _shorten_items(items: LazyList | LazyMapping, limit: int) -> str:
    """A list or dict as `str` shows a real one. Omitted items are not counted, since that can take a whole pass."""
    parts: list[str] = []
    room = limit
    for part in _repr_parts(items, limit):
        parts.append(part[: room + 1])
        room -= len(part)
        if room < 0:
            name = _name_of(items)
            more = f"slice to see more: {name}[a:b]" if is_list(items) else f"look up one to see it: {name}[key]"
            return f"{''.join(parts)[:limit]}\n[the rest of {items._short_repr()} omitted; {more}]"
    return "".join(parts)


def _repr_parts(items: LazyList | LazyMapping, most: int | None = None) -> Iterator[str]:
    """The `repr` of a list or dict with these items, in parts; at most `most` characters of a lazy item."""
    opening, closing = "[]" if is_list(items) else "{}"
    yield opening
    values: Any = items
    pairs: Iterable[tuple[Any, Any]] = values.items() if is_mapping(items) else ((None, item) for item in values)
    for i, (name, item) in enumerate(pairs):
        if i:
            yield ", "
        if name is not None:
            yield f"{name!r}: "
        if is_text(item):
            item = str(item) if most is None else read_head(item, most)
        yield repr(item)
    yield closing
