"""Replace, add and delete documents of a context. Only frames and pages with a change are stored again.

If another writer commits first, the names are looked up again in the root of that writer.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from monocontext.errors import InvalidText, NotFound
from monocontext.format.codec import encode, frame_end
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.index import FrameRecord
from monocontext.format.manifest import Manifest, listed_generations, read_generation
from monocontext.globs import Globs
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple, dataclass
from monocontext.records import replace as replaced
from monocontext.stores import Place, open_store_at
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store
from monocontext.writing.appended import append_written
from monocontext.writing.commit import Staged, commit_at
from monocontext.writing.decoding import HEADER, InputOptions
from monocontext.writing.documents import Change, DocumentInputs, Patch, change_documents, load_documents, names_in
from monocontext.writing.documents import documents as as_inputs
from monocontext.writing.inputs import parts_of, read_pieces
from monocontext.writing.publish import store_text
from monocontext.writing.segments import SegmentLayout, Segments, Written
from monocontext.writing.splice import EMPTY_ROOT, Stretch, add_copies, add_filter, find_new_gaps, splice, wants_filters
from monocontext.writing.stored_text import StoredText, expanded
from monocontext.writing.upkeep.forget import forget_rest, without_dead_bytes

_FULL_GROUP_BYTES = 4 << 20
"""A group with at least this much old text is closed: a change in the next frame begins another group."""
_FILTER_GROWTH = 32  # the filter of an edit is joined with older ones of up to 32 times its frames
_GLOB_SIGNS = frozenset("*?[")  # a name with one of these may be a glob
_GROUPS_AT_ONCE = 8  # groups that are rewritten at once, which bounds the memory


class Edit(NamedTuple):
    """What to change in the documents of a root."""

    changes: Mapping[int, Change]  # by the number of the document
    new: Written | None  # documents to add after all others, as `publish.store_text` returns them


Planner = Callable[[Manifest | None, list[DocumentPage], Staged], Edit]
"""Plans an edit, given the newest root, its pages of documents, and the store in which to put new documents."""


def replace(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the texts of documents in the context at `url`, found by name, and return the committed root.

    `documents` is a mapping of name to text, or an iterable of (name, text) and (name, text, metadata). A text is a
    `str` or the path of a file, and is kept in memory. A document keeps its metadata if none is given. If several
    documents share a name, the last is replaced. `allow`: as for `Monocontext.open`. Raises `NotFound`, and changes
    nothing, if a name is missing (`update` adds missing ones). Concurrent writers all succeed.

    Cost: 1 GET per page of 4,096 documents, and per index page and range of frames that changes; 1 PUT per 16 MiB of
    new frames and per page that changes; about 6 requests for the commit.
    """
    return _store_texts(url, documents, allow, store_options, adds=False)


def update(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the documents whose names exist and append the others, as one generation. Returns its root.
    Parameters as for `replace`; the cost is that of `replace` and `append` together. If two writers add the same
    name, both succeed: the second replaces the document of the first."""
    return _store_texts(url, documents, allow, store_options, adds=True)


def _store_texts(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    allow: Iterable[str | os.PathLike[str]],
    options: StoreOptions | None,
    *,
    adds: bool,
) -> Manifest:
    texts = _read_texts(documents)
    names_by_utf8 = {name.encode("utf-8", "surrogatepass"): name for name in texts}

    def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        stored = enumerate(names_in(pages))  # of documents with the same name, the last one counts
        numbers = {names_by_utf8[utf8]: number for number, utf8 in stored if utf8 in names_by_utf8}
        missing = [name for name in texts if name not in numbers]
        if missing and not adds:
            more = f" ({len(missing):,} names are missing)" if len(missing) > 1 else ""
            raise NotFound(f"no document is named {missing[0]!r}{more}: `update` adds new ones")
        new = [(name, texts[name].text, json.loads(texts[name].metadata or b"null")) for name in missing]
        changes = {number: texts[name] for name, number in numbers.items()}
        return Edit(changes, store_text(store, as_inputs(new), base) if new else None)

    return commit_at(url, options, "change", lambda base, store: edited_root(base, store, plan, options, allow))


def delete(
    url: Place,
    names: str | Iterable[str],
    *,
    forget: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Delete documents from the context at `url`, and return the committed root.

    `names` is a name, or a glob with `*`, `?` or `[`, or an iterable of these. A glob that is also the name of a
    document, with `forget` even of an earlier one, means that document. All documents with the name are deleted, each
    with the header line that an upload of a folder puts before a file, unless the upload set another `header`. Earlier
    generations keep the text until `gc` removes them. Other parameters and cost are as for `replace`; above 4,096
    documents, 1 PUT more for a table of names.

    `forget`: leave the text in no object below `url`. Frames that share a segment with it are stored again, and `gc`
    without a grace period removes earlier generations, so that their readers fail. `cache_dir`: a folder in which
    readers on this machine cache data, which is emptied too. Other copies stay, such as old versions in the bucket.

    Raises `NotFound`, and changes nothing, if no document has such a name; with `forget`, only if none has it in an
    earlier version either (2 GETs more for each version, also for a glob). So `forget` can complete a deletion that was
    interrupted or made without it; with no names (`[]`), even one whose version `gc` has removed.
    """
    patterns = list(dict.fromkeys(names)) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if wrong := [name for name in patterns if not isinstance(name, str)]:
        raise TypeError(f"the name of a document must be a str, not {type(wrong[0]).__name__}: {str(wrong[0])[:80]!r}")
    if cache_dir is not None and not forget:
        raise ValueError("cache_dir needs forget=True, since only forget empties it")
    by_utf8 = {pattern.encode("utf-8", "surrogatepass"): pattern for pattern in patterns}
    names_seen: set[bytes] = set()  # the patterns that were the name of a document, now or before: they are no globs

    def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        current_names = names_in(pages)
        not_current = by_utf8.keys() - current_names
        earlier_names = _stored_names(store, base) if forget and not_current else set[bytes]()
        names_seen.update(by_utf8.keys() - not_current, by_utf8.keys() & earlier_names)
        numbers = _match_names(patterns, current_names)
        numbers |= {by_utf8[name]: [] for name in not_current & names_seen}
        changes = {number: Change(deletes=True) for matches in numbers.values() for number in matches}
        missing = [pattern for pattern, matches in numbers.items() if not matches]
        if forget and missing:
            # A pattern without a sign may name a folder if no document is left in it: its matches are earlier names.
            found = _match_names(missing, [*current_names, *earlier_names], all_globs=True)
            missing = [pattern for pattern, matches in found.items() if not matches or matches[0] < len(current_names)]
        if missing:
            glob = " or matches that glob" if _GLOB_SIGNS.intersection(missing[0]) else ""
            remedy = "; if it was deleted before, forget without a name removes what is left" if forget else ""
            raise NotFound(f"no document is named {missing[0]!r}{glob}{remedy}")
        return Edit(changes, None)

    def change(base: Manifest, store: Staged) -> Manifest | None:
        return edited_root(base, store, plan, store_options, allow, forget=forget)

    with open_store_at(url, store_options) as store:
        root = commit_at(store, None, "change", change)
        if forget:
            forget_rest(store, root, cache_dir)
        return root


def _match_names(patterns: Iterable[str], names: Sequence[bytes], *, all_globs: bool = False) -> dict[str, list[int]]:
    """By pattern, the numbers of the documents with this name; if none has it, of those that it matches as a glob.
    `names` are those of all documents in UTF-8. `all_globs`: patterns without a sign are tried as globs too."""
    numbers_by_pattern: dict[str, list[int]] = {pattern: [] for pattern in patterns}
    by_utf8 = {pattern.encode("utf-8", "surrogatepass"): numbers for pattern, numbers in numbers_by_pattern.items()}
    for number, name in enumerate(names):
        if name in by_utf8:
            by_utf8[name].append(number)
    for pattern, numbers in numbers_by_pattern.items():
        if not numbers and (all_globs or _GLOB_SIGNS.intersection(pattern)) and not pattern.startswith("!"):
            select = Globs([pattern]).select
            numbers += [number for number, name in enumerate(names) if select(name.decode())]
    return numbers_by_pattern


def _read_texts(documents: Mapping[str, str] | Iterable[Any]) -> dict[str, Change]:
    """The new texts by name, read from files if they are paths. Raises `InvalidText` or `TypeError`."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable | DocumentInputs):
        kind = type(documents).__name__
        raise TypeError(f"documents must be a mapping of name to text, or (name, text) tuples, not {kind}")
    items = documents.items if isinstance(documents, DocumentInputs) else as_inputs(documents).items
    results: dict[str, Change] = {}
    for number, item in enumerate(items):
        if not (isinstance(item, tuple) and item and isinstance(item[0], str)):
            raise InvalidText(f"document {number}: expected (name, text) or (name, text, metadata), found {item!r:.80}")
        name, text, metadata = parts_of(item, number)
        text = b"".join(read_pieces(text if isinstance(text, str) else [text], InputOptions())).decode()
        results[name] = Change(text, None if metadata is None else encode_metadata(metadata, number))
    return results


def names_of_all_versions(url: Place, *, store_options: StoreOptions | None = None) -> set[str]:
    """The names of the documents of all versions that are still stored (2 GETs or more for each version)."""
    with open_store_at(url, store_options) as store:
        return {name.decode() for name in _stored_names(store, None)}


def _stored_names(store: Store, before: Manifest | None) -> set[bytes]:
    """The names of the documents of all stored versions; with `before`, only of those before that root."""
    names: set[bytes] = set()
    for number in listed_generations(store):
        if before is None or number < before.generation:
            with suppress(NotFound):
                root = expanded(store, read_generation(store, number))
                names.update(names_in(load_documents(store, root.documents)))
    return names


def edited_root(
    base: Manifest | None,
    store: Staged,
    plan: Planner,
    options: StoreOptions | None,
    allow: Iterable[str | os.PathLike[str]] = (),
    *,
    forget: bool = False,
) -> Manifest | None:
    """The root after the edit that `plan` returns, or None if that changes nothing. With `forget`, it names no object
    that still contains deleted text."""
    old = EMPTY_ROOT if base is None else expanded(store, base)
    pages = load_documents(store, old.documents)
    changes, new = plan(None if base is None else old, pages, store)
    if not changes and new is None and not forget:
        return None
    with StoredText(store, old, allow=allow, store_options=options) as text:
        if changes:
            assert old.documents is not None
            stretches, new_frames, patches = _rewrite_frames(text, pages, changes)
            documents = change_documents(store, old.documents, pages, changes, patches)
            root = splice(text, stretches, new_frames, documents=documents)
            if old.filters and stretches and wants_filters(root):
                root = add_filter(text.after(root), find_new_gaps(text, stretches), most_times=_FILTER_GROWTH)
            elif stretches:
                root = replaced(root, filters=())
            text = text.after(root)
        if new is not None:
            text = text.after(append_written(text, new))
        if forget:
            text = text.after(without_dead_bytes(text))
        if changes and (new is not None or forget):
            store.may_have_unnamed = True  # the last step may have replaced objects that the first one put
        return add_copies(text) if changes or forget else text.root


class _NewText(NamedTuple):
    """The new text of a document, and its place in the old text, in characters."""

    number: int
    new_text: str  # empty for a document that is deleted
    header: str  # the header line that may precede a document that is deleted
    earliest: int  # the first character that may change: that of the header line if there is room for one
    start: int
    stop: int
    next_start: int  # the start of the next document, or the end of the text


@dataclass(slots=True)
class _Group:
    """Neighbouring frames [first, stop) of the old text that are rewritten together, and the documents in them."""

    first: int
    stop: int
    documents: list[_NewText]


def _rewrite_frames(
    text: StoredText, pages: Sequence[DocumentPage], changes: Mapping[int, Change]
) -> tuple[list[Stretch], Written, dict[int, Patch]]:
    """Store the frames of changed documents with their new texts (1 PUT per 16 MiB). Returns the stretches of frames
    that these replace, the new frames, and the patches by the number of the document."""
    root = text.root
    segments = Segments(text.store.put, SegmentLayout(root.frame_bytes, codec=root.codec))
    stretches: list[Stretch] = []
    patches: dict[int, Patch] = {}
    groups = _group_by_frames(text, _find_changed(pages, changes, root.characters))
    for number in range(0, len(groups), _GROUPS_AT_ONCE):
        batch = groups[number : number + _GROUPS_AT_ONCE]
        results = at_once(lambda group: _rewrite_group(text, group), batch, _GROUPS_AT_ONCE)
        for group, (frames, patches_of_group) in zip(batch, results, strict=True):
            for stored, record in frames:
                segments.add(stored, record)
            start = text.extent(group.first, group.stop).start
            kept_bytes = group.documents[0].earliest - start  # at least: a character has a byte or more
            stretches.append(Stretch(group.first, group.stop, len(frames), kept_bytes=kept_bytes))
            patches |= patches_of_group
    return stretches, segments.finish(), patches


def _find_changed(pages: Sequence[DocumentPage], changes: Mapping[int, Change], characters: int) -> Iterator[_NewText]:
    """Yield the documents whose text changes, in order. `characters` is the length of the old text."""
    starts, stops = array("Q"), array("Q")  # of all documents
    for page in pages:
        starts.extend(page.starts)
        stops.extend(page.stops)
    starts.append(characters)
    for number in sorted(changes):
        change, earliest, header = changes[number], starts[number], ""
        if change.deletes:
            page = pages[bisect_right(pages, number, key=lambda page: page.first) - 1]
            header = HEADER.replace("{path}", page.name(number - page.first))
            previous_stop = stops[number - 1] if number else 0
            if earliest - previous_stop <= len(header) + 1:  # no more than a newline and the header
                earliest = previous_stop
        if change.deletes or change.text is not None:
            extent = starts[number], stops[number], starts[number + 1]
            yield _NewText(number, change.text or "", header, earliest, *extent)


def _group_by_frames(text: StoredText, documents: Iterable[_NewText]) -> list[_Group]:
    """Group documents by the frames that they touch. Those in the same or in neighbouring frames share a group."""
    groups: list[_Group] = []
    frames = text.root.frames
    for document in documents:
        stop = document.stop + (1 if document.next_start > document.stop else 0)  # with a newline that may follow
        is_at_end = document.earliest == text.root.characters
        first = max(frames - 1, 0) if is_at_end else text.locate(document.earliest).number
        last = first if stop == document.earliest else text.locate(stop - 1).number
        end = min(last + 1, frames)  # a text of empty documents has no frames
        group = groups[-1] if groups else _Group(-1, -1, [])
        is_next = first == group.stop and text.extent(group.first, first).text_bytes < _FULL_GROUP_BYTES
        if first < group.stop or is_next:
            group.stop = max(group.stop, end)
            group.documents.append(document)
        else:
            groups.append(_Group(first, end, [document]))
    return groups


def _rewrite_group(text: StoredText, group: _Group) -> tuple[list[tuple[bytes, FrameRecord]], dict[int, Patch]]:
    """The new frames of a group, encoded, and its patches. Of a group above 8 MiB, only unchanged parts are read."""
    extent = text.extent(group.first, group.stop)
    begin, end, is_large = extent.start, extent.stop, extent.text_bytes >= 2 * _FULL_GROUP_BYTES
    old_text = "" if is_large else text.read(begin, end)
    read = text.read if is_large else lambda start, stop: old_text[start - begin : stop - begin]
    patches: dict[int, Patch] = {}
    parts: list[str] = []
    done = begin  # the end of the old text that is in `parts` or replaced
    for document in group.documents:
        start, stop, new_text = document.start, document.stop, document.new_text
        if document.next_start > stop > start and read(stop - 1, stop) != "\n" and read(stop, stop + 1) == "\n":
            stop += 1  # the newline that was added after the document
        if document.earliest < start and read(document.earliest, start).removeprefix("\n") == document.header:
            start -= len(document.header)
        if new_text and not new_text.endswith("\n"):
            new_text += "\n"
        patches[document.number] = Patch(start, stop, new_text)
        parts += [read(done, start), new_text]
        done = stop
    parts.append(read(done, end))
    frames = _cut_evenly("".join(parts).encode(), text.root.frame_bytes)
    return [encode(frame, text.root.codec) for frame in frames], patches


def _cut_evenly(data: bytes, frame_bytes: int) -> Iterator[bytes]:
    """Yield frames of about the same length: a short last frame, and its segment, could outlive changes around it."""
    start = 0
    while (count := round((len(data) - start) / frame_bytes)) > 1:
        stop = frame_end(data, start, (len(data) - start) // count)
        yield data[start:stop]
        start = stop
    if start < len(data):
        yield data[start:]
