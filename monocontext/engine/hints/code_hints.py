"""Predict the reads of code: of a reply as it streams in, or of a complete block."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from monocontext.engine.hints.expressions import Names, Unready
from monocontext.engine.hints.hint import Hint, Needle, Pattern, Ranges
from monocontext.engine.hints.interpreter import Interpreter
from monocontext.engine.hints.reads import Trace
from monocontext.engine.hints.reply import CodeFinder
from monocontext.engine.hints.statements import BlockSource, parse
from monocontext.engine.hints.values import UNKNOWN, LineList, TextValue, is_plain, plain

MOST_HINTS = 256
"""The most hints from one reply, or from one block that is read on its own."""
WORK = 10_000
"""The most nodes of a block that are evaluated, counted again in each round of a loop: some 20 ms."""
_REPLY_WORK = 5 * WORK
"""The most nodes of all blocks of a reply."""
_DRAFT_WORK = 2_000
"""The most nodes of one draft."""
_MOST_NAMES = 500
"""The most names that are kept from reply to reply."""

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

    `characters` and `lines` are the sizes of the context, which the block knows by `names`. `known`: values of its
    namespace, of which numbers, strings, and tuples and lists of them are used. Source that is not Python has no reads.
    """
    tree = parse(source) if isinstance(source, str) else source
    if tree is None:
        return []
    trace = Trace(characters, lines, WORK)
    scope: Names = {name: made for name, value in (known or {}).items() if (made := plain(value)) is not UNKNOWN}
    scope |= {name: TextValue(0, characters) for name in names}
    Interpreter(trace, scope).follow(tree)
    return _NewHints().among(trace.hints)


class CodeHints:
    """Predicts the reads of the code in a conversation.

    The context has `characters` and goes by `names`. `lines`: its number of lines; without it, lines counted from the
    end are left out. `fenced=False`: replies are nothing but code; `True`: code is always in fences; None: the
    beginning of a reply decides.

    Hints do not depend on how a reply is cut into deltas. Memory and work of a reply are bounded; nothing is ever run
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
        self._finder = CodeFinder(BlockSource(self._follower), fenced)

    def begin(self) -> None:
        """Begin a new reply. Names that earlier replies defined are still known: `CHUNK = 100_000`, `text =
        context`."""
        self._finder.end()
        self._finder.begin()
        self._follower.begin()

    def know(self, values: Mapping[str, object]) -> None:
        """Set names to the values that they have after code ran: `at = context.find(...)` is known from then on.
        Numbers, strings, and tuples and lists of them are used."""
        self._follower.know(values)

    def feed(self, delta: str) -> list[Hint]:
        """The new hints of the next piece of the reply: each hint once a reply, at most 256 of them."""
        self._finder.push(delta)
        return self._follower.take()

    def end(self) -> list[Hint]:
        """End the reply. Returns the hints of a block without a closing fence."""
        self._finder.end()
        return self._follower.take()


class _NewHints:
    """Filters out hints that were given before, and those beyond `MOST_HINTS`."""

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def among(self, hints: Iterable[Hint]) -> list[Hint]:
        found = []
        for hint in hints:
            mark = _identity(hint)
            if mark not in self._seen and len(self._seen) < MOST_HINTS:
                self._seen.add(mark)
                found.append(hint)
        return found


def _identity(hint: Hint) -> object:
    """A key that is equal for hints of the same read, however certain they are. A search that goes to the end is
    another read than one that may stop."""
    if isinstance(hint, Ranges):
        return hint.start, hint.width, hint.step, hint.count
    if isinstance(hint, Needle) and hint.hits:
        return hint, hint.hits
    return (hint, hint.reach) if isinstance(hint, Needle | Pattern) and hint.reach == "all" else hint


class _Follower:
    """Follows the statements of blocks with one interpreter, and collects the new hints of a reply."""

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
        self._new = _NewHints()
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
            self._found += self._new.among(self._trace.take(0))

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
        self._found += self._new.among(self._trace.take(0))
