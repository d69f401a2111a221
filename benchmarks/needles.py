"""Draw needles from a text by rule and seed, and count the places of each in the text.

| kind | rule |
|---|---|
| rare identifier | 8 to 20 letters, digits and underscores (Chinese: 4 to 7 characters), in 1 to 5 places |
| absent identifier | 8 to 20 letters and digits at random (Chinese: 4 to 7 characters of the text), in no place |
| word | 8 to 11 letters (Chinese: 3 characters), drawn uniformly from the distinct words of a sample |
| common word | the most frequent words of 5 letters or more (Chinese: 2 characters) |
| phrase | 15 to 29 bytes of one line, beginning with a word |
| regex | made of rare identifiers: one followed by `\\W`, both ends of one around `\\w*`, or an alternation of two |

A text of several tiles repeats its source, so a needle has as many places in each tile.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

PLACES = 5
"""The most places of a rare identifier in each tile."""
_WINDOW_BYTES = 4096
_WINDOWS = 200
_TRIES = 4000

_TOKEN = re.compile(r"(?<!\w)[A-Za-z0-9_]{8,20}(?!\w)")
_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{8,11}(?![A-Za-z])")
_HANZI = re.compile(r"[\u4e00-\u9fff]{4,7}")
_THREE_HANZI = re.compile(r"[\u4e00-\u9fff]{3}")
_COMMON = re.compile(r"[A-Za-z]{5,}|[\u4e00-\u9fff]{2}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class Needle:
    """One query and its answer."""

    kind: str
    query: str
    """The needle, or the pattern."""
    places: int
    """Non-overlapping matches in the whole text."""


def choose(data: bytes, tiles: int, each: int, seed: int) -> list[Needle]:
    """Up to `each` needles of every kind, from a text in UTF-8."""
    dice = random.Random(seed)
    windows = [_window(data, dice) for _ in range(_WINDOWS)]
    chinese = sum(map(len, windows)) < 2 * sum(len(window.encode()) for window in windows) // 3
    token, word = (_HANZI, _THREE_HANZI) if chinese else (_TOKEN, _WORD)

    def draw_rare() -> str:
        result = token.findall(_window(data, dice))
        picked: str = dice.choice(result) if result else ""
        return picked if picked and _is_rare(data, picked.encode(), PLACES * tiles) else ""

    def draw_absent() -> str:
        letters = "".join(token.findall(_window(data, dice))) if chinese else _LETTERS
        made = (
            "".join(dice.choices(letters, k=dice.randint(4, 7) if chinese else dice.randint(8, 20))) if letters else ""
        )
        return made if made.encode() not in data else ""

    def draw_phrase() -> str:
        window = _window(data, dice)
        starts = [match.start() for match in re.finditer(r"\b\w", window)]
        start = dice.choice(starts) if starts else 0
        said = window[start:].encode()[: dice.randint(15, 29)].decode(errors="ignore").split("\n")[0].rstrip()
        return said if len(said.encode()) >= 15 and "  " not in said else ""

    seen = [result for window in windows for result in word.findall(window)]
    common = Counter(result for window in windows for result in _COMMON.findall(window))
    rare = _distinct(draw_rare, each)
    drawn = {
        "rare identifier": rare,
        "absent identifier": _distinct(draw_absent, each),
        "word": dice.sample(sorted(set(seen)), min(each, len(set(seen)))),
        "common word": [result for result, _ in common.most_common(min(each, 2))],
        "phrase": _distinct(draw_phrase, each),
    }
    needles = [Needle(kind, query, data.count(query.encode())) for kind, some in drawn.items() for query in some]
    return needles + [_pattern(data, rare, number) for number in range(len(rare))]


def _pattern(data: bytes, rare: list[str], number: int) -> Needle:
    """A regular expression in one of three forms, by its number."""
    result, other = rare[number], rare[number - 1]
    head = result[: 2 * len(result) // 3]  # at least five bytes: shorter ones no filter has
    match number % 3:
        case 0:
            pattern, literals = f"{result}\\W", [result]
        case 1:
            pattern, literals = f"{head}\\w*{result[len(head) + 1 :]}", [head]
        case _:
            pattern, literals = f"{result}|{other}", [result, other]
    lines = {line for literal in literals for line in _lines(data, literal.encode())}
    return Needle("regex", pattern, sum(len(re.findall(pattern, data[slice(*line)].decode())) for line in lines))


def _lines(data: bytes, literal: bytes) -> list[tuple[int, int]]:
    """The first and last positions of the lines that hold a literal, newlines included."""
    result, offset = [], data.find(literal)
    while offset >= 0:
        stop = data.find(b"\n", offset) + 1 or len(data)
        result.append((data.rfind(b"\n", 0, offset) + 1, stop))
        offset = data.find(literal, stop)
    return result


def _is_rare(data: bytes, needle: bytes, most: int) -> bool:
    """Whether the needle is in at most `most` places; stops at the next one."""
    offset = -len(needle)
    for _ in range(most + 1):
        offset = data.find(needle, offset + len(needle))
        if offset < 0:
            return True
    return False


def _distinct(draw: Callable[[], str], most: int) -> list[str]:
    """Up to `most` different results of `draw`; an empty one is a miss."""
    seen: dict[str, None] = {}
    for _ in range(_TRIES):
        if len(seen) == most:
            break
        if result := draw():
            seen[result] = None
    return list(seen)


def _window(data: bytes, dice: random.Random) -> str:
    offset = dice.randrange(max(len(data) - _WINDOW_BYTES, 1))
    return data[offset : offset + _WINDOW_BYTES].decode(errors="ignore")
