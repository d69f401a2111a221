"""Draw needles from a text by rule and seed, and count their places in the text itself.

| kind | rule |
|---|---|
| rare identifier | 8 to 20 letters, digits and underscores (Chinese: 4 to 7 characters), in 1 to 5 places |
| absent identifier | 8 to 20 letters and digits at random (Chinese: 4 to 7 characters of the text), in no place |
| word | 8 to 11 letters (Chinese: 3 characters), each of the sampled words as likely as any other |
| common word | the commonest of 5 letters or more (Chinese: 2 characters) |
| phrase | 15 to 29 bytes of one line, from the beginning of a word on |
| regex | from rare identifiers: one and a `\\W` behind it, the ends of one with `\\w*` between, one or another |

In a text of several tiles a place is one in each tile.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PLACES = 5
"""In which a rare identifier may be, in each tile."""
_WINDOW_BYTES = 4096
_WINDOWS = 200
_TRIES = 4000

_TOKEN = re.compile(r"(?<!\w)[A-Za-z0-9_]{8,20}(?!\w)")
_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{8,11}(?![A-Za-z])")
_HANZI = re.compile(r"[\u4e00-\u9fff]{4,7}")
_COMMON = re.compile(r"[A-Za-z]{5,}|[\u4e00-\u9fff]{2}")
_THREE_HANZI = re.compile(r"[\u4e00-\u9fff]{3}")


@dataclass(frozen=True, slots=True)
class Needle:
    """One query and its answer."""

    kind: str
    query: str
    """The needle, or the pattern."""
    places: int
    """Non-overlapping matches in the whole text."""


class Haystack:
    """A text as bytes."""

    def __init__(self, data: bytes, tiles: int = 1):
        self.data = data
        self.tiles = tiles

    def places(self, literal: str, most: int | None = None) -> int:
        """Non-overlapping places of a literal; stops counting above `most`."""
        needle = literal.encode()
        if most is None:
            return self.data.count(needle)
        found, at = 0, self.data.find(needle)
        while at >= 0 and found <= most:
            found += 1
            at = self.data.find(needle, at + len(needle))
        return found

    def matches(self, pattern: str, literal: str) -> int:
        """Matches of a pattern that stay in a line and hold `literal`."""
        needle, found, at = literal.encode(), 0, 0
        compiled = re.compile(pattern)
        while (at := self.data.find(needle, at)) >= 0:
            start, stop = self.data.rfind(b"\n", 0, at) + 1, self.data.find(b"\n", at)
            stop = len(self.data) if stop < 0 else stop
            found += sum(1 for _ in compiled.finditer(self.data[start : stop + 1].decode()))
            at = stop + 1
        return found


def choose(text: Haystack, each: int, seed: int) -> list[Needle]:
    """Up to `each` needles of every kind."""
    dice = random.Random(seed)
    chinese = len(text.data[: 1 << 20].decode(errors="ignore")) < 2 * (min(len(text.data), 1 << 20)) // 3
    rare = _rare(text, _HANZI if chinese else _TOKEN, each, dice)
    words = _distinct(text, _THREE_HANZI if chinese else _WORD, each, dice)
    common = _commonest(text, min(each, 2), dice)
    phrases = list(_drawn(lambda: _phrase(text, dice), each))
    needles = [Needle("rare identifier", found, text.places(found)) for found in rare]
    needles += [Needle("absent identifier", found, 0) for found in _absent(text, chinese, each, dice)]
    needles += [Needle("word", found, text.places(found)) for found in words]
    needles += [Needle("common word", found, text.places(found)) for found in common]
    needles += [Needle("phrase", found, text.places(found)) for found in phrases]
    needles += [_pattern(text, rare, number) for number in range(len(rare))]
    return needles


def _pattern(text: Haystack, rare: list[str], number: int) -> Needle:
    """The regular expression number `number`: three forms in turn."""
    found, other = rare[number], rare[number - 1]
    match number % 3:
        case 0:
            pattern = f"{found}\\W"
            places = text.matches(pattern, found)
        case 1:
            head = found[: 2 * len(found) // 3]  # at least five bytes: shorter ones no filter has
            pattern = f"{head}\\w*{found[len(head) + 1 :]}"
            places = text.matches(pattern, head)
        case _:
            pattern = f"{found}|{other}"
            places = text.places(found) + text.places(other)
    return Needle("regex", pattern, places)


def _rare(text: Haystack, token: re.Pattern[str], each: int, dice: random.Random) -> list[str]:
    most = PLACES * text.tiles

    def draw() -> str | None:
        found = _token(text, token, dice)
        return found if found and text.places(found, most) <= most else None

    return list(_drawn(draw, each))


def _absent(text: Haystack, chinese: bool, each: int, dice: random.Random) -> list[str]:
    def draw() -> str | None:
        if chinese:
            letters = _HANZI.findall(_window(text, dice))
            made = "".join(dice.choices("".join(letters), k=dice.randint(4, 7))) if letters else ""
        else:
            made = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=dice.randint(8, 20)))
        return made if made and made.encode() not in text.data else None

    return list(_drawn(draw, each))


def _distinct(text: Haystack, token: re.Pattern[str], each: int, dice: random.Random) -> list[str]:
    """Different tokens out of some hundred windows, each as likely as any other."""
    seen = {found for _ in range(_WINDOWS) for found in token.findall(_window(text, dice))}
    return dice.sample(sorted(seen), min(each, len(seen)))


def _commonest(text: Haystack, each: int, dice: random.Random) -> list[str]:
    """The words that some hundred windows hold most often."""
    seen = Counter(found for _ in range(_WINDOWS) for found in _COMMON.findall(_window(text, dice)))
    return [found for found, _ in seen.most_common(each)]


def _phrase(text: Haystack, dice: random.Random) -> str | None:
    window = _window(text, dice)
    words = list(re.finditer(r"\b\w", window))
    if not words:
        return None
    data = window[dice.choice(words).start() :].encode()[: dice.randint(15, 29)]
    found = data.decode(errors="ignore").split("\n")[0].rstrip()
    return found if len(found.encode()) >= 15 and "  " not in found else None


def _token(text: Haystack, token: re.Pattern[str], dice: random.Random) -> str | None:
    found = token.findall(_window(text, dice))
    return dice.choice(found) if found else None


def _window(text: Haystack, dice: random.Random) -> str:
    at = dice.randrange(max(len(text.data) - _WINDOW_BYTES, 1))
    return text.data[at : at + _WINDOW_BYTES].decode(errors="ignore")


def _drawn(draw: Callable[[], str | None], each: int) -> Iterator[str]:
    """Up to `each` different draws."""
    seen: set[str] = set()
    for _ in range(_TRIES):
        if len(seen) == each:
            return
        if (found := draw()) is not None and found not in seen:
            seen.add(found)
            yield found
