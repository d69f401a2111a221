"""Rewrite the frames that hold changed documents. All other frames keep their objects, except when the old text must be
removed for good (`with_shared_objects`)."""

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

_MOST_STRETCH_FRAMES = 32
"""The most frames of a stretch that has no change itself, but shares an object with one that does."""
_FULL_STRETCH_BYTES = 4 << 20
"""A stretch of at least this much old text is not joined with a change in the next frame, unless they overlap."""
_STRETCHES_AT_ONCE = 8
"""Stretches that are rewritten in parallel, which bounds the memory."""


class Change(NamedTuple):
    """The change of one document."""

    text: str | None
    """The new text; None to delete the document."""
    metadata: bytes | None = None
    """The new metadata; None to keep the old ones."""
    keeps_text: bool = False
    """Whether the text stays and only the metadata change; `text` is ignored then."""

    @property
    def deletes(self) -> bool:
        return self.text is None and not self.keeps_text


@dataclass(slots=True)
class ChangedPlace:
    """The place of a changed document in the old text, in characters."""

    number: int
    name: bytes
    change: Change
    previous_stop: int
    """The end of the document before it."""
    start: int
    stop: int
    has_text_after: bool
    """Whether text that belongs to no document follows it."""
    header_characters: int = 0
    """The length of its header line, if that is deleted with it."""
    drops_newline: bool = False
    """Whether the newline after it, which belongs to no document, is removed with it."""

    @property
    def first_affected(self) -> int:
        """The first character that may change: that of a header line before it, if the document is deleted and the gap
        is short enough to be one."""
        gap = self.start - self.previous_stop
        is_headed = self.change.text is None and 0 < gap <= len(HEADER) + len(self.name) + 1
        return self.previous_stop if is_headed else self.start

    @property
    def stop_affected(self) -> int:
        """The end of the characters that may change: with the newline after it."""
        return self.stop + (1 if self.has_text_after else 0)

    @property
    def new_text(self) -> str:
        """The document, and a newline after it if it does not end in one."""
        text = self.change.text or ""
        return text if not text or text.endswith("\n") else text + "\n"


@dataclass(slots=True)
class Stretch:
    """Neighbouring frames [first_frame, last_frame] of the old text, which new ones replace."""

    first_frame: int
    last_frame: int
    places: list[ChangedPlace]
    frames: list[FrameRecord]
    """The new frames; empty until they are made."""

    @property
    def stop_frame(self) -> int:
        return self.last_frame + 1

    @property
    def grown(self) -> int:
        """How many more frames there are afterwards; negative if fewer."""
        return len(self.frames) - (self.stop_frame - self.first_frame)


def places_of(pages: Sequence[DocumentPage], wanted: Mapping[int, Change], characters: int) -> list[ChangedPlace]:
    """The places of documents whose text changes, in order.

    `wanted`: changes by document number; `characters`: the length of the text.
    """
    found = list[ChangedPlace]()
    previous_stop = 0
    waiting: ChangedPlace | None = None
    for page in pages:
        for i in range(len(page)):
            start, stop = page.starts[i], page.stops[i]
            if waiting:
                waiting.has_text_after = start > waiting.stop
                waiting = None
            if (change := wanted.get(page.first + i)) is not None and not change.keeps_text:
                waiting = ChangedPlace(page.first + i, page.raw_name(i), change, previous_stop, start, stop, False)
                found.append(waiting)
            previous_stop = stop
    if waiting:
        waiting.has_text_after = characters > waiting.stop
    return found


def group(text: Reader, places: Iterable[ChangedPlace]) -> list[Stretch]:
    """Group changes into stretches; those in the same or neighbouring frames share one."""
    found: list[Stretch] = []
    end = text.manifest.frames - 1
    for place in places:
        first = text.locate(place.first_affected).number if place.first_affected < text.characters else end
        last = text.locate(place.stop_affected - 1).number if place.stop_affected > place.first_affected else first
        first, last = max(first, 0), max(last, first)
        if end < 0:
            first, last = 0, -1  # a text of empty documents has no frames
        previous = found[-1] if found else None
        if previous and (
            first <= previous.last_frame
            or (first == previous.stop_frame and _bytes_of(text, previous) < _FULL_STRETCH_BYTES)
        ):
            previous.last_frame = max(previous.last_frame, last)
            previous.places.append(place)
        else:
            found.append(Stretch(first, last, [place], []))
    return found


def with_shared_objects(text: Reader, stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches, and others for all frames that share an object with them, in order, so that no object with old
    text stays in use."""
    frames = text.manifest.frames
    objects = {
        frame.object for stretch in stretches for frame in records(text, stretch.first_frame, stretch.stop_frame)
    }
    objects = {name for name in objects if "://" not in name}  # a foreign object is not ours to remove
    found: list[Stretch] = []
    stops = [0, *(stretch.stop_frame for stretch in stretches)]
    end = Stretch(frames, frames - 1, [], [])  # an empty one, so that the frames after the last stretch are visited
    for start, stretch in zip(stops, [*stretches, end], strict=True):
        for frame in records(text, start, max(stretch.first_frame, start)):
            if frame.object not in objects:
                continue
            previous = found[-1] if found else None
            if (
                previous
                and not previous.places
                and previous.stop_frame == frame.number
                and previous.stop_frame - previous.first_frame < _MOST_STRETCH_FRAMES
            ):
                previous.last_frame = frame.number
            else:
                found.append(Stretch(frame.number, frame.number, [], []))
        if stretch.places:
            found.append(stretch)
    return found


def rewrite(text: Reader, stretch: Stretch) -> list[tuple[bytes, FrameRecord]]:
    """The new frames of a stretch, each as its stored bytes and record. Completes its places.

    Raises as `Reader.read`. Reads the whole text of the stretch, or of one above 8 MiB only the parts that stay.
    """
    begin, end = first_character(text, stretch.first_frame), first_character(text, stretch.stop_frame)
    whole = text.read(begin, end) if _bytes_of(text, stretch) < 2 * _FULL_STRETCH_BYTES else None

    def read(start: int, stop: int) -> str:
        return text.read(start, stop) if whole is None else whole[start - begin : stop - begin]

    at = begin
    parts: list[str] = []
    for place in stretch.places:
        _find_header_and_newline(read, place)
        parts += [read(at, place.start - place.header_characters), place.new_text]
        at = place.stop + place.drops_newline
    parts.append(read(at, end))
    data = "".join(parts).encode()
    return [encode(frame, text.manifest.codec) for frame in _cut(data, text.manifest.frame_bytes)]


def _bytes_of(text: Reader, stretch: Stretch) -> int:
    """The length of the old text of a stretch, in bytes."""
    return first_byte(text, stretch.stop_frame) - first_byte(text, stretch.first_frame)


def _find_header_and_newline(read: Callable[[int, int], str], place: ChangedPlace) -> None:
    """Look into the text, and set `drops_newline` and, for a deleted document, `header_characters`."""
    if place.has_text_after and place.stop > place.start:
        place.drops_newline = read(place.stop - 1, place.stop) != "\n" and read(place.stop, place.stop + 1) == "\n"
    if place.first_affected < place.start:
        header = HEADER.replace("{path}", place.name.decode())
        if read(place.first_affected, place.start).removeprefix("\n") == header:
            place.header_characters = len(header)


def _cut(data: bytes, frame_bytes: int) -> Iterator[bytes]:
    """Yield frames of about the same length: a short last one could be missed by later changes around it, and would
    keep its object in use."""
    start = 0
    while (count := round((len(data) - start) / frame_bytes)) > 1:
        stop = frame_end(data, start, (len(data) - start) // count)
        yield data[start:stop]
        start = stop
    if start < len(data):
        yield data[start:]


def store_frames(text: Reader, pieces: Pieces, stretches: Sequence[Stretch]) -> list[FrameRun]:
    """Rewrite the stretches, a few at once, store their new frames, and set `Stretch.frames`. Returns a run for each
    new frame, in order."""
    for at in range(0, len(stretches), _STRETCHES_AT_ONCE):
        some = stretches[at : at + _STRETCHES_AT_ONCE]
        rewritten = in_threads(lambda stretch: rewrite(text, stretch), some, _STRETCHES_AT_ONCE, "monocontext-edit")
        for stretch, frames in zip(some, rewritten, strict=True):
            stretch.frames = [record for _, record in frames]
            for stored, record in frames:
                pieces.add(stored, record)
        give_back_memory()
    pieces.finish()
    return single_runs(pieces.runs, pieces.records)
