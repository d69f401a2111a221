"""Store index pages, and turn their frames into runs and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from monocontext.format.index import FRAMES_PER_PAGE, Frame, FrameRecord, FrameRun, Page, encode_page, page_ref
from monocontext.format.manifest import INLINE_PAGE_BYTES
from monocontext.format.refs import MOST_PAGE_BYTES, PageRef, fresh_id
from monocontext.records import replace
from monocontext.stores.protocol import Store, get_bounded

_NO_PAGE = PageRef("", 0, 0, 0, 0, 0, 0)


def write_pages(
    put: Callable[[str, bytes], object], kept: tuple[PageRef, ...], runs: list[FrameRun], records: list[FrameRecord]
) -> tuple[tuple[PageRef, ...], bytes | None]:
    """Store pages of the frames that follow those of `kept` (1 PUT each).

    Returns the pages of the whole text, and a copy of the last page if it is new and small enough for the root.
    """
    pages = list(kept)
    last_page = None
    for page_runs, page_records in _split_pages(runs, records):
        data = encode_page(page_runs, page_records)
        ref = replace(page_ref(data, page_records, pages[-1] if pages else None), id=fresh_id())
        put(ref.key, data)
        pages.append(ref)
        last_page = data if len(data) <= INLINE_PAGE_BYTES else None
    return tuple(pages), last_page


def load_page(store: Store, pages: tuple[PageRef, ...], number: int) -> Page:
    """Read and check one index page (1 GET)."""
    return Page(
        get_bounded(store, pages[number].key, MOST_PAGE_BYTES).data,
        pages[number],
        pages[number - 1] if number else None,
    )


def _split_pages(
    runs: list[FrameRun], records: list[FrameRecord]
) -> Iterator[tuple[list[FrameRun], list[FrameRecord]]]:
    """Yield the runs and records of each page. A run that continues on the next page is split."""
    queue = list(reversed(runs))
    for start in range(0, len(records), FRAMES_PER_PAGE):
        page = records[start : start + FRAMES_PER_PAGE]
        page_runs: list[FrameRun] = []
        filled = 0
        while filled < len(page):
            run = queue.pop()
            taken = min(run.frames, len(page) - filled)
            page_runs.append(replace(run, frames=taken))
            if taken < run.frames:
                used = sum(record.stored_bytes for record in page[filled : filled + taken])
                queue.append(replace(run, offset=run.offset + used, frames=run.frames - taken))
            filled += taken
        yield page_runs, page


def as_runs(frames: Iterable[Frame]) -> tuple[list[FrameRun], list[FrameRecord]]:
    """The runs and records of frames. Frames that are adjacent in an object form one run, also across pages."""
    runs: list[FrameRun] = []
    rows: list[FrameRecord] = []
    end = counted = 0

    def close() -> None:
        nonlocal counted
        if counted:
            runs[-1] = replace(runs[-1], frames=counted)
        counted = 0

    for frame in frames:
        if not runs or not follows(frame, runs[-1].object, end):
            close()
            runs.append(FrameRun(frame.object, frame.offset, 1, frame.codec, frame.etag))
        rows.append(record_of(frame))
        end = frame.offset + frame.stored_bytes
        counted += 1
    close()
    return runs, rows


def follows(frame: Frame, name: str, end: int) -> bool:
    """Whether a frame begins at byte `end` of the object `name`."""
    return frame.object == name and frame.offset == end


def single_runs(runs: Iterable[FrameRun], rows: Sequence[FrameRecord]) -> list[FrameRun]:
    """Split runs, whose frames have these records, into one run for each frame."""
    results: list[FrameRun] = []
    for run in runs:
        offset = run.offset
        for record in rows[len(results) : len(results) + run.frames]:
            results.append(replace(run, offset=offset, frames=1))
            offset += record.stored_bytes
    return results


def record_of(frame: Frame) -> FrameRecord:
    """The record of a frame, as its index page has it."""
    return FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields))


def moved_page(page: PageRef, before: PageRef | None, new_before: PageRef | None) -> PageRef:
    """The entry of an unchanged index page that followed `before`, and now follows `new_before`.

    None means that the page was, or is, the first.
    """
    old, new = before or _NO_PAGE, new_before or _NO_PAGE
    return replace(
        page,
        frames=new.frames + page.frames - old.frames,
        bytes=new.bytes + page.bytes - old.bytes,
        characters=new.characters + page.characters - old.characters,
        newlines=new.newlines + page.newlines - old.newlines,
    )
