"""Make texts of any size: one frame of filler, repeated, with planted lines at chosen places.

All lines have the same number of characters, so a planted line replaces a whole one, and all frames are equally long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random

from tests.virtual import VirtualStore, virtual_context  # the tests simulate such texts too

FRAME_BYTES = 256 << 10
WIDTH = 128  # characters of a line, its newline included; a typical log line is as long
CJK_WIDTH = 40


@dataclass(slots=True)
class Text:
    """A text in which lines can be planted before it is stored."""

    frames: int
    filler: str  # the text of each frame without planted lines
    width: int = WIDTH
    planted: dict[int, str] = field(default_factory=dict)  # the texts of frames with planted lines, by number
    truth: str = ""  # the answer that a program over this text must find
    _store: VirtualStore | None = field(default=None, repr=False)  # kept, since a terabyte takes a minute

    @property
    def characters(self) -> int:
        return self.frames * len(self.filler)

    def plant(self, share: float, *lines: str) -> None:
        """Replace the lines from `share` of the text on, a fraction from 0 to 1, with `lines`."""
        self._store = None
        start = int(share * (self.characters - 1)) // self.width * self.width
        for number, line in enumerate(lines):
            self._overwrite(start + number * self.width, line)

    def _overwrite(self, start: int, line: str) -> None:
        """Replace the whole line that begins at an offset of the text."""
        if len(line) >= self.width or "\n" in line:
            raise ValueError(f"a planted line must have at most {self.width - 1} characters, no newline: {line!r}")
        frame, offset = divmod(start, len(self.filler))
        text = self.planted.get(frame, self.filler)
        self.planted[frame] = text[:offset] + line.ljust(self.width - 1) + "\n" + text[offset + self.width :]

    def store(self) -> VirtualStore:
        """A store with the context. Frames are not compressed: a stored byte is a byte of text."""
        if self._store is None:
            self._store = virtual_context(self.frames, self.filler, self.planted, filters=True, distinct=True)
        return self._store


def text_of(kind: str, frames: int) -> Text:
    """A text of `logs`, `prose`, `code` or `cjk` without planted lines."""
    return Text(frames, filler(kind), CJK_WIDTH if kind == "cjk" else WIDTH)


def planted_text(kind: str, truth: str, *lines: tuple[float, str]) -> Callable[[int], Text]:
    """A function that makes a text of a number of frames with these lines, each planted at its share of the text."""

    def make(frames: int) -> Text:
        text = text_of(kind, frames)
        for share, line in lines:
            text.plant(share, line)
        text.truth = truth
        return text

    return make


@cache
def filler(kind: str) -> str:
    """One frame of `logs`, `prose`, `code` or `cjk`; the same in every run."""
    dice = Random(f"filler {kind}")
    width = CJK_WIDTH if kind == "cjk" else WIDTH
    row_bytes = (width - 1) * 3 + 1 if kind == "cjk" else width
    make = {"logs": _log, "prose": _prose, "code": _code, "cjk": _cjk}[kind]
    return "".join(
        make(dice)[: width - 1].ljust(width - 1, "　" if kind == "cjk" else " ") + "\n"
        for _ in range(FRAME_BYTES // row_bytes)
    )


_WORDS = tuple(
    "".join(Random(f"word {number}").choices("etaoinshrdlucmfwyp", k=2 + number % 9)) for number in range(2000)
)
LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "WARN")


def _log(dice: Random) -> str:
    clock = f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"
    head = f"2026-03-01T{clock} {dice.choice(LEVELS)} host-{dice.randrange(40)} req={dice.getrandbits(48):012x}"
    return f"{head} {' '.join(dice.choices(_WORDS, k=20))}"


def _prose(dice: Random) -> str:
    return " ".join(dice.choices(_WORDS, k=40)).capitalize()


def _code(dice: Random) -> str:
    name, other = (f"{dice.choice(_WORDS)}_{dice.choice(_WORDS)}" for _ in range(2))
    return dice.choice((f"def {name}(self, {other}):", f"    {name} = {other}({name})", f"    return {name}.{other}"))


_TERMS = tuple("".join(map(chr, Random(f"term {n}").choices(range(0x4E00, 0x9000), k=1 + n % 3))) for n in range(1500))
_FREQUENCIES = tuple(1 / (rank + 1) for rank in range(len(_TERMS)))  # Zipf's law: no frame has every pair of characters


def _cjk(dice: Random) -> str:
    return "".join(dice.choices(_TERMS, _FREQUENCIES, k=CJK_WIDTH))


def count_in(text: Text, needle: str) -> int:
    """The number of occurrences of a needle, provided that none crosses two frames."""
    count_in_filler = text.filler.count(needle)
    return count_in_filler * text.frames + sum(piece.count(needle) - count_in_filler for piece in text.planted.values())
