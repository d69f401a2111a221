"""Define a program: a text, and a conversation whose turns are code over `context`, with the answer to find."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass

from benchmarks.patterns.records import ordered_context
from benchmarks.patterns.texts import Text
from tests.virtual import VirtualStore

Conversation = Generator[str, str, str]  # yields the code of a turn, receives its printed output, returns the answer


@dataclass(frozen=True, slots=True)
class Program:
    """One way in which a model works on a text."""

    name: str
    text: Callable[[int], Text]  # makes the text, given its number of frames
    talk: Callable[[Text], Conversation]  # the model; of the text it knows the length, and what its code prints
    most_stall: float  # the most waiting with reading ahead, as a share of that without
    most_amplification: float | None = None  # the most bytes moved for each byte used; None: no limit
    most_misses: float | None = None  # the largest share of bytes read ahead in vain; if set, it must not wait
    answer: Callable[[str], str] = lambda prompt: "noted"  # the sub-model's reply to a prompt
    full_pass: bool = False  # whether it has to read everything
    ordered: bool = False  # whether it works on `ordered_context` in place of the text
    cache_bytes: int = 256 << 20  # the size of its cache

    def store(self, text: Text) -> VirtualStore:
        """A store with the context of its text."""
        return ordered_context(text.frames) if self.ordered else text.store()


def read_matches(pattern: str, prompt: str) -> str:
    """The sub-model's reply to a prompt: what the group of a pattern matches in it, else `nothing`."""
    return " ".join(re.findall(pattern, prompt)) or "nothing"


def numbers(printed: str) -> list[int]:
    """The integers in the printed output, such as the -1 of a `find` without a match."""
    return [int(item) for item in re.findall(r"-?\d+", printed)]
