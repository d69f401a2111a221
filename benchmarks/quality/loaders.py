"""Read questions of other benchmarks from files that the user has: OOLONG, LoCoMo, LoCoDiff. Nothing is fetched.

The text of a question is its evidence, planted whole; the haystack grows around it. docs/quality.md has the licences.
Each raises `BadData` for a file that is not what it should be.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.quality.questions import Planted, Question, Rule


class BadData(ValueError):
    """One line: the file, and what was expected of it."""


def load(spec: str, most: int) -> list[Question]:
    """`NAME=PATH`: at most so many questions."""
    name, _, path = spec.partition("=")
    if name not in LOADERS or not path:
        raise BadData(f"--data is NAME=PATH with a name of {', '.join(LOADERS)}, not {spec!r}")
    try:
        found = list(LOADERS[name](Path(path), most))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise BadData(f"{path} is no data of {name}: {type(exc).__name__}: {exc}") from exc
    if not found:
        raise BadData(f"{path} holds no question of {name}")
    return found


def _oolong(path: Path, most: int) -> Iterator[Question]:
    """JSON lines with `context_window_text`, `question`, `answer`; a number is scored by OOLONG's rule for counts."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number == most:
                return
            row = json.loads(line)
            answer = _bare(row["answer"])
            rule: Rule = "count" if answer.lstrip("-").isdigit() else "text"
            yield _question("oolong", number, row["question"], answer, rule, row["context_window_text"])


def _locomo(path: Path, most: int) -> Iterator[Question]:
    """A list of conversations with `qa` and sessions; questions without an answer (the adversarial ones) are passed."""
    number = 0
    for talk in json.loads(path.read_text(encoding="utf-8")):
        text = "\n".join(_sessions(talk["conversation"]))
        for asked in talk["qa"]:
            if number == most:
                return
            if "answer" in asked:
                yield _question("locomo", number, asked["question"], str(asked["answer"]), "text", text)
                number += 1


def _sessions(talk: dict[str, Any]) -> Iterator[str]:
    number = 1
    while session := talk.get(f"session_{number}"):
        yield f"Session {number}, {talk.get(f'session_{number}_date_time', 'no date')}"
        yield from (f"{said['speaker']}: {said['text']}" for said in session)
        number += 1


def _locodiff(path: Path, most: int) -> Iterator[Question]:
    """A folder of `NAME_prompt.txt` and `NAME_expected_output.txt`."""
    for number, prompt in enumerate(sorted(path.glob("*_prompt.txt"))[:most]):
        name = prompt.name.removesuffix("_prompt.txt")
        expected = (path / f"{name}_expected_output.txt").read_text(encoding="utf-8")
        query = (
            f"What does the file of the history that begins with '==== {name}' hold in the end? Give its exact text."
        )
        text = f"==== {name}\n{prompt.read_text(encoding='utf-8')}"
        yield _question("locodiff", number, query, expected, "text", text)


def _question(family: str, number: int, query: str, answer: str, rule: Rule, text: str) -> Question:
    planted = Planted(text + "\n" * (not text.endswith("\n")), 0.5)
    return Question(f"{family}-{number}", family, "both", query, answer, rule, (planted,), ())


def _bare(answer: object) -> str:
    """The answer of `['12']`, `[12]` or `12`, as text."""
    value: Any = answer
    if isinstance(value, str) and value.startswith("["):
        value = ast.literal_eval(value)
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return str(value)


LOADERS: dict[str, Callable[[Path, int], Iterator[Question]]] = {
    "oolong": _oolong, "locomo": _locomo, "locodiff": _locodiff,
}  # fmt: skip
"""By name."""
