"""Keep the turns of a project's sessions in one `Monocontext`, a document for each session, and search it."""

from __future__ import annotations

import dataclasses
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, cast

from monocontext.engine.open import TextOptions
from monocontext.errors import AccessDenied, AlreadyExists, DamagedData, InvalidText, NotFound, StoreFailure
from monocontext.format.documents import encode_metadata, encode_name
from monocontext.format.manifest import Manifest
from monocontext.sessions.session_info import SessionInfo
from monocontext.sessions.turn import Turn, parse, render, shield
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Blob, ObjectInfo, Store, StoreWrapper
from monocontext.text.monocontext import Monocontext
from monocontext.text.namespace import NamespacePatch
from monocontext.writing.documents import documents
from monocontext.writing.publish import publish
from monocontext.writing.upkeep.edit import delete, update
from monocontext.writing.upkeep.gc import gc

_FACTS = ("agent", "title", "started", "ended", "branch", "cwd", "turns")
_BATCH_SESSIONS = 50
"""Sessions that are added to a text in one generation, and held in memory for it. A new text is one generation."""
_GC_GENERATIONS = 16  # with each so many-th generation those that are older than an hour are removed
_ATTEMPTS = 50  # the most tries to add sessions while others do
_HEAD = "\n[Turn "
_SESSION = "\n=== SESSION: "

_Document = tuple[str, str, dict[str, Any]]
Load = Callable[[str], tuple[SessionInfo, list[Turn]]]
"""Reads a session by its id. Raises `NotFound`."""


class ProjectText(Monocontext):
    """A text over sessions, with functions for a REPL: `list_sessions`, `read_turn` and the rest."""

    __slots__ = ("helpers",)

    helpers: Mapping[str, Callable[..., object]]

    def repl_tools(self) -> Mapping[str, Callable[..., object]]:
        """The functions over its sessions, by name, for a REPL whose cells run elsewhere (no GET)."""
        return self.helpers if self._opened is not None else {}

    def repl_namespace(self) -> NamespacePatch:
        """The namespace of any text, with the functions over its sessions (no GET)."""
        namespace = super().repl_namespace()
        namespace.names.update(self.repl_tools())
        return namespace


def text_of(
    sessions: Iterable[tuple[SessionInfo, list[Turn]]], helpers: Mapping[str, Any], options: TextOptions
) -> ProjectText:
    """A text of some turns in memory (no request)."""
    name = f"sessions-{uuid.uuid4().hex}"
    store = MemoryStore(name)
    publish(documents(list(_documents(sessions, {}))), store)
    text = cast(ProjectText, ProjectText.open(store, **options))
    text.helpers = helpers
    forget(name)  # its objects go with the text
    return text


def open_text(
    store: Store, prefix: str, versions: Mapping[str, str], load: Load, helpers: Mapping[str, Any], options: TextOptions
) -> ProjectText:
    """The text of a project below a prefix, after it got what is new of some sessions.

    `versions`: the sessions by id, each with a token that changes when it grows. Cost: 1 GET to open the text, 1 for
    4,096 of its documents; for new sessions those of `load` and `update`. Who may not write gets a text in memory, made
    of all sessions. A damaged session is left out with a warning. Raises `NotFound` if no session is left.
    """
    below, is_done = _Below(store, prefix), False
    for _ in range(_ATTEMPTS):
        known: dict[str, Any] | None = None
        try:
            text = cast(ProjectText, ProjectText.open(below, **options))
            known = {name: text.documents.metadata(name).get("version") for name in text.documents}
            if is_done or known == versions:
                text.helpers = helpers
                return text
            text.close()
        except NotFound:
            if is_done:
                raise
        try:
            _bring_up_to_date(below, known, versions, load)
            is_done = True
        except (AlreadyExists, NotFound):
            continue  # another reader has just changed something: look again
        except AccessDenied:
            return text_of((item for name in versions for item in _loaded(name, load)), helpers, options)
    raise StoreFailure(f"{below.url}: others kept adding sessions, {_ATTEMPTS} times in a row")


def turns_with(text: Monocontext, keyword: str) -> Iterator[Turn]:
    """The turns that contain a keyword, in any case, in the order of the text (GETs as of `grep`)."""
    needle = max(keyword.splitlines() or [""], key=len)
    end = 0
    for hit in text.grep(needle, fixed=True, ignore_case=True):
        if hit.offset < end:
            continue  # a second hit in the same turn
        start = text.rfind(_HEAD, 0, hit.offset + len(_HEAD)) + 1
        end = text.find(_HEAD, hit.offset) + 1 or len(text)
        body = str(text[start:end])
        if not start or _SESSION in body[: hit.offset - start + 1]:
            continue  # the hit is in the head of the session
        body = body.partition(_SESSION)[0].removesuffix("\n")
        for turn in parse(body + "\n", str(hit.document)):
            if keyword.lower() in turn.text.lower():
                yield turn


def _bring_up_to_date(below: _Below, stored: Mapping[str, Any] | None, versions: Mapping[str, str], load: Load) -> None:
    """Add new sessions, replace grown ones and remove those that are gone. What another reader does at the same time
    is done once: documents have the names of their sessions."""
    known, roots = stored or {}, list[Manifest]()
    changed = (name for name in versions if known.get(name) != versions[name])
    new = _documents((item for name in changed for item in _loaded(name, load)), versions)
    if stored is not None:
        roots += [update(below, batch) for batch in iter(lambda: list(islice(new, _BATCH_SESSIONS)), [])]
    elif first := next(new, None):
        roots.append(publish(documents(chain([first], new)), below))
    if gone := [name for name in known if name not in versions]:
        try:
            roots.append(delete(below, gone, forget=True))
        except StoreFailure as error:
            with Monocontext.open(below) as text:
                if not text.documents.keys().isdisjoint(gone):
                    raise
            warnings.warn(str(error), stacklevel=2)  # what others are adding right now may hold it too
    if any(root.generation % _GC_GENERATIONS == 0 for root in roots):
        gc(below, older_than_seconds=3600.0)


def _loaded(name: str, load: Load) -> Iterator[tuple[SessionInfo, list[Turn]]]:
    """The session of a name, unless it was removed since the listing, or is damaged."""
    try:
        yield load(name)
    except NotFound:
        pass
    except DamagedData as error:
        warnings.warn(f"left out: {error}", stacklevel=2)


def _documents(sessions: Iterable[tuple[SessionInfo, list[Turn]]], versions: Mapping[str, str]) -> Iterator[_Document]:
    """Sessions as documents. One that has no valid name or too many facts is left out with a warning."""
    for info, turns in sessions:
        name, text, facts = _document(info, turns, versions.get(info.session_id, ""))
        try:
            encode_name(name, 0)
            encode_metadata(facts, 0)
        except InvalidText as error:
            warnings.warn(f"left out: {name!a}: {error}", stacklevel=2)
        else:
            yield name, text, facts


def _document(info: SessionInfo, turns: list[Turn], version: str) -> _Document:
    title = shield(" ".join((info.title or info.first_prompt).split()))
    by = ", ".join(info.users) or "unknown"
    facts = f"agent {info.agent or '?'} | by {by} | {info.started or '?'} to {info.ended or '?'} | {info.turns} turns"
    text = f"=== SESSION: {info.session_id} ===\n{facts}\n{title}\n\n{render(turns)}"
    metadata = {name: getattr(info, name) for name in _FACTS}
    metadata |= {"users": list(info.users), "tools": list(info.tools), "version": version}
    return info.session_id, text.encode("utf-8", "replace").decode(), metadata


class _Below(StoreWrapper):
    """The objects of a store below a prefix."""

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self._prefix = prefix + "/"

    @property
    def url(self) -> str:
        return f"{self.store.url.rstrip('/')}/{self._prefix}".removesuffix("/")

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        return super().put(self._prefix + key, data, if_absent=if_absent, if_match=if_match)

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return super().get(self._prefix + key, most_bytes=most_bytes)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return super().get_range(self._prefix + key, start, length, etag=etag)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for info in super().list(self._prefix + prefix):
            yield dataclasses.replace(info, key=info.key.removeprefix(self._prefix))

    def head(self, key: str) -> ObjectInfo:
        return dataclasses.replace(super().head(self._prefix + key), key=key)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        super().delete(self._prefix + key, if_match=if_match)

    def close(self) -> None:
        """Leave the store open: the archive owns it."""
