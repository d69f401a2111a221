"""Read an archive of sessions in a bucket: `Sessions`, and `Project`, the sessions of one project."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from cachetools import LRUCache

from monocontext.engine.open import TextOptions
from monocontext.errors import InvalidUrl, NotFound
from monocontext.format.filters.query import Literal
from monocontext.options import StoreOptions, validate_options
from monocontext.sessions import names
from monocontext.sessions.project_text import text_of
from monocontext.sessions.read_records import read_records, turns_of
from monocontext.sessions.search_index import FilterAnswer, SearchIndex
from monocontext.sessions.session_info import MOST_BYTES, SessionInfo, TurnPiece
from monocontext.sessions.time_span import ALWAYS, Span, inside, span_of, touches, turns_within
from monocontext.sessions.turn import Turn, as_blocks, parse, render, tools_of
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import ObjectInfo, Store, get_bounded, seconds_now
from monocontext.stores.store_user import StoreUser
from monocontext.text.assembled import DocumentStart
from monocontext.text.monocontext import Monocontext

if TYPE_CHECKING:
    from monocontext.sessions.upload import Uploaded
    from monocontext.text.search.passages import Passages

THREADS = 32
"""Requests at once."""
_REMEMBERED_TURNS = 200_000
"""Turns of a project that stay in memory: code that reads turns one by one reads a session once."""
_Objects = dict[str, dict[str, ObjectInfo]]
"""The objects of each session, by session and name."""
_Versions = dict[str, tuple[str, tuple[ObjectInfo, ...]]]
"""Sessions by id, each with its version, and with its records if there is no description of it."""


class Sessions(StoreUser):
    """An archive of sessions: any number of projects, users and machines under one prefix."""

    @classmethod
    @validate_options(StoreOptions)
    def open(cls, url: str | os.PathLike[str] | Store, **store_options: Unpack[StoreOptions]) -> Self:
        """Open the archive at `s3://bucket/prefix`, a directory or `memory://name`; it need not exist (no request)."""
        return cls._open_at(url, store_options)

    def projects(self) -> list[str]:
        """Projects that have sessions, sorted (1 LIST a thousand objects)."""
        found = set()
        for folder in (names.TRANSCRIPTS, names.SESSIONS):
            for info in self.store.list(f"{folder}/"):
                found.add(names.name_of(info.key.split("/")[1]))
        return sorted(found)

    def project(self, name: str) -> Project:
        """The sessions of one project (no request). Raises `InvalidUrl` for a name that is empty or too long."""
        return Project(self.store, name)

    def upload(self, session: str | os.PathLike[str], **options: Any) -> list[Uploaded]:
        """Upload a session of this machine and those of its subagents: a file, an id, or the beginning of an id.

        `options` are those of `upload_session`; the cost is its cost for each session.
        """
        from monocontext.sessions.readers import find_sessions
        from monocontext.sessions.upload import upload_session

        return [upload_session(self.store, file, **options) for file in find_sessions(os.fspath(session))]

    def find(self, session_id: str, project: str | None = None) -> tuple[Project, str]:
        """The project and the id of the session whose id is or begins with `session_id` (cost as of `list_sessions`).

        Raises `NotFound` if there is none, or more than one.
        """
        found = [
            (each, stored)
            for each in ([project] if project else self.projects())
            for stored in self.project(each).list_sessions()
            if stored == session_id or ("/" not in stored and stored.startswith(session_id))
        ]
        exact = [pair for pair in found if pair[1] == session_id] or found
        if len(exact) != 1:
            what = f"{len(exact)} sessions begin with" if exact else "no session"
            raise NotFound(f"{self.url}: {what} {session_id!r}")
        return self.project(exact[0][0]), exact[0][1]


class Project:
    """The sessions of one project. Safe for use by many threads. Costs below are those of the first call."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self._part = names.key_part(name, "project")
        self._lock = threading.Lock()
        self._infos: LRUCache[tuple[str, str], SessionInfo] = LRUCache(20_000)
        self._turns: LRUCache[tuple[str, ...], tuple[Turn, ...]] = LRUCache(
            _REMEMBERED_TURNS, getsizeof=lambda t: len(t) + 1
        )

    def __repr__(self) -> str:
        return f"<Project {self.name} of {self.store.url}>"

    # -- descriptions -------------------------------------------------------------------------------------------------

    def versions(self, *, resting_seconds: float = 0.0) -> dict[str, str]:
        """Sessions by id, each with a token that changes when the session grows (2 LISTs a thousand objects; no GET).

        `resting_seconds`: only sessions that have ended, or have not grown for this long by the store's clock. A
        session ends when its agent says so: then the copy of its text is the last object that is written.
        """
        texts = self._list(names.TRANSCRIPTS)
        found = {}
        for session, (version, parts) in self._list_versions(texts).items():
            objects = texts.get(session, {})
            last = parts[-1] if parts else objects[names.SESSION_JSON]
            copied = objects.get(names.TRANSCRIPT)
            has_ended = copied is not None and copied.modified_seconds >= last.modified_seconds
            if has_ended or seconds_now(self.store, last.now_seconds) - last.modified_seconds >= resting_seconds:
                found[session] = version
        return found

    def sessions(
        self, since: Any = None, until: Any = None, *, branch: str | None = None, tool: str | None = None
    ) -> list[SessionInfo]:
        """The description of each session, in the order in which they began (2 LISTs, and 1 GET a session, 32 at once).

        `since` and `until`: only sessions with a turn in that time; see `context`. `branch`: only sessions that ended
        on that git branch. `tool`: only sessions that called a tool of that name. A session that the Agent SDK wrote
        has no description: its records are read.
        """
        span = span_of(since, until)
        return [
            info
            for info in self._load_infos()
            if touches(info.started, info.ended, span)
            and branch in (None, info.branch)
            and (tool is None or tool in info.tools)
        ]

    def info(self, session_id: str) -> SessionInfo:
        """The description of one session (1 GET). Raises `NotFound`."""
        try:
            return self._load_info(session_id, "")
        except NotFound:
            found = self._list_versions().get(session_id)
            if found is None:
                raise NotFound(f"No session {session_id!r} in project {self.name!r} at {self.store.url}") from None
            return self._make_info(session_id, *found)

    # -- the text ------------------------------------------------------------------------------------------------------

    @validate_options(TextOptions)
    def context(
        self, since: Any = None, until: Any = None, *, sessions: list[str] | None = None, **options: Unpack[TextOptions]
    ) -> Monocontext:
        """All sessions as one text, in the order in which they began: a heading, then the turns of each.

        Each is a document of the text, named by its id, with `agent`, `title`, `started`, `ended`, `branch`, `cwd`,
        `users`, `tools` and `turns` as metadata. A search asks the filters of the sessions first, as
        `search_transcripts` does.

        `since` and `until`: only turns of that time; datetimes, seconds since 1970, or ISO 8601 (a date means the whole
        day). `sessions`: only these. `options`: those of `Monocontext.open` that need no place. Cost: as `sessions`,
        and 1 GET for each object of text that is partly within that time; text is read when it is used. Raises
        `NotFound` if the project has no session.
        """
        span = span_of(since, until)
        infos = [self.info(each) for each in sessions] if sessions is not None else list(self._load_infos())
        if not infos:
            raise NotFound(f"no sessions of project {self.name!r} at {self.store.url}")
        items: list[Any] = []
        for info in infos:
            body = list(self._text_items(info, span))
            if body:
                items += [DocumentStart(info.session_id, _metadata(info)), self._heading(info), *body]
        return text_of(self.store, items, self.helpers(), self._ask_filters, **options)

    def _ask_filters(self, literals: Sequence[Literal]) -> list[Callable[[str], bool]]:
        """For each literal a function that says whether the text under a key may contain it."""
        root = f"{names.TRANSCRIPTS}/{self._part}/"

        def may_hold(answer: FilterAnswer, key: str) -> bool:
            path, _, name = key.removeprefix(root).rpartition("/")
            return answer.may_hold((path, name))

        return [partial(may_hold, answer) for answer in SearchIndex(self.store, self._part).ask_all(literals)]

    def _text_items(self, info: SessionInfo, span: Span) -> Iterator[Any]:
        """The turns of a session in a time span: whole objects by their keys, parts of others as text."""
        if not info.pieces:
            yield render(turns_within(self.turns(info.session_id), span))
            return
        for piece in info.pieces:
            key = f"{self._folder(info.session_id)}/{piece.name}"
            if span == ALWAYS or (piece.started and inside(piece.started, piece.ended, span)):
                yield key, piece
            elif touches(piece.started, piece.ended, span):
                turns = parse(self.store.get(key).data.decode(), info.session_id)
                if text := render(turns_within(list(turns), span)):
                    yield text

    def _heading(self, info: SessionInfo) -> str:
        title = " ".join((info.title or info.first_prompt).split())
        by = ", ".join(info.users) or "unknown"
        facts = (
            f"agent {info.agent or '?'} | by {by} | {info.started or '?'} to {info.ended or '?'} | {info.turns} turns"
        )
        return f"=== SESSION: {info.session_id} ===\n{facts}\n{title}\n\n"

    # -- functions of DeepRecurse, for model code ----------------------------------------------------------------------

    def helpers(self) -> dict[str, Callable[..., object]]:
        """The functions over sessions that model code may call, by name."""
        return {
            "list_sessions": self.list_sessions,
            "list_turns": self.list_turns,
            "read_turn": self.read_turn,
            "read_session": self.read_session,
            "search_transcripts": self.search_transcripts,
            "search_sessions": self.search_sessions,
        }

    def list_sessions(
        self, since: Any = None, until: Any = None, *, branch: str | None = None, tool: str | None = None
    ) -> list[str]:
        """Ids of all sessions, sorted (2 LISTs). With a filter, the cost is that of `sessions`; no text is read."""
        if (since, until, branch, tool) == (None, None, None, None):
            return sorted(self._list_versions())
        return sorted(info.session_id for info in self.sessions(since, until, branch=branch, tool=tool))

    def list_turns(self, session_id: str) -> list[int]:
        """Numbers of a session's turns; empty for a missing session (cost as of `turns`)."""
        return [turn.n for turn in self._turns_or_none(session_id)]

    def read_turn(self, session_id: str, n: int) -> dict[str, Any]:
        """One turn: `turn_number`, `role`, `content`, `timestamp`, `session_id`; or a dict with an `error` (cost as of
        `turns`)."""
        turn = next((turn for turn in self._turns_or_none(session_id) if turn.n == n), None)
        return turn.to_dict() if turn else {"error": f"Turn {n} not found in session {session_id}"}

    def read_session(self, session_id: str) -> str:
        """A session as text, for each turn `[Turn n - ROLE]` and its text (cost as of `turns`)."""
        return as_blocks(self._turns_or_none(session_id)) or f"No turns found for session {session_id}"

    def search_transcripts(self, keyword: str, limit: int = 200) -> list[dict[str, Any]]:
        """The turns that contain a text, in any case, at most `limit`, ordered by the ids of their sessions.

        Search filters say which texts may contain it. These are read, and texts without filters (see `index`), 16 at
        once: 2 LISTs a thousand objects, about 20 GETs of 1 KiB, 2 GETs a session that may contain it.
        """
        needle = keyword.lower()
        found: list[dict[str, Any]] = []
        with ThreadPoolExecutor(THREADS, thread_name_prefix="monocontext-sessions") as threads:
            asking = threads.submit(SearchIndex(self.store, self._part).ask, keyword)
            listing = threads.submit(self._list, names.SESSIONS)
            texts = self._list(names.TRANSCRIPTS)
            answer = asking.result()
            wanted: dict[str, list[str] | None] = {}  # names of texts by session; None for all
            for session, objects in texts.items():
                if names.SESSION_JSON in objects:
                    path = names.session_path(session)
                    some = [name for name in objects if name.startswith("turns-") and answer.may_hold((path, name))]
                    wanted |= {session: some} if some else {}
            wanted |= dict.fromkeys(_without_description(texts, listing.result()))
            read = in_order(threads, lambda each: self._turns_of(each, wanted[each]), sorted(wanted), THREADS // 2)
            with closing(read):
                for turn in itertools.chain.from_iterable(read):
                    if needle in turn.text.lower():
                        found.append(turn.to_dict())
                        if len(found) >= limit:
                            return found
        return found

    def search(self, words: str, k: int = 10, *, max_seconds: float | None = None) -> Passages:
        """The sessions that best match some words, best first: each by its best passage, with its id as `document`.

        `words` are those of `Monocontext.search`, lines and characters those of `context()`. Search filters say which
        texts may contain them. Cost: as `context`, about 16 GETs of 1 KiB a word, and frames of these texts. Raises
        `NotFound` if the project has no session, `ValueError` for a query without a word to look for.
        """
        with self.context() as text:
            return text.search(words, k=k, max_seconds=max_seconds, per_document=True)

    def search_sessions(self, words: str, k: int = 10) -> list[dict[str, Any]]:
        """The sessions that `search` finds, as dicts for a REPL: `session_id`, `score`, `content`. A last dict has a
        `note` if text was left unread."""
        found = self.search(words, k)
        rows = [{"session_id": one.document, "score": round(one.score, 2), "content": one.text} for one in found]
        return [*rows, *([{"note": found.note}] if found.note else [])]

    def index(self, *, rebuild: bool = False) -> int:
        """Make search filters for text without them, with `rebuild` for all text; returns the number of texts added.

        Uploads make filters themselves; this is for older sessions, and for uploads that died. Cost: as `versions`,
        1 GET a session and a new text, and the cost of the filters. Sessions of the Agent SDK have none.
        """
        search = SearchIndex(self.store, self._part)
        if rebuild:
            search.remove()
        return search.add(
            (
                (names.session_path(info.session_id), piece.name, piece.bytes)
                for info in self._load_infos()
                for piece in info.pieces
            ),
            flush=True,
        )

    def turns(self, session_id: str) -> list[Turn]:
        """All turns of a session (a GET for its description, and for each of its pieces). Raises `NotFound`."""
        info = self.info(session_id)
        if info.pieces or info.parts:
            with ThreadPoolExecutor(THREADS, thread_name_prefix="monocontext-sessions") as threads:
                texts = in_order(threads, lambda piece: self._piece_turns(session_id, piece), info.pieces, THREADS)
                return [turn for turns in texts for turn in turns]
        return list(
            self._remember((session_id, info.write_id), lambda: turns_of(self._load_records(session_id), session_id)[0])
        )

    def _turns_of(self, session_id: str, pieces: list[str] | None) -> list[Turn]:
        """The turns in some of a session's objects, by their names; in all for None."""
        if pieces is None:
            return self._turns_or_none(session_id)
        try:
            info = self.info(session_id)
        except NotFound:  # removed after the listing
            return []
        named = [piece for piece in info.pieces if piece.name in pieces]
        return [turn for piece in named for turn in self._piece_turns(session_id, piece)]

    def _piece_turns(self, session_id: str, piece: TurnPiece) -> tuple[Turn, ...]:
        key = f"{self._folder(session_id)}/{piece.name}"
        return self._remember((session_id, piece.name), lambda: parse(self.store.get(key).data.decode(), session_id))

    def _remember(self, key: tuple[str, ...], load: Callable[[], Iterable[Turn]]) -> tuple[Turn, ...]:
        with self._lock:
            found = self._turns.get(key)
        if found is None:
            found = tuple(load())
            if len(found) < _REMEMBERED_TURNS:
                with self._lock:
                    self._turns[key] = found
        return found

    def _turns_or_none(self, session_id: str) -> list[Turn]:
        try:
            return self.turns(session_id)
        except (NotFound, InvalidUrl):  # an invalid id is missing too
            return []

    # -- objects -------------------------------------------------------------------------------------------------------

    def _folder(self, session_id: str) -> str:
        return f"{names.TRANSCRIPTS}/{self._part}/{names.session_path(session_id)}"

    def _list_versions(self, texts: _Objects | None = None) -> _Versions:
        """The versions of all sessions (2 LISTs a thousand objects; 1 if the `texts` are listed already)."""
        texts = self._list(names.TRANSCRIPTS) if texts is None else texts
        found: _Versions = {
            session: (objects[names.SESSION_JSON].etag, ())
            for session, objects in texts.items()
            if names.SESSION_JSON in objects
        }
        return found | _without_description(texts, self._list(names.SESSIONS))

    def _list(self, folder: str) -> _Objects:
        """The objects of each session in a folder (1 LIST a thousand objects)."""
        found: _Objects = {}
        root = f"{folder}/{self._part}/"
        for info in self.store.list(root):
            path, _, name = info.key.removeprefix(root).rpartition("/")
            if path:
                found.setdefault(names.session_of(path), {})[name] = info
        return found

    def _load_infos(self) -> list[SessionInfo]:
        listed = self._list_versions()

        def load(session_id: str) -> SessionInfo | None:
            version, parts = listed[session_id]
            try:
                return self._make_info(session_id, version, parts) if parts else self._load_info(session_id, version)
            except NotFound:  # removed after the listing
                return None

        with ThreadPoolExecutor(THREADS, thread_name_prefix="monocontext-sessions") as threads:
            infos = [info for info in in_order(threads, load, listed, 2 * THREADS) if info]
        return sorted(infos, key=lambda info: (info.started, info.session_id))

    def _load_info(self, session_id: str, version: str) -> SessionInfo:
        stored = self._infos.get((session_id, version)) if version else None
        if stored is None:
            key = f"{self._folder(session_id)}/{names.SESSION_JSON}"
            blob = get_bounded(self.store, key, MOST_BYTES)
            stored = SessionInfo.from_bytes(blob.data, f"{self.store.url}/{key}")
            self._infos[session_id, blob.etag] = stored
        return stored

    def _make_info(self, session_id: str, version: str, parts: tuple[ObjectInfo, ...]) -> SessionInfo:
        """The description of a session that the Agent SDK wrote, made from its records."""
        stored = self._infos.get((session_id, version))
        if stored is None:
            records = read_records(self.store, [part.key for part in parts])
            turns, maker = turns_of(records, session_id)
            stored = self._infos[session_id, version] = SessionInfo(
                session_id, self.name, maker.agent, maker.title, maker.first_prompt, maker.cwd, maker.branch,
                started=maker.started, ended=maker.ended, records=len(records), turns=len(turns), write_id=version,
                unknown=maker.unknown, is_redacted=False, tools=tuple(sorted(tools_of(turns))),
            )  # fmt: skip
        return stored

    def _load_records(self, session_id: str) -> list[dict[str, Any]]:
        found = self._list_versions().get(session_id)
        return read_records(self.store, [part.key for part in found[1]]) if found else []


def _without_description(texts: _Objects, records: _Objects) -> _Versions:
    """The sessions that only the Agent SDK wrote: they have records, and no `session.json` among the texts."""
    found = {}
    for session, objects in records.items():
        parts = tuple(info for name, info in objects.items() if names.is_part(name))
        if parts and names.SESSION_JSON not in texts.get(session, {}):
            found[session] = f"{len(parts)}:{parts[-1].key}", parts
    return found


def _metadata(info: SessionInfo) -> dict[str, Any]:
    names = ("agent", "title", "started", "ended", "branch", "cwd", "turns")
    return {name: getattr(info, name) for name in names} | {"users": list(info.users), "tools": list(info.tools)}


class _ProjectOptions(TextOptions, StoreOptions, total=False):
    """The options of a text and of its store."""


@validate_options(_ProjectOptions)
def open_project(
    url: str | os.PathLike[str] | Store,
    project: str | None = None,
    *,
    since: Any = None,
    until: Any = None,
    sessions: list[str] | None = None,
    **options: Unpack[_ProjectOptions],
) -> Monocontext:
    """All sessions of a project as one text; see `Project.context`. `project` may be left out if there is only one.

    Raises `NotFound` if there is no such project, or more than one to choose from.
    """
    text_options = {name: value for name, value in options.items() if name in TextOptions.__annotations__}
    store_options = {name: value for name, value in options.items() if name not in text_options}
    archive = Sessions.open(url, **cast(StoreOptions, store_options))
    if project is None:
        found = archive.projects()
        if len(found) != 1:
            raise NotFound(f"{archive.url}: {len(found)} projects, name one of them: {', '.join(found[:10]) or 'none'}")
        project = found[0]
    return archive.project(project).context(since, until, sessions=sessions, **cast(TextOptions, text_options))
