"""A context and the `str` that it stands for, side by side through anything that may happen to a context.

What is asked of the text is asked of both, and of what was made from it on the way: views, derived texts, iterators
that are half read. Frames, caches, windows and budgets are so small that every step evicts, queues and streams.
"""

from __future__ import annotations

import copy
import os
import pickle
import re
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from text.search.cases import make_text
from text.search.grep_cases import hits
from text.str_methods import cases
from text.str_methods.subject import read, small_pieces

from monocontext import Monocontext, regex
from monocontext.engine.fetch.workers import LOCK
from monocontext.errors import (
    ContextClosed,
    ContextTooLarge,
    DamagedData,
    InvalidParameters,
    MonocontextError,
    NotPicklable,
    StoreFailure,
)
from monocontext.text.regex import scan as stream

from .gauges import at_rest, fetcher, pool, watch_budget
from .worlds import World

CHILD_SECONDS = 20
"""After which a child is taken to hang."""
LARGE = 400
"""Characters from which on a result is not read in every way there is."""
UNLIMITED = 1 << 20
PIECES = [
    *("a", "b", "ab", "aab", "A", "k", "error", "0", "7", ".", " ", "\t", "\n", "\n", "\n\n", "\r", "\r\n", "\r\n"),
    *("\0", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", "\u00a0", "é", "e\u0301", "\u0301", "ß", "ſ", "\u212a"),
    *("İ", "ı", "Σ", "σ", "ς", "ΑΣ", "ŉ", "\ufb01", "漢", "😀", "👍🏽", "👩\u200d👧"),
]
PATTERNS = [
    *("a", "ab?", "a*", "", "^", "$", "(?m)^", "(?m)$", r"\A", r"\Z", r"\b", r"\B", ".", "(?s).", r"\n", r"\r\n?"),
    *(r"\w+", r"\W+", r"\s", r"\s+", r"\S+", r"\d", r"[^\n]+", r"[^\n]*\n", "(?s).*", "(?s).+?b", "(a)(b)?", "(?i)k"),
    *("(?i)s", "(?i)σ", "(?i)i", r"(\w)\1", "(?<=a)b", "(?<!a)b", "a(?!b)", "(?=(a))", "(?P<x>a+)|(?P<y>b+)", "error"),
    *("(?i)ERROR", r"\0", "[\u2028\u2029]", "😀", "é|e\u0301", r"\Wa\W", r"a[\s\S]*?\n", r"[^a]{3}", "(?:ab){2,}"),
    *(r"(?m)^\s*$", r"(?m)\w$", r"host-\d+", r"(?i)station", "x{2,5}"),
]
Operation = Callable[[Any], Any]

places = st.integers(-8, 8) | st.integers(-60, 60) | st.integers(-300, 300)
bounds = st.none() | places
steps = st.sampled_from([None, None, 1, 2, 3, 7, -1, -1, -2, -5, 1000])
seeds = st.integers(0, 1 << 30)


@dataclass(frozen=True, slots=True)
class Config:
    """How a context is written and opened."""

    text: str
    codec: str
    frame_bytes: int
    filters: bool
    limit: int
    cache_bytes: int
    budget_bytes: int
    window: int
    disk: bool
    pieces_seed: int


def configs() -> st.SearchStrategy[Config]:
    def make(with_filters: bool) -> st.SearchStrategy[Config]:
        tiny = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
        return st.builds(
            Config,
            text=seeds.map(lambda seed: make_text(Random(seed), 6_000)) if with_filters else tiny,
            codec=st.sampled_from(["raw", "zstd"]),
            frame_bytes=st.just(512) if with_filters else st.sampled_from([1, 2, 3, 5, 8, 20, 100]),
            filters=st.just(with_filters),
            limit=st.sampled_from([UNLIMITED, UNLIMITED, 40]),
            cache_bytes=st.sampled_from([0, 1500, 4000] if with_filters else [0, 310, 700, 2000]),
            budget_bytes=st.sampled_from([1, 2_500, 100_000] if with_filters else [1, 40, 100_000]),
            window=st.sampled_from([700, 1 << 20] if with_filters else [4, 30, 1 << 20]),
            disk=st.booleans(),
            pieces_seed=seeds,
        )

    return st.sampled_from([False, False, False, True]).flatmap(make)


@dataclass(slots=True)
class Held:
    """A lazy value, and what it stands for."""

    lazy: Any
    text: str
    story: str


@dataclass(slots=True)
class Going:
    """An iterator that was begun, and what is still to come from it."""

    iterator: Iterator[Any]
    left: list[Any] | None
    """`None` for chunks: they may be of any size, joined they are `text`."""
    text: str
    story: str


class Likeness(RuleBasedStateMachine):
    """The rules; a subclass says in which world."""

    make_world: ClassVar[Callable[[], World]]
    rare: ClassVar[frozenset[str]] = frozenset({"stall"})
    """Faults that cost seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.world: World = type(self).make_world()
        self.stack.callback(self.world.close)
        self.context: Any = None
        self.is_troubled = False
        self.tries = 1

    @initialize(config=configs())
    def begin(self, config: Config) -> None:
        self.config = config
        self.stack.enter_context(small_pieces(Random(config.pieces_seed)))
        patch = self.stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("WINDOW", "FIRST_WINDOW"):
            patch.setattr(stream, name, min(config.window, getattr(stream, name)))
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory())) if config.disk else None
        self.generations: list[str] = []
        self.publish(config.text)
        self.open()

    def publish(self, text: str) -> None:
        self.world.publish(
            text,
            codec=self.config.codec,
            frame_bytes=self.config.frame_bytes,
            segment_bytes=4 * self.config.frame_bytes,
            filters=self.config.filters,
        )
        self.stored = text
        self.generations.append(text)

    def open(self, **options: Any) -> None:
        """Open the newest generation; nothing that was made from an earlier context is left."""
        self.held: list[Held] = []
        self.going: list[Going] = []
        self.readers: list[Any] = []
        self.context = self.world.open(
            cache_bytes=self.config.cache_bytes,
            materialize_limit=self.config.limit,
            **({"cache_dir": self.folder, "cache_dir_bytes": 20_000} if self.folder else {}),
            **options,
        )
        self.text = self.stored
        self.watch()

    def watch(self) -> None:
        """See to it that every step of the reader's scheduler keeps to the rules."""
        reader = self.context._reader
        self.readers.append((reader, watch_budget(self.context, self.config.budget_bytes)))

    # -- what is compared ------------------------------------------------------------------------------------------

    def subject(self, which: int) -> Held:
        """The context twice as often as anything that was made of it."""
        those = [Held(self.context, self.text, "context")] * 2 + self.held
        return those[which % len(those)]

    def check(self, operation: Operation, which: int = 0, *, on_str: Operation | None = None) -> None:
        """The operation gives what it gives on the `str`: at once, or after an error that tells of a fault."""
        held = self.subject(which)
        expected = outcome(on_str or operation, held.text)
        found = self.through_faults(lambda: outcome(operation, held.lazy))
        if found is ContextTooLarge and self.config.limit < UNLIMITED and expected is not ContextTooLarge:
            assert len(held.text) > 0
            return
        assert found == expected, f"{held.story}: expected {expected!r:.1000}, found {found!r:.1000}"

    def through_faults(self, work: Callable[[], Any]) -> Any:
        """What comes of some work; where a fault is a typed error the first time, the second time all is well."""
        for _ in range(self.tries):
            try:
                return work()
            except (StoreFailure, DamagedData):
                assert self.is_troubled, "an error without a fault"
            self.calm()
        return work()

    def calm(self) -> None:
        """From now on all is well: what has met a fault already, and might be joined, has ended too."""
        self.world.calm()
        self.rest()
        self.is_troubled = self.tries > 1

    def hold(self, lazy: Any, text: str, story: str) -> None:
        if isinstance(lazy, Monocontext) and len(self.held) < 6:
            self.held.append(Held(lazy, text, story))

    # -- questions -------------------------------------------------------------------------------------------------

    @rule(which=seeds, start=bounds, stop=bounds, step=steps)
    def slice(self, which: int, start: int | None, stop: int | None, step: int | None) -> None:
        self.check(lambda t: t[start:stop:step], which)

    @rule(which=seeds, at=st.lists(places, min_size=1, max_size=8))
    def items(self, which: int, at: list[int]) -> None:
        for each in at:
            self.check(lambda t, each=each: t[each], which)

    @rule(which=seeds, seed=seeds, start=bounds, stop=bounds)
    def find(self, which: int, seed: int, start: int | None, stop: int | None) -> None:
        needle = cases.needle(Random(seed), self.subject(which).text)
        for name in ("find", "rfind", "index", "rindex", "count"):
            self.check(lambda t, name=name: getattr(t, name)(needle, start, stop), which)
        self.check(lambda t: needle in t, which)

    @rule(which=seeds, seed=seeds, name=st.sampled_from(["split", "rsplit", "splitlines", "partition", "rpartition"]))
    def split(self, which: int, seed: int, name: str) -> None:
        self.check(cases.operation(Random(seed), self.subject(which).text, name), which)

    @rule(which=seeds, seed=seeds, name=st.sampled_from(["strip", "lower", "replace", "upper", "title", "startswith"]))
    def change(self, which: int, seed: int, name: str) -> None:
        self.check(cases.operation(Random(seed), self.subject(which).text, name), which)

    @rule(which=seeds, seed=seeds, name=st.sampled_from(cases.NAMES))
    def any_operation_of_str(self, which: int, seed: int, name: str) -> None:
        self.check(cases.operation(Random(seed), self.subject(which).text, name), which)

    @rule(
        which=seeds,
        pattern=st.sampled_from(PATTERNS),
        name=st.sampled_from(["findall", "finditer", "search", "sub", "split", "match", "fullmatch", "subn"]),
        pos=st.none() | places,
    )
    def match(self, which: int, pattern: str, name: str, pos: int | None) -> None:
        def asked(of: Any) -> Operation:
            compiled = of.compile(pattern)

            def run(text: Any) -> Any:
                where = (text, pos) if pos is not None and name not in ("split", "sub", "subn") else (text,)
                if name in ("sub", "subn"):
                    return getattr(compiled, name)(r"<\g<0>>", *where)
                found = getattr(compiled, name)(*where)
                if name == "finditer":
                    return [seen(match) for match in found]
                return seen(found) if name in ("search", "match", "fullmatch") else found

            return run

        self.check(asked(regex), which, on_str=asked(re))

    @rule(which=seeds, pattern=st.sampled_from(PATTERNS), start=bounds, stop=bounds)
    def grep(self, which: int, pattern: str, start: int | None, stop: int | None) -> None:
        held = self.subject(which)
        first, last, _ = slice(start, stop).indices(len(held.text))
        expected = hits(held.text, [re.compile(pattern)], first, max(first, last) if last < len(held.text) else None)
        try:
            found = self.through_faults(lambda: list(held.lazy.grep(pattern, start=start, stop=stop)))
        except ContextTooLarge:
            assert self.config.limit < max(map(len, held.text.split("\n")))
            return
        except InvalidParameters:  # it needs a newline, and no line has one
            assert not expected
            return
        assert found == expected, held.story
        told = self.through_faults(lambda: held.lazy.explain(pattern))
        assert 0 <= told.candidates <= told.frames
        assert told.candidates or not expected or not told.frames, str(told)

    @rule(which=seeds, at=st.lists(places, max_size=4), start=bounds, stop=bounds)
    def lines(self, which: int, at: list[int], start: int | None, stop: int | None) -> None:
        def by_line(text: Any) -> Any:
            if isinstance(text, str):
                lines = newlines(text)
                return [len(lines), "".join(lines[start:stop]), [lines[n % len(lines)] for n in at if lines]]
            lines = text.lines
            size = len(lines)
            return [size, "".join(lines[start:stop]), [lines[n % size] for n in at if size]]

        self.check(by_line, which)

    @rule(seed=seeds)
    def from_four_threads(self, seed: int) -> None:
        """At once, each at places of its own; of a fault each may have its share."""
        held, wrong = self.subject(seed), []

        def work(seed: int) -> None:
            random = Random(seed)
            for _ in range(6):
                start, stop = (random.randint(-3, len(held.text) + 3) for _ in range(2))
                try:
                    found = str(held.lazy[start:stop])
                except (StoreFailure, DamagedData) as error:
                    if not self.is_troubled:
                        wrong.append(repr(error))
                except ContextTooLarge:
                    if self.config.limit == UNLIMITED:
                        wrong.append(f"[{start}:{stop}] is too large")
                else:
                    if found != held.text[start:stop]:
                        wrong.append(f"[{start}:{stop}] is {found!r}")

        threads = [threading.Thread(target=work, args=(seed + n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), f"hangs: {fetcher(self.context)!r}"
        assert not wrong, f"{held.story}: {wrong}"

    # -- what stays ------------------------------------------------------------------------------------------------

    @rule(which=seeds, start=bounds, stop=bounds)
    def keep_a_view(self, which: int, start: int | None, stop: int | None) -> None:
        held = self.subject(which)
        lazy = self.through_faults(lambda: held.lazy.view(start, stop))
        first, last, _ = slice(start, stop).indices(len(held.text))
        self.hold(lazy, held.text[first : max(first, last)], f"{held.story}.view({start}, {stop})")

    @rule(
        which=seeds,
        method=st.sampled_from(
            [
                ("lower",),
                ("upper",),
                ("replace", "a", "\r\n"),
                ("replace", "ab", "漢"),
                ("replace", "\n", ""),
                ("strip",),
                ("expandtabs", 3),
            ]
        ),
    )
    def keep_what_is_derived(self, which: int, method: tuple[Any, ...]) -> None:
        held = self.subject(which)
        name, *arguments = method
        if len(held.text) <= 2 * LARGE:
            lazy = self.through_faults(lambda: getattr(held.lazy, name)(*arguments))
            self.hold(lazy, getattr(held.text, name)(*arguments), f"{held.story}.{name}{tuple(arguments)}")

    @rule(which=seeds, other=st.sampled_from(["", "Σ.\r", "\nß", "\ud83d"]))
    def keep_a_sum(self, which: int, other: str) -> None:
        held = self.subject(which)
        if len(held.text) <= LARGE:
            lazy = self.through_faults(lambda: held.lazy + other)
            self.hold(lazy, held.text + other, f"{held.story} + {other!r}")

    @rule(which=seeds, kind=st.sampled_from(["characters", "reversed", "lines", "chunks", "matches"]), size=places)
    def begin_to_iterate(self, which: int, kind: str, size: int) -> None:
        held = self.subject(which)
        lazy, text, size = held.lazy, held.text, abs(size) + 1
        pattern = PATTERNS[size % len(PATTERNS)]
        ways: dict[str, tuple[Callable[[], Iterator[Any]], list[Any] | None]] = {
            "characters": (lambda: iter(lazy), list(text)),
            "reversed": (lambda: reversed(lazy), list(text)[::-1]),
            "lines": (lambda: iter(lazy.lines), newlines(text)),
            "chunks": (lambda: lazy.chunks(size), None),
            "matches": (lambda: spans(regex.finditer(pattern, lazy)), [*spans(re.finditer(pattern, text))]),
        }
        make, left = ways[kind]
        try:
            iterator = self.through_faults(make)
        except ContextTooLarge:
            assert self.config.limit < UNLIMITED
            return
        self.going.append(Going(iterator, left, text, f"{kind} of {held.story}"))

    @rule(which=seeds, items=st.integers(1, 60))
    def iterate_on(self, which: int, items: int) -> None:
        """A fault may end an iterator; so may a line that is larger than the limit.

        Which faults are met depends on the machine, so no rule is offered, and nothing drawn, by what is left going.
        """
        if not self.going:
            return
        going = self.going[which % len(self.going)]
        try:
            for _ in range(items):
                if not self.take(going):
                    self.going.remove(going)
                    return
        except (StoreFailure, DamagedData):
            assert self.is_troubled, f"{going.story}: an error without a fault"
            self.going.remove(going)
        except ContextTooLarge:
            assert self.config.limit < UNLIMITED
            self.going.remove(going)

    @staticmethod
    def take(going: Going) -> bool:
        nothing = object()
        item = next(going.iterator, nothing)
        if going.left is None:
            if item is nothing:
                assert going.text == "", f"{going.story}: {going.text!r} is missing"
                return False
            assert item, f"{going.story}: an empty chunk"
            assert going.text.startswith(item), f"{going.story}: {item!r} is not the beginning of {going.text!r}"
            going.text = going.text[len(item) :]
            return True
        if item is nothing:
            assert not going.left, f"{going.story}: {going.left!r} is missing"
            return False
        assert going.left, f"{going.story}: {item!r} comes after the end"
        expected = going.left.pop(0)
        assert item == expected, f"{going.story}: expected {expected!r}, found {item!r}"
        return True

    @rule(which=seeds)
    def abandon_an_iterator(self, which: int) -> None:
        if self.going:
            self.going.pop(which % len(self.going))

    # -- what happens ----------------------------------------------------------------------------------------------

    @rule(pieces=st.lists(st.sampled_from(PIECES), max_size=20), refreshes=st.booleans())
    def append(self, pieces: list[str], refreshes: bool) -> None:
        self.calm()
        text = "".join(pieces)
        self.world.append(text)
        if text:
            self.stored += text
            self.generations.append(self.stored)
        if refreshes:
            self.refresh(loses_roots=False)

    @rule(pieces=st.lists(st.sampled_from(PIECES), max_size=20), refreshes=st.booleans())
    def replace_all(self, pieces: list[str], refreshes: bool) -> None:
        """The same place, another text."""
        self.calm()
        self.publish("".join(pieces))
        if refreshes:
            self.refresh(loses_roots=False)

    @rule(loses_roots=st.booleans())
    def refresh(self, loses_roots: bool) -> None:
        """What was made before stays what it was."""
        if len(self.held) < 6 and self.text:
            self.held.append(Held(self.context.view(0, len(self.text)), self.text, f"context of {len(self.text)}"))
            # A view of everything is the context itself, which moves.
            if self.held[-1].lazy is self.context:
                self.held.pop()
        if loses_roots:
            self.world.lose_roots()
            with pytest.raises(StoreFailure):
                self.context.refresh()
            self.calm()
        before = self.context._reader
        self.agree(Held(self.context, self.text, "context"), lambda t: t[:3])  # its frame is at hand
        assert self.context.refresh() is self.context
        self.text = self.stored
        if self.context._reader is not before:
            self.watch()
        assert self.context.generation == len(self.generations)
        self.agree(Held(self.context, self.text, "context"), lambda t: (t[:1], t[0:1], t[1:3]))

    @rule(seed=seeds, drops_all=st.booleans())
    def evict(self, seed: int, drops_all: bool) -> None:
        """Read here and there what takes more than the cache has; or lose all of it at once."""
        random, size = Random(seed), len(self.text)
        for at in random.sample(range(size), min(size, 12)):
            assert self.through_faults(lambda at=at: self.context[at]) == self.text[at]
        if drops_all:
            with LOCK:
                self.context._reader.cache.clear()

    @rule(which=seeds, times=st.integers(1, 6))
    def fault(self, which: int, times: int) -> None:
        names = [name for name in self.world.faults if name not in self.rare]
        self.world.arm(names[which % len(names)], times)
        self.is_troubled = True

    @precondition(lambda self: getattr(self, "folder", None))
    @rule(seed=seeds, how=st.sampled_from(["cut", "flip", "remove", "empty"]))
    def spoil_the_disk(self, seed: int, how: str) -> None:
        """What a crash or a failing disk leaves behind in the folder; the store answers instead."""
        assert self.folder is not None
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        random = Random(seed)
        for path in random.sample(files, min(3, len(files))):
            data = bytearray(path.read_bytes())
            if how == "remove":
                path.unlink()
                continue
            if how == "cut":
                data = data[: random.randrange(len(data) + 1)]
            elif how == "flip" and data:
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            elif how == "empty":
                data = bytearray()
            path.write_bytes(data)

    @rule(generation=st.integers(1, 3))
    def an_earlier_generation(self, generation: int) -> None:
        self.calm()
        generation = min(generation, len(self.generations))
        with self.world.open(generation=generation, cache_bytes=0) as context:
            assert "".join(context) == self.generations[generation - 1]

    @rule()
    def close_and_open(self) -> None:
        self.calm()
        sockets = pool(self.context)
        self.context.close()
        self.context.close()
        if self.text:
            with pytest.raises(ContextClosed):
                self.context[0]
        assert sockets is None or (sockets.lent, sockets.idle) == (0, 0)
        self.open()

    @rule(which=seeds)
    def copies(self, which: int) -> None:
        held = self.subject(which)
        assert copy.copy(held.lazy) is held.lazy
        assert copy.deepcopy(held.lazy) is held.lazy

    @rule(which=seeds)
    def pickle_and_open(self, which: int) -> None:
        """A handle that opens the same characters again; of what lies in memory there is none."""
        self.calm()
        held = self.subject(which)
        try:
            data = pickle.dumps(held.lazy)
        except NotPicklable:
            assert self.context.url.startswith("memory:")
            return
        try:
            again = pickle.loads(data)
        except NotPicklable:  # small where it arrives
            assert self.config.limit == UNLIMITED or len(held.text) <= self.config.limit
            return
        assert "".join(again) == held.text
        again.close()

    @precondition(lambda self: hasattr(os, "fork"))
    @rule(seed=seeds, parent_reads=st.booleans(), is_troubled=st.booleans())
    def fork(self, seed: int, parent_reads: bool, is_troubled: bool) -> None:
        """The child reads what the parent has read and what it has not, iterators that were begun among it.

        Nothing promises that the lock of a store in memory is free in a child, so there nothing is under way.
        """
        if not self.context.url.startswith("s3:") or not is_troubled:
            self.calm()
        reading = self.read_meanwhile() if self.context.url.startswith("s3:") else None
        said, telling = os.pipe()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(CHILD_SECONDS)
            code = 1
            try:
                self.readers.clear()  # what the parent had under way begins anew when it is next asked for
                self.tries = 20  # the faults are the parent's, and end when they have all been met
                self.read_all(seed)
                for going in self.going:
                    self.to_the_end(going)
                code = 0
            except BaseException:
                os.write(telling, traceback.format_exc().encode()[-3000:])
            finally:
                os._exit(code)
        os.close(telling)
        try:
            if parent_reads:
                self.read_all(seed + 1)
        finally:
            _, status = os.waitpid(child, 0)
            if reading:
                reading.join(60)
                assert not reading.is_alive(), f"hangs: {fetcher(self.context)!r}"
            with open(said, errors="replace") as file:
                told = file.read()
        assert status == 0, f"the child ended with {status}: {told}"

    def read_meanwhile(self) -> threading.Thread:
        """A thread that waits for an answer, unless nothing has to be asked for."""

        def read_on() -> None:
            try:
                "".join(self.context)
            except (StoreFailure, DamagedData):
                assert self.is_troubled

        self.world.linger(4)
        reading = threading.Thread(target=read_on)
        reading.start()
        while reading.is_alive() and not fetcher(self.context).under_way()[0]:
            time.sleep(0.0005)
        return reading

    def to_the_end(self, going: Going) -> None:
        try:
            while self.take(going):
                pass
        except (StoreFailure, DamagedData):
            assert self.is_troubled
        except ContextTooLarge:
            assert self.config.limit < UNLIMITED

    def read_all(self, seed: int) -> None:
        random = Random(seed)
        for held in [self.subject(0), *random.sample(self.held, min(2, len(self.held)))]:
            start, stop = sorted(random.randrange(len(held.text) + 1) for _ in range(2))
            needle = cases.needle(random, held.text)
            for _ in range(2):
                self.agree(held, lambda t, a=start, b=stop: t[a : min(b, a + 40)])
                self.agree(held, lambda t, needle=needle: t.find(needle))
                self.agree(held, "".join)

    def agree(self, held: Held, operation: Operation) -> None:
        assert self.through_faults(lambda: operation(held.lazy)) == operation(held.text), held.story

    # -- what always holds -----------------------------------------------------------------------------------------

    def rest(self) -> None:
        """Every gauge back at zero, of each reader that there has been; no step broke a rule."""
        end = time.monotonic() + 60
        for reader, budget in self.readers:
            while not at_rest(reader):
                assert time.monotonic() < end, f"still under way: {reader!r}"
                time.sleep(0.0005)
            assert reader.cache.used_bytes <= reader.cache.capacity_bytes
            budget()
        sockets = pool(self.context)
        while sockets and sockets.lent:
            assert time.monotonic() < end, f"still lent: {sockets!r}"
            time.sleep(0.0005)

    @invariant()
    def is_like_its_text(self) -> None:
        if self.context is None:
            return
        assert len(self.context) == len(self.text)
        self.rest()

    def teardown(self) -> None:
        try:
            if self.context is not None:
                self.calm()
                assert "".join(self.context.chunks(50)) == self.text
                assert self.context == self.text
                for held in self.held:
                    assert "".join(held.lazy) == held.text, held.story
                for going in self.going:
                    self.to_the_end(going)
                self.going.clear()
                self.rest()
                self.context.close()
        finally:
            self.stack.close()


def seen(match: Any) -> Any:
    """What a match tells."""
    return match and (match.regs, match.groups(), match.lastindex, match.lastgroup, match.string[match.start() :][:20])


def spans(matches: Iterator[Any]) -> Iterator[tuple[int, int]]:
    return (match.span() for match in matches)


def newlines(text: str) -> list[str]:
    """The lines of a text as `Monocontext.lines` has them."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def outcome(operation: Operation, subject: Any) -> Any:
    """What an operation gives, read in several ways, or the type of its error; what a fault does is raised."""
    try:
        found = operation(subject)
        if isinstance(found, Monocontext) and len(found) > LARGE:
            return "str", "".join(found)
        return read(found)
    except ContextTooLarge:
        return ContextTooLarge
    except MonocontextError:
        raise
    except AssertionError:  # what says one thing when it is read one way, and another when it is read another way
        raise
    except Exception as error:
        return type(error)
