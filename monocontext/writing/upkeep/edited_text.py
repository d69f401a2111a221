"""Store again the frames that hold changed documents; all other frames keep their objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from monocontext.engine.fetch.threads import in_threads
from monocontext.engine.malloc import give_back_memory
from monocontext.engine.reader import Reader
from monocontext.format.codec import encode, frame_end
from monocontext.format.documents import DocumentPage
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.records import NamedTuple, dataclass
from monocontext.writing.input_options import HEADER
from monocontext.writing.pages import single_runs
from monocontext.writing.tail import Pieces
from monocontext.writing.upkeep.rewrite import first_byte, first_character, records

_FRAMES_AT_ONCE = 32
_AT_ONCE_BYTES = 4 << 20
"""Changes in neighbouring frames share a stretch until that has so much text."""
_REQUESTS = 8
"""The number of stretches that are made at once."""


class Change(NamedTuple):
    """The change of one document."""

    text: str | None
    """The new text; None to delete the document."""
    metadata: bytes | None = None
    """The new metadata; None to keep the old ones."""
    keeps_text: bool = False
    """Whether only the metadata change."""

    @property
    def deletes(self) -> bool:
        return self.text is None and not self.keeps_text


@dataclass(slots=True)
class Spot:
    """The place of a changed document in the old text, in characters."""

    number: int
    name: bytes
    change: Change
    before: int
    """The end of the document before it."""
    start: int
    stop: int
    has_more: bool
    """Whether text that belongs to no document follows it."""
    header: int = 0
    """The length of its header line, if that is deleted with it."""
    newline: int = 0
    """1 if the newline after it, which belongs to no document, is removed with it, else 0."""

    @property
    def low(self) -> int:
        """The first character that may change: that of its header line, if that may be deleted."""
        gap = self.start - self.before
        is_headed = self.change.text is None and 0 < gap <= len(HEADER) + len(self.name) + 1
        return self.before if is_headed else self.start

    @property
    def high(self) -> int:
        """The end of the characters that may change: with the newline after it."""
        return self.stop + (1 if self.has_more else 0)

    @property
    def new_text(self) -> str:
        """The document, and a newline after it if it does not end in one."""
        text = self.change.text or ""
        return text if not text or text.endswith("\n") else text + "\n"


@dataclass(slots=True)
class Stretch:
    """Neighbouring frames, `first` to `last`, that other frames replace."""

    first: int
    last: int
    spots: list[Spot]
    frames: list[FrameRecord]
    """The new frames."""

    @property
    def stop(self) -> int:
        return self.last + 1

    @property
    def grown(self) -> int:
        """The change in the number of frames."""
        return len(self.frames) - (self.stop - self.first)


def spots_of(pages: Sequence[DocumentPage], wanted: Mapping[int, Change], characters: int) -> list[Spot]:
    """The places of the documents whose text changes, in a text of so many characters."""
    found = list[Spot]()
    before = 0
    waiting: Spot | None = None
    for page in pages:
        for i in range(len(page)):
            start, stop = page.starts[i], page.stops[i]
            if waiting:
                waiting.has_more = start > waiting.stop
                waiting = None
            if (change := wanted.get(page.first + i)) is not None and not change.keeps_text:
                waiting = Spot(page.first + i, page.raw_name(i), change, before, start, stop, False)
                found.append(waiting)
            before = stop
    if waiting:
        waiting.has_more = characters > waiting.stop
    return found


def group(text: Reader, spots: Iterable[Spot]) -> list[Stretch]:
    """The ranges of frames that changes concern. Changes in the same or neighbouring frames share one."""
    found: list[Stretch] = []
    end = text.manifest.frames - 1
    for spot in spots:
        first = text.locate(spot.low).number if spot.low < text.characters else end
        last = text.locate(spot.high - 1).number if spot.high > spot.low else first
        first, last = max(first, 0), max(last, first)
        if end < 0:
            first, last = 0, -1  # a text of empty documents has no frames
        near = found[-1] if found else None
        if near and (first <= near.last or (first == near.stop and _bytes_of(text, near) < _AT_ONCE_BYTES)):
            near.last = max(near.last, last)
            near.spots.append(spot)
        else:
            found.append(Stretch(first, last, [spot], []))
    return found


def with_neighbours(text: Reader, stretches: Sequence[Stretch]) -> list[Stretch]:
    """Add to the stretches all other frames that are in an object with one of theirs."""
    frames = text.manifest.frames
    objects = {frame.object for stretch in stretches for frame in records(text, stretch.first, stretch.stop)}
    found: list[Stretch] = []
    stops = [0, *(stretch.stop for stretch in stretches)]
    for start, stretch in zip(stops, [*stretches, Stretch(frames, frames - 1, [], [])], strict=True):
        for frame in records(text, start, max(stretch.first, start)):
            if frame.object in objects and "://" not in frame.object:
                last = found[-1] if found else None
                if last and not last.spots and last.stop == frame.number and last.stop - last.first < _FRAMES_AT_ONCE:
                    last.last = frame.number
                else:
                    found.append(Stretch(frame.number, frame.number, [], []))
        if stretch.spots:
            found.append(stretch)
    return found


def rewrite(text: Reader, stretch: Stretch) -> list[tuple[bytes, FrameRecord]]:
    """Make the new frames of a stretch: stored form and record of each.

    Reads the whole text of the stretch, or of one above 8 MiB only the parts that stay.
    """
    begin, stop = first_character(text, stretch.first), first_character(text, stretch.stop)
    whole = text.read(begin, stop) if _bytes_of(text, stretch) < 2 * _AT_ONCE_BYTES else None

    def read(start: int, stop: int) -> str:
        return text.read(start, stop) if whole is None else whole[start - begin : stop - begin]

    at = begin
    parts: list[str] = []
    for spot in stretch.spots:
        _look_around(read, spot)
        parts += [read(at, spot.start - spot.header), spot.new_text]
        at = spot.stop + spot.newline
    parts.append(read(at, stop))
    data = "".join(parts).encode()
    return [encode(frame, text.manifest.codec) for frame in _cut(data, text.manifest.frame_bytes)]


def _bytes_of(text: Reader, stretch: Stretch) -> int:
    """The length of the old text of a stretch, in bytes."""
    return first_byte(text, stretch.stop) - first_byte(text, stretch.first)


def _look_around(read: Callable[[int, int], str], spot: Spot) -> None:
    """Set `newline` of a document, and `header` if it is deleted."""
    if spot.has_more and spot.stop > spot.start:
        spot.newline = int(read(spot.stop - 1, spot.stop) != "\n" and read(spot.stop, spot.stop + 1) == "\n")
    if spot.low < spot.start:
        header = HEADER.replace("{path}", spot.name.decode())
        if read(spot.low, spot.start).removeprefix("\n") == header:
            spot.header = len(header)


def _cut(data: bytes, frame_bytes: int) -> Iterator[bytes]:
    """Yield frames of about the same length. A short last frame would escape later changes around it, and keep its
    object in use."""
    start = 0
    while (count := round((len(data) - start) / frame_bytes)) > 1:
        stop = frame_end(data, start, (len(data) - start) // count)
        yield data[start:stop]
        start = stop
    if start < len(data):
        yield data[start:]


def store_frames(text: Reader, pieces: Pieces, stretches: Sequence[Stretch]) -> list[FrameRun]:
    """Rewrite the stretches, a few at once, and store their new frames. Returns one run for each of these."""
    for at in range(0, len(stretches), _REQUESTS):
        some = stretches[at : at + _REQUESTS]
        rewritten = in_threads(lambda stretch: rewrite(text, stretch), some, _REQUESTS, "monocontext-edit")
        for stretch, frames in zip(some, rewritten, strict=True):
            stretch.frames = [record for _, record in frames]
            for stored, record in frames:
                pieces.add(stored, record)
        give_back_memory()
    pieces.finish()
    return single_runs(pieces.runs, pieces.records)
