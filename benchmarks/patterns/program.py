"""A program: a text, and a conversation whose turns are code over `context`, with the answer that it must find."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from benchmarks.patterns.texts import Text, ordered_context
from tests.virtual import VirtualStore

Conversation = Generator[str, str, str]
"""Yields the code of each turn, receives its printed output, and returns the answer."""


@dataclass(frozen=True, slots=True)
class Program:
    """One way in which a model works on a text."""

    name: str
    text: Callable[[int], Text]
    """Makes the text, given its number of frames."""
    talk: Callable[[Text], Conversation]
    """What the model does. It knows the length of the text and the output of its code, nothing else."""
    most_stall: float
    """The most waiting with reading ahead, as a share of that without."""
    answer: Callable[[str], str] = lambda prompt: "noted"
    """The sub-model."""
    prunable: bool = False
    """Whether search filters let it skip most frames."""
    full_pass: bool = False
    """Whether it must read everything."""
    ordered: bool = False
    """Whether it works on `ordered_context` in place of the text."""
    cache_bytes: int | None = None
    """The size of its cache, if it needs a small one."""

    def store(self, text: Text, *, filters: bool) -> VirtualStore:
        """The store with its context."""
        return ordered_context(text.frames) if self.ordered else text.store(filters=filters)


def numbers(printed: str) -> list[int]:
    """The integers in the printed output."""
    cleaned = "".join(item if item.isdigit() else " " for item in printed)
    return [int(item) for item in cleaned.split()]
