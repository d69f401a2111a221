"""Make hints from complete code."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from threading import Lock

from monocontext.engine.hints.abstract_interpreter import AbstractInterpreter
from monocontext.engine.hints.bounded import plain
from monocontext.engine.hints.hint import Hint, Needle, Pattern, Ranges
from monocontext.engine.hints.state import Names
from monocontext.engine.hints.trace import Trace
from monocontext.engine.hints.values import UNKNOWN, TextValue

MOST_HINTS = 256
"""Most hints from one reply, or from one block read on its own."""
WORK = 10_000
"""Nodes of a program that are looked at, again in each round of a loop: some 20 ms."""
_MOST_SOURCE = 200_000
"""Characters of a block."""

_NOISY = re.compile(r"\\|\d[A-Za-z]")
"""Warnings of the parser: unknown escapes, and words right behind a number."""

_lock = Lock()


def read_block(
    source: str | ast.Module,
    characters: int,
    *,
    lines: int | None = None,
    names: Iterable[str] = ("context",),
    known: Mapping[str, object] | None = None,
) -> list[Hint]:
    """The reads of a complete block, in the order of execution, each once, at most 256. Never raises.

    `characters` and `lines` are those of the context, which the block knows by `names`; `known` are plain values of
    its namespace: numbers, strings, tuples, lists, dictionaries of them. Of source that is no Python nothing is said.
    """
    tree = parse(source) if isinstance(source, str) else source
    if tree is None:
        return []
    trace = Trace(characters, lines, WORK)
    scope: Names = {name: made for name, value in (known or {}).items() if (made := plain(value)) is not UNKNOWN}
    scope |= {name: TextValue(0, characters) for name in names}
    AbstractInterpreter(trace, scope).follow(tree)
    return distinct(trace.hints, MOST_HINTS)


def distinct(hints: Iterable[Hint], most: int) -> list[Hint]:
    """Each once, the first of them."""
    seen: dict[object, Hint] = {}
    for hint in hints:
        if len(seen) == most:
            break
        seen.setdefault(identity(hint), hint)
    return list(seen.values())


def identity(hint: Hint) -> object:
    """What makes two hints the same: where they point, not how sure they are; but that a search goes to the end is
    news."""
    if isinstance(hint, Ranges):
        return hint.start, hint.width, hint.step, hint.count
    if isinstance(hint, Needle) and hint.hits:
        return hint, hint.hits
    return (hint, hint.reach) if isinstance(hint, Needle | Pattern) and hint.reach == "all" else hint


def parse(source: str) -> ast.Module | None:
    r"""The tree; None if it is no Python, or too much of it. No warning is printed of what models write, as `"\d"`."""
    if len(source) > _MOST_SOURCE:
        return None
    try:
        if _NOISY.search(source) is None:
            return ast.parse(source)
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the latter: nested too deeply for the parser
        return None
