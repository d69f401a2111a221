"""Questions with exact answers: what is planted for one, how a model may find it, and how an answer is scored.

An answer is normalised, then compared as a whole: that it contains the right one does not count.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Rule = Literal["text", "number", "set", "count"]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_OOLONG = 0.75


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


def score(question: Question, answer: str | None) -> float:
    """0 to 1. Of a count: 0.75 to the power of how far off it is, as OOLONG has it; of all others 0 or 1."""
    if answer is None:
        return 0.0
    match question.rule:
        case "text":
            return float(normalise(answer) == normalise(question.answer))
        case "set":
            return float(_members(answer) == _members(question.answer))
        case _:
            said, right = _number(answer), _number(question.answer)
            if said is None or right is None:
                return 0.0
            return _OOLONG ** abs(said - right) if question.rule == "count" else float(said == right)


def is_right(question: Question, answer: str | None) -> bool:
    """Whether the score is whole: what pairs are compared by."""
    return score(question, answer) == 1.0


def normalise(text: str) -> str:
    """Case, quotes, spaces and the punctuation at both ends do not count."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" .,;:!\"'`()[]{}")


def _members(text: str) -> frozenset[str]:
    return frozenset(filter(None, (normalise(part) for part in re.split(r"[,;\n]", text))))


def _number(text: str) -> float | None:
    """The number that the whole answer is: `1,234`, `**12**`, `12.`; not one among other words."""
    bare = normalise(text).replace(",", "").strip("* ")
    return float(bare) if _NUMBER.fullmatch(bare) else None
