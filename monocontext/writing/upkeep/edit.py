"""Replace, add and delete documents of a context: only frames and pages with a change are stored again.

If another writer commits first, names are looked up again in the root of that writer.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
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
from monocontext.writing.commit import Staged, commit_at
from monocontext.writing.decoding import HEADER, InputOptions
from monocontext.writing.documents import Change, DocumentInputs, Patch, change_documents, load_documents, names_in
from monocontext.writing.documents import documents as as_inputs
from monocontext.writing.inputs import parts_of, read_pieces
from monocontext.writing.publish import store_text, with_new
from monocontext.writing.segments import SegmentLayout, Segments, Written
from monocontext.writing.splice import EMPTY_ROOT, Stretch, covered, splice, uncovered, wants_filters, with_copies
from monocontext.writing.stored_text import StoredText, expanded
from monocontext.writing.upkeep.forget import forget_rest, without_dead_bytes

_FULL_GROUP_BYTES = 4 << 20
"""A group of at least this much old text is not joined with a change in the next frame, unless they overlap."""
_TIMES = 32  # the filter of an edit is joined with one of up to 32 times its frames
_GROUPS_AT_ONCE = 8  # groups that are stored again in parallel, which bounds the memory
_PURPOSE = "to change: `upload` creates one"

Edit = tuple[Mapping[int, Change], Written | None]
"""The changes of documents, by number, and new ones after all others (`publish.store_text`)."""


def replace(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the texts of documents in the context at `url`, found by name, and return the committed root.

    `documents` is a mapping of name to text, or an iterable of (name, text) and (name, text, metadata); a text is a
    `str` or the path of a file, and is kept in memory. Without metadata, those of the document stay. Of several
    documents with one name the last is replaced. `allow`: as for `Monocontext.open`. Raises `NotFound`, and changes
    nothing, if a name is missing (`update` appends missing ones). Two writers at once both succeed.

    Cost: 1 GET a page of 4096 documents, each index page and each range of frames that changes; 1 PUT for 16 MiB of new
    frames and each page with a change; about 6 requests for the commit.
    """
    return _store_texts(url, documents, allow, store_options, adds=False)


def update(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the documents whose names exist, and append the others, in one generation; returns its root.

    Parameters and cost as for `replace`, and those of `append`. Two writers at once that add a name both succeed: the
    second replaces the document of the first.
    """
    return _store_texts(url, documents, allow, store_options, adds=True)


def _store_texts(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    allow: Iterable[str | os.PathLike[str]],
    options: StoreOptions | None,
    *,
    adds: bool,
) -> Manifest:
    texts = _texts_of(documents)
    names = {name.encode("utf-8", "surrogatepass"): name for name in texts}

    def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        last = {names[name]: number for number, name in enumerate(names_in(pages)) if name in names}
        missing = [name for name in texts if name not in last]
        if missing and not adds:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise NotFound(f"no document {missing[0]!r}{more} to replace: `update` adds new ones")
        new = [(name, texts[name].text, json.loads(texts[name].metadata or b"null")) for name in missing]
        changes = {number: texts[name] for name, number in last.items()}
        return changes, store_text(store, as_inputs(new), base) if new else None

    return commit_at(url, options, _PURPOSE, lambda base, store: edited(base, store, plan, options, allow))


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

    `names` is a name or a glob, or an iterable of names and of globs with `*`, `?` or `[`; a document's own name comes
    first. All documents with such a name are deleted, with the header line of a file of a folder, unless the upload set
    another `header`. Earlier generations keep the text until `gc` removes them. Parameters and cost as for `replace`;
    with more than 4096 documents, also a table of names, 16 bytes a document.

    `forget`: leave the text in no object below `url`. Frames that share a segment with it are stored again, and `gc`
    without a grace period removes earlier generations, whose readers fail then. `cache_dir`: a folder in which readers
    on this machine cache data, which is emptied too. Copies elsewhere remain, such as old versions that a bucket keeps.

    Raises `NotFound`, and changes nothing, if no document has such a name; with `forget`, if none has it in an earlier
    version either (2 GETs a version more). So a deletion that was cut off, or made without `forget`, can be ended;
    without names (`[]`), also one whose version `gc` has removed.
    """
    patterns = list(dict.fromkeys(names)) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if wrong := [name for name in patterns if not isinstance(name, str)]:
        raise TypeError(f"the name of a document must be a str, not {type(wrong[0]).__name__}: {str(wrong[0])[:80]!r}")
    if cache_dir is not None and not forget:
        raise ValueError("cache_dir needs forget=True, since only forget empties it")

    globs = {name for name in patterns if isinstance(names, str) or any(sign in name for sign in "*?[")}
    matching = partial(_matching, patterns, globs)

    def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        numbers = matching(names_in(pages))
        changes = {number: Change(deletes=True) for matches in numbers.values() for number in matches}
        missing = [name for name, matches in numbers.items() if not matches]
        for raws in _earlier_names(store, base) if forget and missing else ():
            earlier = matching(raws)
            missing = [name for name in missing if not earlier[name]]
            if not missing:
                break
        if missing:
            remedy = "; if it was deleted before, forget without a name removes what is left" if forget else ""
            raise NotFound(f"no document is named {missing[0]!r} or matches that glob{remedy}")
        return changes, None

    with open_store_at(url, store_options) as store:
        root = commit_at(
            store, None, _PURPOSE, lambda base, store: edited(base, store, plan, store_options, allow, forget=forget)
        )
        if forget:
            forget_rest(store, root, cache_dir)
        return root


def _matching(patterns: Iterable[str], globs: set[str], raws: Sequence[bytes]) -> dict[str, list[int]]:
    """The numbers of the documents with these names in UTF-8 that each pattern means: its own name, else as a glob."""
    results: dict[str, list[int]] = {pattern: [] for pattern in patterns}
    by_raw = {pattern.encode("utf-8", "surrogatepass"): numbers for pattern, numbers in results.items()}
    for number, raw in enumerate(raws):
        if raw in by_raw:
            by_raw[raw].append(number)
    for pattern, numbers in results.items():
        if pattern in globs and not numbers and not pattern.startswith("!"):
            select = Globs([pattern]).select
            numbers += [number for number, raw in enumerate(raws) if select(raw.decode())]
    return results


def _texts_of(documents: Mapping[str, str] | Iterable[Any]) -> dict[str, Change]:
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


def _earlier_names(store: Staged, newest: Manifest | None) -> Iterator[list[bytes]]:
    """The names of documents in each earlier version whose pages are still there."""
    for number in listed_generations(store):
        if newest is not None and number < newest.generation:
            with suppress(NotFound):
                root = expanded(store, read_generation(store, number))
                yield names_in(load_documents(store, root.documents))


def edited(
    base: Manifest | None,
    store: Staged,
    plan: Callable[[Manifest | None, list[DocumentPage], Staged], Edit],
    options: StoreOptions | None,
    allow: Iterable[str | os.PathLike[str]] = (),
    *,
    forget: bool = False,
) -> Manifest | None:
    """The root after the changes that `plan` returns, given the newest root, its documents and the store for new ones;
    None if there are no changes. With `forget`, it names no object that still holds deleted text."""
    old = EMPTY_ROOT if base is None else expanded(store, base)
    pages = load_documents(store, old.documents)
    changes, new = plan(base and old, pages, store)
    if not changes and new is None and not forget:
        return None
    with StoredText(store, old, allow=allow, store_options=options) as text:
        if changes:
            assert old.documents is not None
            stretches, frames, patches = _stored_again(text, pages, changes)
            documents = change_documents(store, old.documents, pages, changes, patches)
            root = splice(text, stretches, frames, documents=documents)
            if old.filters and stretches:
                gone, is_large = uncovered(text, stretches), wants_filters(root)
                root = covered(text.after(root), gone, most_times=_TIMES) if is_large else replaced(root, filters=())
            text = text.after(root)
        if new is not None:
            text = text.after(with_new(text, new))
        if forget:
            text = text.after(without_dead_bytes(text))
        store.has_steps |= bool(changes) and (new is not None or forget)
        return with_copies(text) if changes or forget else text.root


class _Span(NamedTuple):
    """The place of a changed document in the old text, in characters."""

    number: int
    text: str  # the new text; empty for a document that is deleted
    header: str  # the header line that may precede a document that is deleted
    first: int  # the first character that may change: that of the header line, if the gap is short enough to be one
    start: int
    stop: int
    after: int  # the start of the document after it


@dataclass(slots=True)
class _Group:
    """Neighbouring frames [first, stop) of the old text with changes, which are stored again together."""

    first: int
    stop: int
    spans: list[_Span]


def _stored_again(
    text: StoredText, pages: Sequence[DocumentPage], changes: Mapping[int, Change]
) -> tuple[list[Stretch], Written, dict[int, Patch]]:
    """Store the frames of changed documents with the new texts (1 PUT for 16 MiB). Returns also the patches."""
    root = text.root
    segments = Segments(text.store.put, SegmentLayout(root.frame_bytes, codec=root.codec))
    stretches: list[Stretch] = []
    patches: dict[int, Patch] = {}
    groups = _grouped(text, _spans(pages, changes, root.characters))
    for number in range(0, len(groups), _GROUPS_AT_ONCE):
        batch = groups[number : number + _GROUPS_AT_ONCE]
        rewritten = at_once(lambda group: _rewritten(text, group), batch, _GROUPS_AT_ONCE)
        for group, (frames, patches_of_group) in zip(batch, rewritten, strict=True):
            for stored, record in frames:
                segments.add(stored, record)
            kept = group.spans[0].first - text.extent(group.first, group.stop)[0]  # characters: bytes, or fewer
            stretches.append(Stretch(group.first, group.stop, len(frames), kept_bytes=kept))
            patches |= patches_of_group
    return stretches, segments.finish(), patches


def _spans(pages: Sequence[DocumentPage], changes: Mapping[int, Change], characters: int) -> Iterator[_Span]:
    """Yield the places of documents whose text changes, in order. The old text has `characters` characters."""
    starts, stops = array("Q"), array("Q")  # of all documents
    for page in pages:
        starts.extend(page.starts)
        stops.extend(page.stops)
    starts.append(characters)
    for number in sorted(changes):
        change, first, header = changes[number], starts[number], ""
        if change.deletes:
            page = pages[bisect_right(pages, number, key=lambda page: page.first) - 1]
            header = HEADER.replace("{path}", page.name(number - page.first))
            before = stops[number - 1] if number else 0
            first = before if first - before <= len(header) + 1 else first
        if change.deletes or change.text is not None:
            yield _Span(number, change.text or "", header, first, starts[number], stops[number], starts[number + 1])


def _grouped(text: StoredText, spans: Iterable[_Span]) -> list[_Group]:
    """Group changes by the frames that they touch; those in the same or neighbouring frames share a group."""
    groups: list[_Group] = []
    frames = text.root.frames
    for span in spans:
        start, stop = span.first, span.stop + (span.after > span.stop)
        first = text.locate(start).number if start < text.root.characters else max(frames - 1, 0)
        last = first if stop == start else text.locate(stop - 1).number
        end = min(last + 1, frames)  # a text of empty documents has no frames
        group = groups[-1] if groups else _Group(-1, -1, [])
        is_next = first == group.stop and text.extent(group.first, first)[2] < _FULL_GROUP_BYTES
        if first < group.stop or is_next:
            group.stop = max(group.stop, end)
            group.spans.append(span)
        else:
            groups.append(_Group(first, end, [span]))
    return groups


def _rewritten(text: StoredText, group: _Group) -> tuple[list[tuple[bytes, FrameRecord]], dict[int, Patch]]:
    """The new frames of a group, and its patches. Of a group above 8 MiB only the parts that stay are read."""
    begin, end, size = text.extent(group.first, group.stop)
    old_text = text.read(begin, end) if size < 2 * _FULL_GROUP_BYTES else ""
    read = (lambda start, stop: old_text[start - begin : stop - begin]) if old_text else text.read
    patches: dict[int, Patch] = {}
    parts: list[str] = []
    done = begin
    for span in group.spans:
        start, stop, new = span.start, span.stop, span.text
        if span.after > stop > start and read(stop - 1, stop) != "\n" and read(stop, stop + 1) == "\n":
            stop += 1  # the newline that was added after the document
        if span.first < start and read(span.first, start).removeprefix("\n") == span.header:
            start -= len(span.header)
        if new and not new.endswith("\n"):
            new += "\n"
        patches[span.number] = Patch(start, stop, new)
        parts += [read(done, start), new]
        done = stop
    parts.append(read(done, end))
    frames = _cut("".join(parts).encode(), text.root.frame_bytes)
    return [encode(frame, text.root.codec) for frame in frames], patches


def _cut(data: bytes, frame_bytes: int) -> Iterator[bytes]:
    """Yield frames of about the same length: changes around a short last one could leave it, with its object."""
    start = 0
    while (count := round((len(data) - start) / frame_bytes)) > 1:
        stop = frame_end(data, start, (len(data) - start) // count)
        yield data[start:stop]
        start = stop
    if start < len(data):
        yield data[start:]
