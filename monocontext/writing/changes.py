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
_GROUPS_AT_ONCE = 8  # groups that are stored again in parallel, which bounds the memory


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


class Patch(NamedTuple):
    """Characters [start, stop) of the old text, and those that replace them."""

    start: int
    """That of the document, or of its header line, which is deleted with it."""
    stop: int
    """That of the document, or of a newline after it that belongs to no document."""
    text: str
    """The new text of the document, with a newline at its end."""


class _Place(NamedTuple):
    """The place of a changed document in the old text, in characters."""

    number: int
    header: str
    """The header line that may precede it."""
    change: Change
    before: int
    """The end of the document before it."""
    start: int
    stop: int
    after: int
    """The start of the document after it."""

    @property
    def first_affected(self) -> int:
        """The first character that may change: that of a header line before a deleted document, if the gap is short
        enough to be one."""
        is_headed = self.change.deletes and 0 < self.start - self.before <= len(self.header) + 1
        return self.before if is_headed else self.start

    def patch(self, read: Callable[[int, int], str]) -> Patch:
        """The change of the text."""
        start, stop, text = self.start, self.stop, self.change.text or ""
        if self.after > stop > start and read(stop - 1, stop) != "\n" and read(stop, stop + 1) == "\n":
            stop += 1
        if self.first_affected < start and read(self.first_affected, start).removeprefix("\n") == self.header:
            start -= len(self.header)
        return Patch(start, stop, text if not text or text.endswith("\n") else text + "\n")


@dataclass(slots=True)
class _Group:
    """Neighbouring frames [first, stop) of the old text with changes, which are stored again together."""

    first: int
    stop: int
    places: list[_Place]


def stored_again(
    text: StoredText, pages: Sequence[DocumentPage], wanted: Mapping[int, Change]
) -> tuple[list[Stretch], Written, dict[int, Patch]]:
    """Store the frames of changed documents (`wanted`, by number) with the new texts (1 PUT for 16 MiB), a few groups
    at once. Returns also the changes of the text by number of the document."""
    root = text.root
    segments = Segments(text.store.put, SegmentLayout(root.frame_bytes, codec=root.codec))
    stretches: list[Stretch] = []
    patches: dict[int, Patch] = {}
    groups = _grouped(text, _places(pages, wanted, root.characters))
    for number in range(0, len(groups), _GROUPS_AT_ONCE):
        some = groups[number : number + _GROUPS_AT_ONCE]
        rewritten = at_once(lambda group: _rewritten(text, group), some, _GROUPS_AT_ONCE)
        for group, (frames, changed) in zip(some, rewritten, strict=True):
            for stored, record in frames:
                segments.add(stored, record)
            stretches.append(Stretch(group.first, group.stop, len(frames)))
            patches |= changed
        if len(some) == _GROUPS_AT_ONCE:
            give_back_memory()
    return stretches, segments.finish(), patches


def _places(pages: Sequence[DocumentPage], wanted: Mapping[int, Change], characters: int) -> Iterator[_Place]:
    """Yield the places of documents whose text changes, in order, in a text of so many characters."""
    firsts = [page.first for page in pages]
    for number in sorted(wanted):
        if wanted[number].keeps_text:
            continue
        n = bisect_right(firsts, number) - 1
        page, i = pages[n], number - firsts[n]
        before = page.stops[i - 1] if i else pages[n - 1].stops[-1] if n else 0
        is_last = i + 1 == len(page)
        after = page.starts[i + 1] if not is_last else pages[n + 1].starts[0] if n + 1 < len(pages) else characters
        header = HEADER.replace("{path}", page.name(i))
        yield _Place(number, header, wanted[number], before, page.starts[i], page.stops[i], after)


def _grouped(text: StoredText, places: Iterable[_Place]) -> list[_Group]:
    """Group changes; those in the same or neighbouring frames share a group."""
    groups: list[_Group] = []
    frames = text.root.frames
    for place in places:
        start, stop = place.first_affected, place.stop + (place.after > place.stop)
        first = text.locate(start).number if start < text.root.characters else max(frames - 1, 0)
        last = first if stop == start else text.locate(stop - 1).number
        end = min(last + 1, frames)  # a text of empty documents has no frames
        previous = groups[-1] if groups else None
        if previous and (
            first < previous.stop or (first == previous.stop and _bytes_of(text, previous) < _FULL_GROUP_BYTES)
        ):
            previous.stop = max(previous.stop, end)
            previous.places.append(place)
        else:
            groups.append(_Group(first, end, [place]))
    return groups


def _rewritten(text: StoredText, group: _Group) -> tuple[list[tuple[bytes, FrameRecord]], dict[int, Patch]]:
    """The new frames of a group, and its patches. Of a group above 8 MiB only the parts that stay are read."""
    begin, end = text.begin(group.first)[0], text.begin(group.stop)[0]
    whole = text.read(begin, end) if _bytes_of(text, group) < 2 * _FULL_GROUP_BYTES else None

    def read(start: int, stop: int) -> str:
        return text.read(start, stop) if whole is None else whole[start - begin : stop - begin]

    patches = {place.number: place.patch(read) for place in group.places}
    done = begin
    parts: list[str] = []
    for patch in patches.values():
        parts += [read(done, patch.start), patch.text]
        done = patch.stop
    parts.append(read(done, end))
    frames = _cut("".join(parts).encode(), text.root.frame_bytes)
    return [encode(frame, text.root.codec) for frame in frames], patches


def _bytes_of(text: StoredText, group: _Group) -> int:
    """The length of the old text of a group, in bytes."""
    return text.begin(group.stop)[1] - text.begin(group.first)[1]


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
