"""Define a program: a conversation whose turns are code over `context`, and the truth that it must come to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from benchmarks.patterns.ordered import ordered_context
from benchmarks.patterns.texts import Text
from monocontext.testing import VirtualStore

Conversation = Generator[str, str, str]
"""Yields the code of each turn, is sent what that code printed, and returns the answer."""


@dataclass(frozen=True, slots=True)
class Program:
    """One way in which a model works on a text."""

    name: str
    text: Callable[[int], Text]
    """Makes the text, of so many frames."""
    talk: Callable[[Text], Conversation]
    """What the model does. It knows of the text only what the code printed, and its length."""
    regret: float
    """The most that reading ahead may leave at 0.2 GB: 0 is the oracle, 1 no reading ahead."""
    answer: Callable[[str], str] = lambda prompt: "noted"
    """The sub-model."""
    prunable: bool = False
    """Whether a search filter can spare its passes."""
    full_pass: bool = False
    """Whether it must read everything."""
    ordered: bool = False
    """Over fixed-width records in order instead of the text."""
    cache_bytes: int | None = None
    """A cache of its own, where the point is a small one."""

    def store(self, text: Text, *, filters: bool) -> VirtualStore:
        """Where its context lies."""
        return ordered_context(text.frames) if self.ordered else text.store(filters=filters)


def numbers(printed: str) -> list[int]:
    """The integers among what was printed, as a model reads them off."""
    cleaned = "".join(each if each.isdigit() else " " for each in printed)
    return [int(each) for each in cleaned.split()]
