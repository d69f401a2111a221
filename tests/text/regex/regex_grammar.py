"""Patterns from a grammar: every construct of `re`, over the characters of `regex_cases`. Not all of them compile."""

from __future__ import annotations

import random

_CHARACTERS = ["a", "b", "c", "x", "1", " ", ":", "e", "k", "s", "i", "é", "ſ", r"\.", r"\n", "😀", "ß"]
_CLASSES = [
    ".", r"\w", r"\d", r"\s", r"\W", r"\S", r"\D", "[ab]", "[^a]", r"[^\n]", "[a-z]", r"[\w.]", r"[^\W]", "[^)]",
    r"[\s\S]",
]  # fmt: skip
_PLACES = ["^", "$", r"\b", r"\B", r"\A", r"\Z"]
_REPEATS = ["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "{,2}"]
_WORDS = ["ab", "error", "label:", "aa", "disk", "ERROR", "aba"]


def pattern(rng: random.Random, depth: int = 3) -> str:
    """One pattern; a third of them begin with flags."""
    maker = _Maker(rng)
    made = maker.alternatives(depth)
    return rng.choice(["", "", "", "", "(?i)", "(?s)", "(?m)", "(?ms)", "(?is)"]) + made


class _Maker:
    def __init__(self, rng: random.Random):
        self._rng = rng
        self._groups = 0

    def alternatives(self, depth: int) -> str:
        options = self._rng.choice([1, 1, 1, 1, 2, 3])
        return "|".join(self.sequence(depth) for _ in range(options))

    def sequence(self, depth: int) -> str:
        return "".join(self.item(depth) for _ in range(self._rng.choice([0, 1, 1, 2, 2, 3, 4])))

    def item(self, depth: int) -> str:
        rng = self._rng
        kind = rng.random()
        if kind < 0.08:
            return rng.choice(_PLACES)
        if kind < 0.16:
            return rng.choice(_WORDS)
        if kind < 0.22 and depth:
            return self.look(depth - 1)
        if kind < 0.25 and self._groups:
            group = rng.randint(1, self._groups)
            return rng.choice([f"(?:\\{group})", f"(?({group}){self.sequence(0)}|{self.sequence(0)})"])
        if kind < 0.5 and depth:
            entry = self.group(depth - 1)
        else:
            entry = rng.choice(_CHARACTERS if rng.random() < 0.5 else _CLASSES)
        if rng.random() < 0.45:
            entry += rng.choice(_REPEATS) + rng.choice(["", "", "?", "+"])
        return entry

    def group(self, depth: int) -> str:
        kind = self._rng.choice(["(", "(", "(?:", "(?:", "(?>", "(?i:", "(?s:", "(?-s:"])
        inner = self.alternatives(depth)
        if kind == "(":
            self._groups += 1
        return f"{kind.replace('-s', '')}{inner})"

    def look(self, depth: int) -> str:
        kind = self._rng.choice(["(?=", "(?!", "(?<=", "(?<!"])
        if "<" in kind:
            inner = self._rng.choice([*_WORDS, *_CHARACTERS, *_CLASSES, r"\b", "^", "a$", r"(?=\w)", r"a(?!b)"])
            return f"{kind}{inner})"
        return f"{kind}{self.alternatives(depth)})"
