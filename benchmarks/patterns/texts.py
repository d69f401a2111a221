"""Make texts of any size with a planted truth: one frame of filler over and over, and our lines at chosen places.

Each kind of text has lines of one width in characters, so that a planted line takes the place of whole lines and every
frame has as many characters as the filler. Frames are some 256 KiB, the size that `publish` cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random

from monocontext.testing import VirtualStore, virtual_context

FRAME_BYTES = 256 << 10
WIDTH = 128
"""Characters of a line of ASCII, its newline included; as long as a typical log line."""
CJK_WIDTH = 40


@dataclass(slots=True)
class Text:
    """A context in the making."""

    frames: int
    filler: str
    width: int = WIDTH
    planted: dict[int, str] = field(default_factory=dict)
    truth: str = ""
    """The answer that a program over this text must give."""
    _stores: dict[bool, VirtualStore] = field(default_factory=dict, repr=False)
    """By whether it has filters: a terabyte takes a minute to lay out."""

    @property
    def characters(self) -> int:
        return self.frames * len(self.filler)

    @property
    def bytes(self) -> int:
        plain = len(self.filler.encode())
        return self.frames * plain + sum(len(text.encode()) - plain for text in self.planted.values())

    def plant(self, place: float, *lines: str) -> int:
        """Put lines at `place`, a share of the whole, over lines of filler; gives the character they start at."""
        self._stores.clear()
        at = int(place * (self.characters - 1)) // self.width * self.width
        for number, line in enumerate(lines):
            self._overwrite(at + number * self.width, line)
        return at

    def _overwrite(self, at: int, line: str) -> None:
        if len(line) >= self.width or "\n" in line:
            raise ValueError(f"a planted line has at most {self.width - 1} characters, not {len(line)}: {line!r}")
        frame, offset = divmod(at, len(self.filler))
        text = self.planted.get(frame, self.filler)
        self.planted[frame] = text[:offset] + line.ljust(self.width - 1) + "\n" + text[offset + self.width :]

    def store(self, *, filters: bool) -> VirtualStore:
        """The context as a store, published raw: a stored byte is a byte of text."""
        if filters not in self._stores:
            made = virtual_context(self.frames, self.filler, self.planted, filters=filters, distinct=True)
            self._stores[filters] = made
        return self._stores[filters]


def text_of(kind: str, frames: int) -> Text:
    """An unplanted text of `logs`, `prose`, `code` or `cjk`."""
    return Text(frames, filler(kind), CJK_WIDTH if kind == "cjk" else WIDTH)


def planted(kind: str, truth: str, *lines: tuple[float, str]) -> Callable[[int], Text]:
    """A function from a number of frames to a text with these lines, each at its share of the whole."""

    def make(frames: int) -> Text:
        text = text_of(kind, frames)
        for place, line in lines:
            text.plant(place, line)
        text.truth = truth
        return text

    return make


@cache
def filler(kind: str) -> str:
    """One frame of a kind of text; the same in every run. Raises `ValueError` for no such kind."""
    dice = Random(f"filler {kind}")
    width = CJK_WIDTH if kind == "cjk" else WIDTH
    row_bytes = (width - 1) * 3 + 1 if kind == "cjk" else width
    makers = {"logs": _log, "prose": _prose, "code": _code, "cjk": _cjk}
    if kind not in makers:
        raise ValueError(f"no text {kind!r}: there are {', '.join(makers)}")
    make = makers[kind]
    return "".join(
        make(dice)[: width - 1].ljust(width - 1, "　" if kind == "cjk" else " ") + "\n"
        for _ in range(FRAME_BYTES // row_bytes)
    )


_WORDS = tuple(
    "".join(Random(f"word {number}").choices("etaoinshrdlucmfwyp", k=2 + number % 9)) for number in range(2000)
)
LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "WARN")


def words(dice: Random, count: int) -> str:
    return " ".join(dice.choices(_WORDS, k=count))


def _log(dice: Random) -> str:
    clock = f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"
    head = f"2026-03-01T{clock} {dice.choice(LEVELS)} host-{dice.randrange(40)} req={dice.getrandbits(48):012x}"
    return f"{head} {words(dice, 20)}"


def _prose(dice: Random) -> str:
    return words(dice, 40).capitalize()


def _code(dice: Random) -> str:
    name, other = (f"{dice.choice(_WORDS)}_{dice.choice(_WORDS)}" for _ in range(2))
    return dice.choice((f"def {name}(self, {other}):", f"    {name} = {other}({name})", f"    return {name}.{other}"))


_TERMS = tuple("".join(map(chr, Random(f"term {n}").choices(range(0x4E00, 0x9000), k=1 + n % 3))) for n in range(1500))
_FREQUENCIES = tuple(1 / (rank + 1) for rank in range(len(_TERMS)))
"""Words of a language follow Zipf's law; without it every pair of characters would be in every frame."""


def _cjk(dice: Random) -> str:
    return "".join(dice.choices(_TERMS, _FREQUENCIES, k=CJK_WIDTH))


def count_in(text: Text, needle: str) -> int:
    """How often a needle stands in the text, if no occurrence lies across two frames."""
    plain = text.filler.count(needle)
    return plain * text.frames + sum(piece.count(needle) - plain for piece in text.planted.values())
