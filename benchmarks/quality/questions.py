"""Define questions with exact answers, the evidence that is planted for each, and the scores of answers.

An answer is normalised, then compared as a whole: one that only contains the right answer is wrong.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Rule = Literal["text", "number", "set", "count"]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COUNT_BASE = 0.75  # the score of a count is this to the power of its error, as in OOLONG


@dataclass(frozen=True, slots=True)
class Planted:
    """Evidence: whole lines, and their place in every haystack."""

    text: str
    share: float  # the share of the haystack before it, 0 to 1


@dataclass(frozen=True, slots=True)
class Question:
    """One question, with the same evidence at every size of the haystack."""

    id: str
    family: str
    query: str
    answer: str  # the right answer; for the rule `set` its members, separated by commas
    rule: Rule
    evidence: tuple[Planted, ...]
    cells: tuple[str, ...]  # the code of the scripted model, turn by turn


def score(question: Question, answer: str | None) -> float:
    """1 for the right answer, 0 for a wrong one or None. A count that is off by n scores 0.75 to the power of n."""
    if answer is None:
        return 0.0
    match question.rule:
        case "text":
            return float(normalise(answer) == normalise(question.answer))
        case "set":
            return float(_members(answer) == _members(question.answer))
        case _:
            number, right = _number(answer), _number(question.answer)
            if number is None or right is None:
                return 0.0
            return _COUNT_BASE ** abs(number - right) if question.rule == "count" else float(number == right)


def normalise(text: str) -> str:
    """The text in lower case, with single spaces, without quotes, brackets, bold marks and punctuation at its ends."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" .,;:!\"'`()[]{}*")


def _members(text: str) -> frozenset[str]:
    """The normalised members of a list that is separated by commas, semicolons or newlines."""
    return frozenset(filter(None, (normalise(part) for part in re.split(r"[,;\n]", text))))


def _number(text: str) -> float | None:
    """The number that is the whole answer (`1,234`, `**12**`, `12.`); None for a number among words."""
    bare = normalise(text).replace(",", "")
    return float(bare) if _NUMBER.fullmatch(bare) else None
