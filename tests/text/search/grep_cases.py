"""Random greps, against a loop over the lines of the whole text."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from random import Random
from typing import Any

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.stores.memory import forget
from monocontext.text.search import grep
from monocontext.text.search.hits import Hit

from .cases import make_context, make_needle, make_pattern, make_text

PATTERNS = [
    *("", "a*", "$", "^", r"\A", r"\Z", r"\B", r"\b", "x$", "^the", r"^\s*$", r"\s+\w+\s*$", r"[^a]+", r"\W\W"),
    *(r"\D{30}", "(?s).", "(?s)^.*$", "a\nb", r"\r", r"\r$", "the|and", "a|", r"(?<!\w)in", "(?<=^)a", "(?!x)z"),
    *(r"(\w)\1", "(?i)k", "(?i)STATION", "(?i)disk|TIMEOUT", "[\n]", r"(?=\n)", r"error\n?", "(a)?(?(1)b|z)"),
    *(r"(?m)^a", r"(?m)s$", "漢字", "(?i)ı"),
]


def hits(text: str, patterns: list[re.Pattern[str]], first: int = 0, stop: int | None = None) -> list[Hit]:
    """What `grep` gives, by the book."""
    result, start = [], 0
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        matches = [match for pattern in patterns if (match := pattern.search(line))]
        if matches and first <= start and (stop is None or start < stop):
            result.append(Hit(start + min(match.start() for match in matches), number, line))
        start += len(line) + 1
    return result


def a_pattern(random: Random, text: str) -> tuple[str, int, bool]:
    """A pattern, its flags, and whether it is a fixed text."""
    kind = random.random()
    if kind < 0.3:
        return make_needle(random, text), random.choice([0, 0, re.I]), True
    if kind < 0.5:
        return random.choice(PATTERNS), random.choice([0, 0, int(re.I), int(re.S), int(re.M)]), False
    return *make_pattern(random, text), False


def run(seed: int, greps: int, counts: Counter[str]) -> None:
    """Some greps of one text. Raises `AssertionError` with all it takes to see the difference again."""
    random = Random(seed)
    text = make_text(random)
    if random.random() < 0.3:  # lines that are as long as frames, and longer
        text = re.sub("\n(?![^\n]{0,30}x)", " ", text)
    context: Any = make_context(random, text, f"grep-cases-{seed}")
    usual = grep.LONG_LINE
    grep.LONG_LINE = random.choice([usual, 3000, 300])
    try:
        for _ in range(greps):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _one(random, text, context, f"seed {seed}", counts)
        counts["pruned"] += context.stats.search.pruned
        counts["frames"] += context.stats.search.frames
    finally:
        grep.LONG_LINE = usual
        context.close()
        forget(f"grep-cases-{seed}")


def _one(random: Random, text: str, context: Monocontext, story: str, counts: Counter[str]) -> None:
    low, high = sorted(random.randrange(len(text) + 1) for _ in range(2))
    kind = random.choice(["whole", "whole", "whole", "view", "lower", "upper", "replaced", "lower view"])
    if kind == "view":
        text, context = text[low:high], context.view(low, high)
    elif kind == "lower view":
        text, context = text[low:high].lower(), context.view(low, high).lower()  # type: ignore[assignment]
    elif kind in ("lower", "upper"):
        text, context = getattr(text, kind)(), getattr(context, kind)()
    elif kind == "replaced":
        text, context = text.replace("a", "\nbb"), context.replace("a", "\nbb")  # type: ignore[assignment]
    if isinstance(context, str) or not text:
        return
    asked = [a_pattern(random, text) for _ in range(random.choice([1, 1, 1, 2, 3]))]
    patterns = [re.compile(re.escape(pattern) if fixed else pattern, flags) for pattern, flags, fixed in asked]
    refused = [pattern for pattern in patterns if _is_refused(context, pattern)]
    assert not hits(text, refused), f"{story}: refused {refused}"
    patterns = [pattern for pattern in patterns if pattern not in refused]
    counts["cases"] += 1
    if not patterns:
        return
    first, stop, most = 0, None, None
    if random.random() < 0.3:
        first, stop = random.randrange(len(text)), random.choice([None, random.randrange(len(text) + 1)])
    if random.random() < 0.2:
        most = random.randrange(4)
    expected = hits(text, patterns, first, stop)[:most]
    story = f"{story}: {kind} {[p.pattern for p in patterns]} {[p.flags for p in patterns]} {low}:{high} {first}:{stop}"
    result = []
    try:
        for hit in context.grep(patterns, start=first, stop=stop, max_hits=most):
            result.append(hit)
    except ContextTooLarge as error:
        assert result == expected[: len(result)], story
        needs_line = str(error).startswith("re: ")  # a pattern needs more of some line at once, maybe without a match
        lines = text.split("\n") if needs_line else [hit.line for hit in expected[len(result) :][:1]]
        assert max(map(len, lines), default=0) > context._limit, story
        counts["too large"] += 1
    else:
        for mine, true in zip(result, expected, strict=False):
            assert mine == true, f"{story}: expected {str(true)[:200]}, found {str(mine)[:200]}"
        assert len(result) == len(expected), f"{story}: expected {len(expected)} hits, found {len(result)}"
    counts["hits"] += len(result)


def _is_refused(context: Monocontext, pattern: re.Pattern[str]) -> bool:
    """Whether grep says that the pattern can only match across lines."""
    try:
        context.grep(pattern)
    except ValueError:
        return True
    return False
