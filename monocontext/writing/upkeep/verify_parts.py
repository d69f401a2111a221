"""Verify a context with workers: each checks the frames of a part, and the driver joins their results."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from monocontext.engine.open import ContextHandle
from monocontext.engine.reader import Reader
from monocontext.errors import MonocontextError
from monocontext.format.filters.case_folding import fold_bytes
from monocontext.format.filters.checking import Checker, describe_lacking
from monocontext.format.generations import read_generation
from monocontext.format.index import Page
from monocontext.format.refs import FilterRef
from monocontext.format.root_directories import expand
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores.protocol import Store
from monocontext.writing.pages import load_page
from monocontext.writing.place import open_store_at
from monocontext.writing.upkeep.document_check import Counted, DocumentCheck
from monocontext.writing.upkeep.verify_frames import Checks, Report, check_object, group_by_object

PART_BYTES = 64 << 20
"""The least stored bytes in a part."""
PARTS_OF_FILTER = 8
"""The most parts in the frames of one filter: each of their workers reads the whole filter."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some frames of one page, for one worker."""

    page: int
    start: int
    """The first frame, counted within the page; `stop` is counted likewise."""
    stop: int
    first_frame: int
    """The number of the frame `start` in the whole text."""

    @property
    def stop_frame(self) -> int:
        return self.first_frame + self.stop - self.start


@dataclass(slots=True)
class PartResult:
    """The result of checking a part."""

    report: Report
    filter_problems: list[str] = field(default_factory=list)
    lacking: dict[str, list[int]] = field(default_factory=dict)
    cut: list[Counted] = field(default_factory=list)
    """Documents that reach into other parts."""


class PartResults:
    """Adds the results of parts to a report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._filter_problems: dict[str, None] = {}
        """Used as an ordered set: several parts may read the same filter and report the same line."""
        self._lacking: dict[str, list[int]] = {}
        self._cut: dict[int, Counted] = {}

    def add(self, part: PartResult) -> None:
        self._report.add(part.report)
        self._filter_problems |= dict.fromkeys(part.filter_problems)
        for name, frames in part.lacking.items():
            self._lacking.setdefault(name, []).extend(frames)
        for counted in part.cut:
            self._cut.setdefault(counted.document.number, Counted(counted.document)).add(counted)

    def finish(self) -> None:
        """Report the problems of filters and documents, which may reach over several parts."""
        self._report.problems += self._filter_problems
        self._report.problems += describe_lacking(self._lacking)
        for counted in self._cut.values():
            self._report.problems += counted.problems()


def cut_parts(pages: Iterable[tuple[int, Page]], filters: Sequence[FilterRef]) -> Iterator[Part]:
    """Yield parts of neighbouring segments of one page: some 64 MiB stored, and an eighth of the frames of a filter."""
    for number, page in pages:
        start = stop = size = 0
        for frames in group_by_object(page):
            stop += len(frames)
            size += sum(frame.stored_bytes for frame in frames)
            first = page.first_frame + start
            at = bisect_right(filters, first, key=lambda ref: ref.stop_frame)
            covered = filters[at].frames if at < len(filters) and filters[at].first_frame <= first else 0
            if size >= PART_BYTES and stop - start >= covered // PARTS_OF_FILTER:
                yield Part(number, start, stop, first)
                start, size = stop, 0
        if stop > start:
            yield Part(number, start, stop, page.first_frame + start)


def filters_without(filters: Sequence[FilterRef], parts: Sequence[Part]) -> tuple[FilterRef, ...]:
    """The filters without a frame in any of the parts: the pages of their frames could not be read."""

    def is_seen(ref: FilterRef) -> bool:
        at = bisect_right(parts, ref.first_frame, key=lambda part: part.stop_frame)
        return at < len(parts) and parts[at].first_frame < ref.stop_frame

    return tuple(ref for ref in filters if not is_seen(ref))


def check_part(
    part: Part, *, url: str | Store, options: StoreOptions, allow: tuple[str, ...], generation: int
) -> PartResult:
    """Open the context in a worker, and check the frames of a part, with their filters and documents."""
    with open_store_at(url, options) as store:
        manifest = expand(read_generation(store, generation), lambda ref: store.get(ref.key).data)
        context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=options, owns_store=False)
        report = Report(store.url, generation)
        page = load_page(store, manifest.pages, part.page)
        first, stop = part.first_frame, part.stop_frame
        refs = _filters_of(manifest.filters, first, stop)
        checker = Checker(refs, lambda key: store.get(key).data, first, stop)
        documents = DocumentCheck(manifest.documents, lambda key: store.get(key).data, page[part.start].start)
        result = PartResult(report)
        with closing(context), closing(context.read(replace(manifest, text=b"", head="", tail=""))) as text:
            checks = Checks(checker, documents, result.filter_problems)
            for frames in group_by_object(page, part.start, part.stop):
                check_object(store, context, manifest, frames, checks, report)
            for number, data in _texts(text, range(stop, manifest.frames), sys.maxsize):
                if not checker.waits:
                    break
                result.filter_problems += checker.feed(number, data)
        result.filter_problems += checker.finish()
        result.lacking, result.cut = checker.lacking, documents.finish_part()
        return result


def _filters_of(filters: Sequence[FilterRef], first: int, stop: int) -> tuple[FilterRef, ...]:
    """The filters that may have columns of frames [first, stop)."""
    return tuple(ref for ref in filters if ref.first_frame < stop and first < ref.stop_frame)


def _texts(text: Reader, numbers: range, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and texts of neighbouring frames (1 GET each), up to one that cannot be read, or until their
    folded text has `most_bytes`."""
    folded = 0
    for number in numbers:
        try:
            data = text.load(text.frame(number)).data
        except MonocontextError:
            return  # the part of that frame reports it
        yield number, data
        folded += len(fold_bytes(data))
        if folded >= most_bytes:
            return
