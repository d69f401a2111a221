"""Make hints from a reply as it streams in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from monocontext.engine.hints.abstract_interpreter import AbstractInterpreter
from monocontext.engine.hints.blocks import MOST_HINTS, WORK, identity, parse
from monocontext.engine.hints.bounded import is_plain, plain
from monocontext.engine.hints.fences import Fences
from monocontext.engine.hints.hint import Hint
from monocontext.engine.hints.state import Names
from monocontext.engine.hints.statements import BlockSource
from monocontext.engine.hints.trace import Trace, Unready
from monocontext.engine.hints.values import UNKNOWN, LineList, TextValue

_REPLY_WORK = 5 * WORK
"""Nodes that the blocks of a reply may look at together; one of them as many as `read_block`."""
_DRAFT_WORK = 2_000
"""Nodes that one draft may look at."""
_SUBSCRIPT_WORK = 100
"""Nodes of one subscript, had also when the work of a reply is used up."""
_MOST_NAMES = 500
"""Names that are kept from reply to reply."""

_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w*")


class CodeHints:
    """Predicts the reads of a conversation's code; the context has `characters` and goes by `names`.

    `lines` is its number of lines, if known: without it lines counted from the end are left out. `fenced=False` says
    that replies are code all through, `True` that code always stands in fences; None looks at how a reply begins.

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

        Numbers, strings, tuples, lists and dictionaries of them are taken over; others are passed over.
        """
        self._follower.know(values)

    def feed(self, delta: str) -> list[Hint]:
        """The new hints of this piece of the reply; each hint once a reply, at most 256 of them."""
        self._fences.push(delta)
        return self._follower.take()

    def end(self) -> list[Hint]:
        """The reply is complete: what a block without a closing fence still has to say."""
        self._fences.end()
        return self._follower.take()


class _Follower:
    """Follows the pieces of blocks with one interpreter, and collects what is new in this reply."""

    def __init__(self, characters: int, lines: int | None, names: Iterable[str]) -> None:
        self._trace = Trace(characters, lines, WORK)
        self._names: Names = {name: TextValue(0, characters) for name in names}
        self._contexts = dict(self._names)
        self._interpreter = AbstractInterpreter(self._trace, self._names)
        self._work_left = 0
        self.begin()

    def begin(self) -> None:
        if len(self._names) > _MOST_NAMES:
            for name in list(self._names)[: len(self._names) - _MOST_NAMES]:
                del self._names[name]
        self._work_left = _REPLY_WORK
        self._seen: set[object] = set()
        self._found: list[Hint] = []

    def know(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            made = plain(value)
            if made is not UNKNOWN:
                self._names[name] = made
            elif is_plain(self._names.get(name, UNKNOWN)):  # of which we thought otherwise
                self._names[name] = UNKNOWN

    def take(self) -> list[Hint]:
        found, self._found = self._found, []
        return found

    def begin_block(self) -> None:
        self._names.update(self._contexts)  # a REPL puts its reserved names back before each cell
        self._trace.work = min(WORK, self._work_left)
        self._work_left -= self._trace.work

    def read_statement(self, source: str) -> None:
        tree = parse(source)
        if tree is not None:
            self._interpreter.follow(tree)
            self._collect()

    def read_draft(self, source: str, latest: str) -> None:
        if not any(isinstance(self._names.get(name), TextValue | LineList) for name in set(_NAME.findall(latest))):
            return
        tree = parse(source)
        if tree is not None:
            self._try(tree, _DRAFT_WORK)

    def read_subscript(self, name: str, inside: str, *, in_compound: bool) -> None:
        """Only what has a value by itself: a name in lower case may be bound by a loop around it."""
        if not isinstance(self._names.get(name.removesuffix(".lines")), TextValue | LineList):
            return
        for other in _NAME.findall(inside):
            if other != "len" and not other.isupper() and not isinstance(self._names.get(other), TextValue):
                return
        source = f"{name}[{inside}]"
        tree = parse(f"if _: {source}" if in_compound else source)
        if tree is not None:
            work = self._trace.work
            self._try(tree, _SUBSCRIPT_WORK)
            self._trace.work = work

    def end_block(self) -> None:
        self._work_left += max(self._trace.work, 0)

    def _try(self, tree: ast.Module, most_work: int) -> None:
        left = self._trace.work
        self._trace.work = work = most_work if most_work < _DRAFT_WORK else min(most_work, left)
        self._interpreter.is_draft = most_work == _DRAFT_WORK
        try:
            with self._interpreter.try_out():
                self._interpreter.follow(tree)
        except Unready:
            self._trace.take(0)
        self._interpreter.is_draft = False
        self._trace.work = left - (work - max(self._trace.work, 0))
        self._collect()

    def _collect(self) -> None:
        for hint in self._trace.take(0):
            mark = identity(hint)
            if mark not in self._seen and len(self._seen) < MOST_HINTS:
                self._seen.add(mark)
                self._found.append(hint)
