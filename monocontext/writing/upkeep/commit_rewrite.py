"""Commit a rewritten context as the next generation, whatever other writers commit meanwhile.

`compact` changes frames, `add_filters` filters; the characters stay. Text that other writers append meanwhile is
included as they stored it. If another writer replaces the text, `AlreadyExists` is raised, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable

from monocontext.engine.reader import Reader
from monocontext.errors import AlreadyExists
from monocontext.format import inline
from monocontext.format.generations import fence_seconds
from monocontext.format.index import Page
from monocontext.format.manifest import History, Manifest
from monocontext.records import replace
from monocontext.stores.protocol import Store
from monocontext.writing.commit import check_fence, commit
from monocontext.writing.next_root import as_generation
from monocontext.writing.pages import as_runs, write_pages
from monocontext.writing.segments import SegmentLayout, write_segments
from monocontext.writing.upkeep.rewrite import Rewrite, fill_filters, first_character, move_filter, records


def commit_rewrite(work: Rewrite, base: Manifest, root: Manifest, *, filters: bool) -> Manifest:
    """Commit `root`, a rewrite of `base`, together with the text that others appended to `base` meanwhile.

    With `filters`, also makes the filters that this text lacks. Costs 4 requests, and for each commit of another writer
    the requests for its frames. Raises `AlreadyExists` if another writer replaced the text, or if `gc` removed objects
    without a safe grace period.
    """
    done, ours = base, root

    def build(latest: Manifest | None, _: Store) -> Manifest:
        nonlocal done, ours
        assert latest is not None  # generations are never taken back
        check_fence(work.store, base, latest)
        if latest.write_id != done.write_id:
            latest = work.expand(latest)
            grown, bare = _add_appended(work, done, ours, latest)
            ours, done = fill_filters(work, grown, bare) if filters else grown, latest
        history = History(done.history.lineage)
        new = as_generation(ours, done.generation + 1, history, open_frames=0, flags=latest.flags)
        new = with_copies(work, new, latest)
        new.check()
        return new

    new = commit(work.store, build)
    assert new is not None
    return new


def commit_change(store: Store, newest: Manifest, change: Callable[[Manifest], Manifest | None]) -> Manifest:
    """Commit the root that `change` returns for the newest root, and return it.

    If another writer commits first, `change` is called again with that writer's root. If it returns None, nothing is
    committed, and the newest root is returned.
    """

    def build(base: Manifest | None, _: Store) -> Manifest | None:
        assert base is not None  # generations are never taken back
        return change(base)

    root = commit(store, build)
    assert root is not None
    return root


def with_copies(work: Rewrite, root: Manifest, latest: Manifest) -> Manifest:
    """The root with copies of its own text: of all of a small text (1 GET a run), else of its two ends.

    The ends are those of `latest`, which has the same characters. If that has none, they are read (2 GETs).
    """
    bare = replace(root, text=b"", head="", tail="")
    if root.last_page is not None and len(root.pages) == 1 and root.stored_bytes <= inline.MOST_TEXT_BYTES:
        page, at, stored = Page(root.last_page, root.pages[0], None), 0, b""
        if not any(run.is_virtual for run in page.runs):
            for run in page.runs:
                size = page.stored_starts[at + run.frames] - page.stored_starts[at]
                stored += work.store.get_range(run.object, run.offset, size).data
                at += run.frames
            return replace(bare, text=inline.whole(stored).text)
    with work.text(bare) as text:
        size = min(inline.END_BYTES, text.characters)
        read = inline.ends(
            b"" if latest.head else _own_text(text, 0, size),
            b"" if latest.tail else _own_text(text, text.characters - size, text.characters),
        )
    return replace(bare, head=latest.head or read.head, tail=latest.tail or read.tail)


def _own_text(text: Reader, start: int, stop: int) -> bytes:
    """Characters [start, stop) in UTF-8; empty if any of them is in a foreign object, which may be replaced."""
    if stop <= start or any("://" in text.frame(number).object for number in text.table.numbers(start, stop)):
        return b""
    return text.read(start, stop).encode()


def _add_appended(work: Rewrite, before: Manifest, ours: Manifest, latest: Manifest) -> tuple[Manifest, int]:
    """Add to `ours`, a rewrite of `before`, the text that `latest` added to `before`.

    An append may have stored the last frames of `before` again. So the result has frames of `ours` for the text of the
    frames that `before` and `latest` share, and then those of `latest`. Text between the two is stored again. Returns
    the root, and the frame from which on it may lack filters.
    """
    with work.text(before) as old, work.text(latest) as new, work.text(ours) as mine:
        same = _count_common(old, new)
        is_grown = before.history.lineage != "" and before.history.lineage == latest.history.lineage
        if same < before.frames - (before.open_frames if is_grown else 0):
            url = work.store.url
            raise AlreadyExists(
                f"{url}: another writer replaced generation {before.generation} while it was read: generation "
                f"{latest.generation} has different text or frames; nothing was changed, start again"
            )
        if latest.frames == before.frames == same:
            return ours, ours.frames
        limit = first_character(old, same)
        stays = mine.locate(limit).number if limit < mine.characters else ours.frames
        at = first_character(mine, stays)
        kept = tuple(page for page in ours.pages if page.frames <= stays)
        runs, rows = as_runs(records(mine, kept[-1].frames if kept else 0, stays))
        first = new.locate(at).number if at < new.characters else latest.frames
        if first_character(new, first) < at:
            first += 1
            layout = SegmentLayout(
                ours.frame_bytes,
                codec=ours.codec,
                filters=False,
                reuse_after_seconds=fence_seconds(work.store, latest),
            )
            between = new.read(at, first_character(new, first)).encode()
            written = write_segments(work.store, [between], layout)
            runs, rows = [*runs, *written.runs], [*rows, *written.records]
        new_runs, new_rows = as_runs(records(new, first, latest.frames))
        pages, last_page = write_pages(work.put, kept, [*runs, *new_runs], [*rows, *new_rows])
        filters = tuple(ref for ref in ours.filters if ref.stop_frame <= stays)
        dropped = sum(frame.stored_bytes for frame in records(mine, stays, ours.frames))
        added_rows = [*rows[stays - (kept[-1].frames if kept else 0) :], *new_rows]
        grown = replace(
            ours,
            pages=pages,
            last_page=last_page,
            text=b"",
            stored_bytes=ours.stored_bytes - dropped + sum(row.stored_bytes for row in added_rows),
            final_newline=latest.final_newline,
            sources=latest.sources,
            documents=latest.documents,
            filters=filters,
        )
        with work.text(grown) as text:
            added = tuple(move_filter(ref, new, text) for ref in latest.filters if ref.first_frame >= first)
        grown = replace(grown, filters=(*filters, *added))
        cut = [ref.first_frame for ref in ours.filters if ref.stop_frame > stays]
        return grown, min([stays, *cut])


def _count_common(old: Reader, new: Reader) -> int:
    """The number of frames that both texts begin with."""
    pages = zip(old.manifest.pages, new.manifest.pages, strict=False)
    number = next((at for at, (mine, other) in enumerate(pages) if mine != other), None)
    if number is None:
        number = min(len(old.manifest.pages), len(new.manifest.pages))
    first = old.manifest.pages[number - 1].frames if number else 0
    most = min(old.manifest.frames, new.manifest.frames)
    while first < most and old.frame(first) == new.frame(first):
        first += 1
    return first
