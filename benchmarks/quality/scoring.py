"""Score answers: normalised exact match, numbers, sets, counts by OOLONG's rule; never "contains"."""

from __future__ import annotations

import re
import unicodedata

from benchmarks.quality.questions import Question

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_OOLONG = 0.75


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
