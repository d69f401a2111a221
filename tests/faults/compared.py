"""A context and the `str` that it stands for, side by side: how they are made, compared, and found at rest."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
from text.search.cases import make_text
from text.str_methods.subject import read, small_pieces

from monocontext import Monocontext
from monocontext.errors import (
    ContextTooLarge,
    DamagedData,
    MonocontextError,
    StoreFailure,
)
from monocontext.text.regex import scan as stream

from .gauges import at_rest, connections, pool, watch_budget
from .worlds import World

LARGE = 400
"""Characters from which on a result is not read in every way there is."""

UNLIMITED = 1 << 20

PIECES = [
    *("a", "b", "ab", "aab", "A", "k", "error", "0", "7", ".", " ", "\t", "\n", "\n", "\n\n", "\r", "\r\n", "\r\n"),
    *("\0", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", "\u00a0", "é", "e\u0301", "\u0301", "ß", "ſ", "\u212a"),
    *("İ", "ı", "Σ", "σ", "ς", "ΑΣ", "ŉ", "\ufb01", "漢", "😀", "👍🏽", "👩\u200d👧"),
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


class Compared(RuleBasedStateMachine):
    """What the rules stand on; a subclass says in which world."""

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
        patch.setattr(stream, "FIRST_READ", min(config.window, stream.FIRST_READ))
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

    def subject(self, which: int) -> Held:
        """The context twice as often as anything that was made of it."""
        those = [Held(self.context, self.text, "context")] * 2 + self.held
        return those[which % len(those)]

    def check(self, operation: Operation, which: int = 0, *, on_str: Operation | None = None) -> None:
        """The operation gives what it gives on the `str`: at once, or after an error that tells of a fault."""
        held = self.subject(which)
        expected = outcome(on_str or operation, held.text)
        result = self.through_faults(lambda: outcome(operation, held.lazy))
        if result is ContextTooLarge and self.config.limit < UNLIMITED and expected is not ContextTooLarge:
            assert len(held.text) > 0
            return
        assert result == expected, f"{held.story}: expected {expected!r:.1000}, found {result!r:.1000}"

    def agree(self, held: Held, operation: Operation) -> None:
        assert self.through_faults(lambda: operation(held.lazy)) == operation(held.text), held.story

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

    def to_the_end(self, going: Going) -> None:
        try:
            while self.take(going):
                pass
        except (StoreFailure, DamagedData):
            assert self.is_troubled
        except ContextTooLarge:
            assert self.config.limit < UNLIMITED

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
        while connections(sockets)[1]:
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


def outcome(operation: Operation, subject: Any) -> Any:
    """What an operation gives, read in several ways, or the type of its error; what a fault does is raised."""
    try:
        result = operation(subject)
        if isinstance(result, Monocontext) and len(result) > LARGE:
            return "str", "".join(result)
        return read(result)
    except ContextTooLarge:
        return ContextTooLarge
    except MonocontextError:
        raise
    except AssertionError:  # what says one thing when it is read one way, and another when it is read another way
        raise
    except Exception as error:
        return type(error)


def newlines(text: str) -> list[str]:
    """The lines of a text as `Monocontext.lines` has them."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
