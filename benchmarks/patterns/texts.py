"""Make texts of any size: one frame of filler, repeated, with planted lines at chosen places.

All lines have the same number of characters, so a planted line replaces a whole one, and all frames are equally long.

`ordered_context` makes a sorted text for bisection: records of fixed width, each of which ends with a line that holds
its day. Records differ in that line only, so a checksum extends the one of the common part by one line. A text of 4
million records (1 TB) takes seconds to make; bytes are computed when they are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from random import Random

import google_crc32c

from monocontext.format.codec import describe
from monocontext.format.index import FRAMES_PER_PAGE, FrameRun, encode_page, page_ref
from monocontext.format.manifest import ROOT_KEY, Manifest, generation_key
from monocontext.format.refs import PageRef
from tests.virtual import VirtualStore, virtual_context

FRAME_BYTES = 256 << 10
WIDTH = 128  # characters of a line, its newline included; a typical log line is as long
CJK_WIDTH = 40


@dataclass(slots=True)
class Text:
    """A text that can be planted with lines, then stored."""

    frames: int
    filler: str
    width: int = WIDTH
    planted: dict[int, str] = field(default_factory=dict)
    truth: str = ""  # the answer that a program over this text must find
    _store: VirtualStore | None = field(default=None, repr=False)  # kept, since a terabyte takes a minute

    @property
    def characters(self) -> int:
        return self.frames * len(self.filler)

    def plant(self, place: float, *lines: str) -> None:
        """Replace the lines from `place` on, a fraction of the text from 0 to 1, with `lines`."""
        self._store = None
        start = int(place * (self.characters - 1)) // self.width * self.width
        for number, line in enumerate(lines):
            self._overwrite(start + number * self.width, line)

    def _overwrite(self, start: int, line: str) -> None:
        """Replace the whole line that begins at an offset of the text."""
        if len(line) >= self.width or "\n" in line:
            raise ValueError(f"a planted line has at most {self.width - 1} characters and no newline: shorten {line!r}")
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
    """One frame of a kind of text; the same in every run."""
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
    plain = text.filler.count(needle)
    return plain * text.frames + sum(piece.count(needle) - plain for piece in text.planted.values())


RECORDS_PER_SEGMENT = 64
_BODY = filler("logs")[:-WIDTH].encode()
RECORD_BYTES = len(_BODY) + WIDTH


def last_line(number: int) -> bytes:
    """The line that ends record `number`: days go up by one to three a record."""
    return f"== end of day {day_of(number):012d} == record {number:012d} ==".ljust(WIDTH - 1).encode() + b"\n"


def day_of(number: int) -> int:
    """The day of a record. Knuth's multiplicative hash tosses a coin for each record, whatever was asked before."""
    return 2 * number + (number * 2654435761 >> 7) % 2


@lru_cache(maxsize=1)
def ordered_context(records: int) -> VirtualStore:
    """A store with a context of `records` records, each a frame."""
    common = int(google_crc32c.value(_BODY))
    shape = describe(_BODY + last_line(0), _BODY + last_line(0))
    objects: dict[str, tuple[int, Callable[[int, int], bytes]]] = {}
    pages: list[PageRef] = []
    for first in range(0, records, FRAMES_PER_PAGE):
        numbers = range(first, min(first + FRAMES_PER_PAGE, records))
        rows = [shape._replace(crc32c=google_crc32c.extend(common, last_line(number))) for number in numbers]
        runs = []
        for start in range(numbers.start, numbers.stop, RECORDS_PER_SEGMENT):
            count = min(RECORDS_PER_SEGMENT, numbers.stop - start)
            digest = hashlib.sha256(f"records {start} {count}".encode()).hexdigest()
            key = f"segments/{digest[:32]}.seg"
            objects[key] = (count * RECORD_BYTES, _reading(start))
            runs.append(FrameRun(key, 0, count, "raw"))
        data = encode_page(runs, rows)
        ref = page_ref(data, rows, pages[-1] if pages else None)
        objects[ref.key] = (len(data), lambda low, high, data=data: data[low:high])  # type: ignore[misc]
        pages.append(ref)
    root = Manifest(
        generation=1, write_id="virtual", created="2026-01-01T00:00:00+00:00", pages=tuple(pages), final_newline=True,
        stored_bytes=pages[-1].bytes, codec="raw",
    ).to_bytes()  # fmt: skip
    for key in (ROOT_KEY, generation_key(1)):
        objects[key] = (len(root), lambda low, high: root[low:high])
    return VirtualStore(objects)


def _reading(first: int) -> Callable[[int, int], bytes]:
    """A function that gives bytes of the segment that begins with record `first`."""

    def read(start: int, stop: int) -> bytes:
        low, high = start // RECORD_BYTES, -(-stop // RECORD_BYTES)
        whole = b"".join(_BODY + last_line(first + number) for number in range(low, high))
        return whole[start - low * RECORD_BYTES : stop - low * RECORD_BYTES]

    return read
