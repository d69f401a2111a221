"""Verify a context: read all of it and check every checksum, length, count and filter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from functools import partial

from monocontext.engine.open import ContextHandle
from monocontext.errors import MonocontextError, NotFound
from monocontext.format import inline
from monocontext.format.filters.checking import Checker, describe_lacking
from monocontext.format.generations import find_root, read_generation
from monocontext.format.index import Page
from monocontext.format.manifest import Manifest
from monocontext.format.root_directories import expand
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.batches import PARTS_AHEAD
from monocontext.writing.pages import load_page
from monocontext.writing.place import Place, open_store_at, portable_place
from monocontext.writing.upkeep.document_check import DocumentCheck
from monocontext.writing.upkeep.verify_frames import Checks, Report, check_object, group_by_object
from monocontext.writing.upkeep.verify_parts import (
    Part,
    PartResult,
    PartResults,
    check_part,
    cut_parts,
    filters_without,
)


def verify(
    url: Place,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    generation: int | None = None,
    progress: Callable[[Report], None] | None = None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Report:
    """Check every checksum, length and count of a context: root, pages, segments, frames. Reads everything once.

    Also checks that no gram of the text is missing from its search filters, since a search would miss a match then, and
    that documents are found by name and have the recorded counts. Of filters with other folding tables
    (`case_folding.TABLES`), only names and checksums are checked.

    `executor`: any `concurrent.futures.Executor`, whose workers then read the segments, 64 MiB stored or more each, and
    the filters of these: each filter is read some 8 to 16 times.

    The report lists all damage. Raises `NotFound`, `NotAContext`, `AccessDenied`, or the error of a root that cannot be
    read: then nothing could be checked.
    """
    with open_store_at(url, store_options) as store:
        manifest = find_root(store, generation).manifest
        report = Report(store.url, manifest.generation)

        def get(key: str) -> bytes:
            return store.get(key).data

        _check_commit(store, manifest, report)
        try:
            manifest = expand(manifest, lambda directory: get(directory.key))
        except MonocontextError as error:
            report.problems.append(f"{error}: nothing that it names was checked")
            return report
        filters = Checker(manifest.filters, get)
        checks = Checks(filters, DocumentCheck(manifest.documents, get), [])
        context = ContextHandle(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        with closing(context):
            _check_copies(store, manifest, context, report)
            pages = _load_pages(store, manifest, report)
            if executor is None:
                for _, page in pages:
                    for frames in group_by_object(page):
                        check_object(store, context, manifest, frames, checks, report)
                        if progress:
                            progress(report)
            else:
                work = partial(
                    check_part,
                    url=portable_place(url),
                    options=store_options or {},
                    allow=tuple(os.fspath(each) for each in allow),
                    generation=manifest.generation,
                )
                parts = _check_parts(executor, work, cut_parts(pages, manifest.filters), report, progress)
                filters = Checker(filters_without(manifest.filters, parts), get)
        if manifest.flags & ~report.flags:
            report.problems.append(
                f"{store.url}: flags differ: expected {manifest.flags} of all frames, found {report.flags}"
            )
        report.problems += [*checks.filter_problems, *filters.finish()]
        report.problems += describe_lacking(filters.lacking)
        report.problems += checks.documents.finish()
        report.documents = manifest.documents.documents if manifest.documents else 0
        report.filters = len(manifest.filters)
        _check_totals(store, manifest, report)
        return report


def _check_parts(
    executor: Executor,
    work: Callable[[Part], PartResult],
    parts: Iterable[Part],
    report: Report,
    progress: Callable[[Report], None] | None,
) -> list[Part]:
    """Let workers check parts, and add their results to the report. Returns the parts."""
    checked: list[Part] = []

    def noted() -> Iterator[Part]:
        for part in parts:
            checked.append(part)
            yield part

    results = PartResults(report)
    for result in in_order(executor, work, noted(), PARTS_AHEAD):
        results.add(result)
        if progress:
            progress(report)
    results.finish()
    return checked


def _check_totals(store: Store, manifest: Manifest, report: Report) -> None:
    """Compare the size and the last newline in the root with those of all frames, if these are undamaged."""
    if report.ok and report.stored_bytes != manifest.stored_bytes:
        report.problems.append(
            f"{store.url}: stored_bytes differs: expected {manifest.stored_bytes}, found {report.stored_bytes}"
        )
    if report.ok and report.final_newline != manifest.final_newline:
        report.problems.append(
            f"{store.url}: final_newline differs: expected {manifest.final_newline}, found {report.final_newline}"
        )


def _check_commit(store: Store, manifest: Manifest, report: Report) -> None:
    """Check that a root equals the object of its generation."""
    try:
        committed = read_generation(store, manifest.generation)
    except NotFound:
        report.problems.append(f"{store.url}: generation {manifest.generation} has no object of its own")
    except MonocontextError as error:
        report.problems.append(str(error))
    else:
        if committed != manifest:
            report.problems.append(f"{store.url}: manifest.json differs from generation {manifest.generation}")


def _check_copies(store: Store, manifest: Manifest, context: ContextHandle, report: Report) -> None:
    """Check that the copies of text in the root equal its frames."""
    bare = replace(manifest, text=b"", head="", tail="")
    with closing(context.read(bare)) as text:
        try:
            if manifest.text and inline.decode_text(manifest) != text.read(0, text.characters).encode():
                report.problems.append(f"{store.url}: the text in the root differs from its frames")
            head, tail = (inline.read_end(copy).decode() for copy in (manifest.head, manifest.tail))
            size = text.characters
            if head != text.read(0, min(len(head), size)) or tail != text.read(max(size - len(tail), 0), size):
                report.problems.append(f"{store.url}: an end of the text in the root differs from its frames")
        except MonocontextError as error:
            report.problems.append(f"{store.url}: the text in the root could not be compared: {error}")


def _load_pages(store: Store, manifest: Manifest, report: Report) -> Iterator[tuple[int, Page]]:
    """Yield the index pages that can be read, with their numbers (1 GET each), and report the others."""
    for number in range(len(manifest.pages)):
        try:
            yield number, load_page(store, manifest.pages, number)
        except MonocontextError as error:
            report.problems.append(str(error))
