"""Changes of documents: where they lie in the text, and the frames that hold them, stored again with the new text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from monocontext.engine.malloc import give_back_memory
from monocontext.format.codec import encode, frame_end
from monocontext.format.documents import DocumentPage
from monocontext.format.index import FrameRecord
from monocontext.records import NamedTuple, dataclass
from monocontext.stores.parallel import at_once
from monocontext.writing.input_options import HEADER
from monocontext.writing.segments import SegmentLayout, Segments, Written
from monocontext.writing.splice import Stretch
from monocontext.writing.stored_text import StoredText

_FULL_GROUP_BYTES = 4 << 20
"""A group of at least this much old text is not joined with a change in the next frame, unless they overlap."""
_GROUPS_AT_ONCE = 8
"""Groups that are stored again in parallel, which bounds the memory."""


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
class Group:
    """Neighbouring frames [first, stop) of the old text with changes, which are stored again together."""

    first: int
    stop: int
    places: list[ChangedPlace]


def places_of(pages: Sequence[DocumentPage], wanted: Mapping[int, Change], characters: int) -> list[ChangedPlace]:
    """The places of documents whose text changes, in order.

    `wanted`: changes by document number; `characters`: the length of the text.
    """
    results: list[ChangedPlace] = []
    firsts = [page.first for page in pages]
    for number in sorted(wanted):
        if wanted[number].keeps_text:
            continue
        n = bisect_right(firsts, number) - 1
        page, i = pages[n], number - firsts[n]
        before = page.stops[i - 1] if i else pages[n - 1].stops[-1] if n else 0
        is_last = i + 1 == len(page)
        after = page.starts[i + 1] if not is_last else pages[n + 1].starts[0] if n + 1 < len(pages) else characters
        start, stop = page.starts[i], page.stops[i]
        results.append(ChangedPlace(number, page.raw_name(i), wanted[number], before, start, stop, after > stop))
    return results


def grouped(text: StoredText, places: Iterable[ChangedPlace]) -> list[Group]:
    """Group changes; those in the same or neighbouring frames share a group."""
    groups: list[Group] = []
    frames = text.root.frames
    for location in places:
        is_inside = location.first_affected < text.root.characters
        first = text.locate(location.first_affected).number if is_inside else max(frames - 1, 0)
        is_empty = location.stop_affected == location.first_affected
        last = first if is_empty else text.locate(location.stop_affected - 1).number
        stop = min(last + 1, frames)  # a text of empty documents has no frames
        previous = groups[-1] if groups else None
        if previous and (
            first < previous.stop or (first == previous.stop and _bytes_of(text, previous) < _FULL_GROUP_BYTES)
        ):
            previous.stop = max(previous.stop, stop)
            previous.places.append(location)
        else:
            groups.append(Group(first, stop, [location]))
    return groups


def stored_again(text: StoredText, groups: Sequence[Group]) -> tuple[list[Stretch], Written]:
    """Store the frames of these groups with the new texts (1 PUT for 16 MiB), a few groups at once, and complete their
    places."""
    root = text.root
    segments = Segments(text.store.put, SegmentLayout(root.frame_bytes, codec=root.codec))
    stretches: list[Stretch] = []
    for number in range(0, len(groups), _GROUPS_AT_ONCE):
        some = groups[number : number + _GROUPS_AT_ONCE]
        rewritten = at_once(lambda group: _rewritten(text, group), some, _GROUPS_AT_ONCE)
        for group, frames in zip(some, rewritten, strict=True):
            for stored, record in frames:
                segments.add(stored, record)
            stretches.append(Stretch(group.first, group.stop, len(frames)))
        if len(some) == _GROUPS_AT_ONCE:
            give_back_memory()
    return stretches, segments.finish()


def _rewritten(text: StoredText, group: Group) -> list[tuple[bytes, FrameRecord]]:
    """The new frames of a group, each as its stored bytes and record.

    Reads the whole text of the group, or of one above 8 MiB only the parts that stay.
    """
    begin, end = text.first_character(group.first), text.first_character(group.stop)
    whole = text.read(begin, end) if _bytes_of(text, group) < 2 * _FULL_GROUP_BYTES else None

    def read(start: int, stop: int) -> str:
        return text.read(start, stop) if whole is None else whole[start - begin : stop - begin]

    done = begin
    parts: list[str] = []
    for location in group.places:
        _find_header_and_newline(read, location)
        parts += [read(done, location.start - location.header_characters), location.new_text]
        done = location.stop + location.drops_newline
    parts.append(read(done, end))
    data = "".join(parts).encode()
    return [encode(frame, text.root.codec) for frame in _cut(data, text.root.frame_bytes)]


def _bytes_of(text: StoredText, group: Group) -> int:
    """The length of the old text of a group, in bytes."""
    return text.first_byte(group.stop) - text.first_byte(group.first)


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
