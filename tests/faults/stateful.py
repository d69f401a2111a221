"""What may happen to a context, in any order: questions, what is made of it on the way, changes, faults and forks.

What is asked of the text is asked of both, and of what was made from it on the way: views, derived texts, iterators
that are half read. Frames, caches, windows and budgets are so small that every step evicts, queues and streams.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from text.search.grep_cases import hits
from text.str_methods import cases

from monocontext import regex
from monocontext.engine.fetch.workers import LOCK
from monocontext.errors import (
    ContextClosed,
    ContextTooLarge,
    DamagedData,
    InvalidParameters,
    StoreFailure,
)

from .compared import (
    LARGE,
    PIECES,
    UNLIMITED,
    Compared,
    Going,
    Held,
    Operation,
    bounds,
    newlines,
    places,
    seeds,
    steps,
)
from .gauges import connections, fetcher, pool

CHILD_SECONDS = 20
"""After which a child is taken to hang."""
PATTERNS = [
    *("a", "ab?", "a*", "", "^", "$", "(?m)^", "(?m)$", r"\A", r"\Z", r"\b", r"\B", ".", "(?s).", r"\n", r"\r\n?"),
    *(r"\w+", r"\W+", r"\s", r"\s+", r"\S+", r"\d", r"[^\n]+", r"[^\n]*\n", "(?s).*", "(?s).+?b", "(a)(b)?", "(?i)k"),
    *("(?i)s", "(?i)σ", "(?i)i", r"(\w)\1", "(?<=a)b", "(?<!a)b", "a(?!b)", "(?=(a))", "(?P<x>a+)|(?P<y>b+)", "error"),
    *("(?i)ERROR", r"\0", "[\u2028\u2029]", "😀", "é|e\u0301", r"\Wa\W", r"a[\s\S]*?\n", r"[^a]{3}", "(?:ab){2,}"),
    *(r"(?m)^\s*$", r"(?m)\w$", r"host-\d+", r"(?i)station", "x{2,5}"),
]


class Likeness(Compared):
    """The rules."""

    # -- questions ---------------------------------------------------------------------------------

    @rule(which=seeds, start=bounds, stop=bounds, step=steps)
    def slice(self, which: int, start: int | None, stop: int | None, step: int | None) -> None:
        self.check(lambda t: t[start:stop:step], which)

    @rule(which=seeds, at=st.lists(places, min_size=1, max_size=8))
    def items(self, which: int, at: list[int]) -> None:
        for item in at:
            self.check(lambda t, item=item: t[item], which)

    @rule(which=seeds, seed=seeds, start=bounds, stop=bounds)
    def find(self, which: int, seed: int, start: int | None, stop: int | None) -> None:
        needle = cases.needle(Random(seed), self.subject(which).text)
        for name in ("find", "rfind", "index", "rindex", "count"):
            self.check(lambda t, name=name: getattr(t, name)(needle, start, stop), which)
        self.check(lambda t: needle in t, which)

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
                result = getattr(compiled, name)(*where)
                if name == "finditer":
                    return [seen(match) for match in result]
                return seen(result) if name in ("search", "match", "fullmatch") else result

            return run

        self.check(asked(regex), which, on_str=asked(re))

    @rule(which=seeds, pattern=st.sampled_from(PATTERNS), start=bounds, stop=bounds)
    def grep(self, which: int, pattern: str, start: int | None, stop: int | None) -> None:
        held = self.subject(which)
        first, last, _ = slice(start, stop).indices(len(held.text))
        expected = hits(held.text, [re.compile(pattern)], first, max(first, last) if last < len(held.text) else None)
        try:
            result = self.through_faults(lambda: list(held.lazy.grep(pattern, start=start, stop=stop)))
        except ContextTooLarge:
            assert self.config.limit < max(map(len, held.text.split("\n")))
            return
        except InvalidParameters:  # it needs a newline, and no line has one
            assert not expected
            return
        assert result == expected, held.story

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
                    result = str(held.lazy[start:stop])
                except (StoreFailure, DamagedData) as error:
                    if not self.is_troubled:
                        wrong.append(repr(error))
                except ContextTooLarge:
                    if self.config.limit == UNLIMITED:
                        wrong.append(f"[{start}:{stop}] is too large")
                else:
                    if result != held.text[start:stop]:
                        wrong.append(f"[{start}:{stop}] is {result!r}")

        threads = [threading.Thread(target=work, args=(seed + n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), f"hangs: {fetcher(self.context)!r}"
        assert not wrong, f"{held.story}: {wrong}"

    # -- what stays ---------------------------------------------------------------------------------

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

    @rule(which=seeds)
    def abandon_an_iterator(self, which: int) -> None:
        if self.going:
            self.going.pop(which % len(self.going))

    # -- what happens ---------------------------------------------------------------------------------

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
        assert connections(sockets) == (0, 0)
        self.open()

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

    def read_all(self, seed: int) -> None:
        random = Random(seed)
        for held in [self.subject(0), *random.sample(self.held, min(2, len(self.held)))]:
            start, stop = sorted(random.randrange(len(held.text) + 1) for _ in range(2))
            needle = cases.needle(random, held.text)
            for _ in range(2):
                self.agree(held, lambda t, a=start, b=stop: t[a : min(b, a + 40)])
                self.agree(held, lambda t, needle=needle: t.find(needle))
                self.agree(held, "".join)


def seen(match: Any) -> Any:
    """What a match tells."""
    return match and (match.regs, match.groups(), match.lastindex, match.lastgroup, match.string[match.start() :][:20])


def spans(matches: Iterator[Any]) -> Iterator[tuple[int, int]]:
    return (match.span() for match in matches)
