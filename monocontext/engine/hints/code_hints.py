"""Make hints from code: of a reply as it streams in, or of a block that is complete."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from monocontext.engine.hints.expressions import Names, Unready
from monocontext.engine.hints.hint import Hint, Needle, Pattern, Ranges
from monocontext.engine.hints.interpreter import Interpreter
from monocontext.engine.hints.reads import Trace
from monocontext.engine.hints.reply import BlockSource, Fences, parse
from monocontext.engine.hints.values import UNKNOWN, LineList, TextValue, is_plain, plain

MOST_HINTS = 256
"""Most hints from one reply, or from one block read on its own."""
WORK = 10_000
"""Nodes of a program that are looked at, again in each round of a loop: some 20 ms."""
_REPLY_WORK = 5 * WORK
"""Nodes that the blocks of a reply may look at together; one of them as many as `read_block`."""
_DRAFT_WORK = 2_000
"""Nodes that one draft may look at."""
_MOST_NAMES = 500
"""Names that are kept from reply to reply."""

_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w*")


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
    its namespace: numbers, strings, tuples and lists of them. Of source that is no Python nothing is said.
    """
    tree = parse(source) if isinstance(source, str) else source
    if tree is None:
        return []
    trace = Trace(characters, lines, WORK)
    scope: Names = {name: made for name, value in (known or {}).items() if (made := plain(value)) is not UNKNOWN}
    scope |= {name: TextValue(0, characters) for name in names}
    Interpreter(trace, scope).follow(tree)
    return _New().of(trace.hints)


class CodeHints:
    """Predicts the reads of a conversation's code; the context has `characters` and goes by `names`.

    `lines` is its number of lines, if known: without it lines counted from the end are left out. `fenced=False` says
    that replies are code all through, `True` that code is always in fences; None looks at how a reply begins.

    Hints do not depend on where a reply is cut into deltas. Memory and work of a reply are bounded; nothing is ever run
    and nothing raises. Not thread-safe: one stream feeds it.
    """

    def __init__(
        self,
        characters: int,
        *,
        lines: int | None = None,
        names: Iterable[str] = ("context",),
        fenced: bool | None = None,
    ) -> None:
        self._follower = _Follower(characters, lines, names)
        self._fences = Fences(BlockSource(self._follower), fenced)

    def begin(self) -> None:
        """A new reply starts. What earlier ones defined is still known: `CHUNK = 100_000`, `text = context`."""
        self._fences.end()
        self._fences.begin()
        self._follower.begin()

    def know(self, values: Mapping[str, object]) -> None:
        """Take the real values of names after code ran: `at = context.find(...)` is known from then on.

        Numbers, strings, tuples and lists of them are taken over; others are passed over.
        """
        self._follower.know(values)

    def feed(self, delta: str) -> list[Hint]:
        """The new hints of this piece of the reply; each hint once a reply, at most 256 of them."""
        self._fences.push(delta)
        return self._follower.take()

    def end(self) -> list[Hint]:
        """Take the end of the reply; returns the hints of a block without a closing fence."""
        self._fences.end()
        return self._follower.take()


class _New:
    """The hints that were not given before."""

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def of(self, hints: Iterable[Hint]) -> list[Hint]:
        found = []
        for hint in hints:
            mark = _identity(hint)
            if mark not in self._seen and len(self._seen) < MOST_HINTS:
                self._seen.add(mark)
                found.append(hint)
        return found


def _identity(hint: Hint) -> object:
    """What makes two hints the same: where they point, not how sure they are; but that a search goes to the end is
    news."""
    if isinstance(hint, Ranges):
        return hint.start, hint.width, hint.step, hint.count
    if isinstance(hint, Needle) and hint.hits:
        return hint, hint.hits
    return (hint, hint.reach) if isinstance(hint, Needle | Pattern) and hint.reach == "all" else hint


class _Follower:
    """Follows the pieces of blocks with one interpreter, and collects the new hints of this reply."""

    def __init__(self, characters: int, lines: int | None, names: Iterable[str]) -> None:
        self._trace = Trace(characters, lines, WORK)
        self._contexts: Names = {name: TextValue(0, characters) for name in names}
        self._names = dict(self._contexts)
        self._interpreter = Interpreter(self._trace, self._names)
        self.begin()

    def begin(self) -> None:
        for name in list(self._names)[:-_MOST_NAMES]:
            del self._names[name]
        self._work_left = _REPLY_WORK
        self._new = _New()
        self._found: list[Hint] = []

    def know(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            made = plain(value)
            if made is not UNKNOWN or is_plain(self._names.get(name, UNKNOWN)):  # whose value was assumed to be another
                self._names[name] = made

    def take(self) -> list[Hint]:
        found, self._found = self._found, []
        return found

    def begin_block(self) -> None:
        self._names.update(self._contexts)  # a REPL puts its reserved names back before each cell
        self._trace.work = min(WORK, self._work_left)
        self._work_left -= self._trace.work

    def end_block(self) -> None:
        self._work_left += max(self._trace.work, 0)

    def read_statement(self, source: str) -> None:
        tree = parse(source)
        if tree is not None:
            self._interpreter.follow(tree)
            self._found += self._new.of(self._trace.take(0))

    def read_draft(self, source: str, latest: str) -> None:
        if not any(isinstance(self._names.get(name), TextValue | LineList) for name in set(_NAME.findall(latest))):
            return
        tree = parse(source)
        if tree is None:
            return
        left = self._trace.work
        self._trace.work = work = min(_DRAFT_WORK, left)
        self._interpreter.is_draft = True
        try:
            with self._interpreter.try_out():
                self._interpreter.follow(tree)
        except Unready:
            self._trace.take(0)
        self._interpreter.is_draft = False
        self._trace.work = left - (work - max(self._trace.work, 0))
        self._found += self._new.of(self._trace.take(0))
