"""Define a question with an exact answer: what is planted for it, how it is scored, how a model may find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rule = Literal["text", "number", "set", "count"]


@dataclass(frozen=True, slots=True)
class Planted:
    """Evidence: whole lines, and where they stand in every haystack."""

    text: str
    share: float
    """Of the haystack before it, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; it and its evidence are the same at every size."""

    id: str
    family: str
    query: str
    answer: str
    """Of a set: its members, separated by commas."""
    rule: Rule
    evidence: tuple[Planted, ...]
    cells: tuple[str, ...]
    """What the scripted model writes, turn by turn."""
