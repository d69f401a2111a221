"""`print` that shows the beginning of a large lazy value instead of fetching all of it."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from monocontext.namespace.lazies import head, is_list, is_text, pieces

if TYPE_CHECKING:
    from monocontext.splits import LazyList
    from monocontext.strlike import StrLike

PRINT_CHARACTERS = 20_000
"""Half a typical context window is 200,000; ten times less is much for one look, and as much as `rlm` shows."""


def printer(limit: int = PRINT_CHARACTERS) -> Callable[..., None]:
    """A `print` that cuts lazy texts and lists after `limit` characters, with a line that says how much is left out.

    Lazy values up to that are shown whole, and all others as ever. In a file that the code names itself nothing is
    cut: windows of the text are streamed into it; an `io.StringIO` takes it up to the text's limit. Costs the GETs of
    a slice of `limit` characters.
    """

    def print(*values: Any, sep: Any = None, end: Any = None, file: Any = None, flush: Any = False) -> None:
        if not any(is_text(value) or is_list(value) for value in values):
            builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
        elif _keeps(file):
            for value in values[:-1]:
                _stream(value, file, " " if sep is None else sep)
            _stream(values[-1], file, end)
            builtins.print(end="", file=file, flush=flush)
        else:
            builtins.print(*(_shown(value, limit) for value in values), sep=sep, end=end, file=file, flush=flush)

    return print


def _keeps(file: Any) -> bool:
    """Whether this is a place to keep text in, rather than one to look at it."""
    looks = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return isinstance(file, io.TextIOBase) and file not in looks and not file.isatty()


def _stream(value: Any, file: Any, end: Any) -> None:
    parts: Iterator[str]
    if is_text(value):
        parts = iter([str(value)]) if isinstance(file, io.StringIO) else pieces(value)
    elif is_list(value):
        parts = _literal(value)
    else:
        parts = iter([str(value)])
    for part in parts:
        file.write(part)
    builtins.print(end=end, file=file)


def _shown(value: Any, limit: int) -> Any:
    if is_text(value):
        return _shown_text(value, limit)
    return _shown_list(value, limit) if is_list(value) else value


def _shown_text(text: StrLike, limit: int) -> str:
    shown = head(text, limit + 1)
    if len(shown) <= limit:
        return shown
    # What `replace` and the like give has to be computed to the end to know its length: not for a look.
    omitted = f"{len(text) - limit:,} more characters" if text.span.length_is_known else "the rest"
    return f"{shown[:limit]}\n[{omitted} omitted; slice to see more: text[{limit}:{2 * limit}]]"


def _shown_list(items: LazyList, limit: int) -> str:
    """The list as `str` of a list shows it. How many items are left out is not counted: it can take a whole pass."""
    parts: list[str] = []
    room = limit
    for part in _literal(items, limit):
        parts.append(part[: room + 1])
        room -= len(part)
        if room < 0:
            return f"{''.join(parts)[:limit]}\n[the rest of {items!r} omitted; slice to see more: items[a:b]]"
    return "".join(parts)


def _literal(items: LazyList, most: int | None = None) -> Iterator[str]:
    """The `repr` of a list with these items, in parts; of a lazy item no more than `most` characters."""
    yield "["
    for i, item in enumerate(items):
        if i:
            yield ", "
        if is_text(item):
            item = str(item) if most is None else head(item, most)
        yield repr(item)
    yield "]"
