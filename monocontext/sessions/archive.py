"""Read an archive of sessions: its projects, the sessions of each, and all sessions of a project as one text."""

from __future__ import annotations

import json
import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack, cast

from cachetools import LRUCache

from monocontext.engine.open import TextOptions
from monocontext.errors import AccessDenied, AlreadyExists, DamagedData, InvalidText, InvalidUrl, NotFound, StoreFailure
from monocontext.format.documents import encode_metadata, encode_name
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions, validate_options
from monocontext.sessions import session_info
from monocontext.sessions.readers import SESSION_READERS
from monocontext.sessions.records import Record
from monocontext.sessions.session_info import SessionInfo, read_info, read_session, session_key
from monocontext.sessions.turn import ALWAYS, Turn, parse, render, shield, span_of
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import ObjectInfo, Store, StoreWrapper
from monocontext.stores.store_user import StoreUser
from monocontext.text.monocontext import Monocontext
from monocontext.text.namespace import NamespacePatch
from monocontext.writing.documents import documents
from monocontext.writing.publish import publish
from monocontext.writing.upkeep.edit import delete, update
from monocontext.writing.upkeep.gc import gc

if TYPE_CHECKING:
    from monocontext.text.search.passages import Passages

_THREADS = 32  # requests at once
_REMEMBERED_TURNS = 200_000  # of a project stay in memory, so that reading turns one by one reads a session once
_REPL_FUNCTIONS = ["list_sessions", "list_turns", "read_turn", "read_session", "search_transcripts", "search_sessions"]
_METADATA = ("agent", "title", "started", "ended", "branch", "cwd", "turns")  # fields of documents' metadata
_BATCH_SESSIONS = 50  # sessions that a text gets in one generation; all are in memory at once
_GC_GENERATIONS = 16  # at every 16th generation, generations older than an hour are removed
_ATTEMPTS = 50  # the most tries to add sessions while others do
_TURN_HEADING = "\n[Turn "  # how the heading of a turn begins in a text


class _Session(NamedTuple):
    """A session with all its turns."""

    info: SessionInfo
    turns: list[Turn]


_Load = Callable[[str], _Session]  # loads the session with an id


class ProjectText(Monocontext):
    """A text of sessions, with functions for a REPL that list, read and search the sessions."""

    __slots__ = ("helpers",)

    helpers: Mapping[str, Callable[..., object]]  # see `Project.helpers`

    def repl_tools(self) -> Mapping[str, Callable[..., object]]:
        """The functions that list, read and search the sessions, by name, for a REPL in another process (no GET)."""
        return self.helpers if self._opened is not None else {}

    def repl_namespace(self) -> NamespacePatch:
        """The namespace of `Monocontext`, and the functions of `repl_tools` (no GET)."""
        namespace = super().repl_namespace()
        namespace.names.update(self.repl_tools())
        return namespace


class Sessions(StoreUser):
    """An archive of sessions: any number of projects, users and machines under one prefix."""

    @classmethod
    @validate_options(StoreOptions)
    def open(cls, url: str | os.PathLike[str] | Store, **store_options: Unpack[StoreOptions]) -> Self:
        """Open the archive at `s3://bucket/prefix`, a directory or `memory://name`; it need not exist (no request)."""
        return cls._open_at(url, store_options)

    def projects(self) -> list[str]:
        """The names of projects that have sessions, sorted (1 LIST per 1,000 sessions)."""
        stored = self.store.list(f"{session_info.SESSIONS}/")
        return sorted({session_info.name_of(info.key.split("/")[1]) for info in stored})

    def project(self, name: str) -> Project:
        """The sessions of one project (no request). Raises `InvalidUrl` for a name that is empty or too long."""
        return Project(self.store, name)

    def find(self, session_id: str, project: str | None = None) -> tuple[Project, str]:
        """The project and full id of the session whose id is `session_id` or begins with it (1 LIST per 1,000 sessions;
        twice without `project`). Raises `NotFound` if there is no such session, or more than one."""
        projects = map(self.project, [project] if project else self.projects())
        stored = [(item, name) for item in projects for name in item.list_sessions()]
        matches = [(item, name) for item, name in stored if name == session_id]
        if not matches:  # the beginning of an id does not mean a subagent
            matches = [(item, name) for item, name in stored if name.startswith(session_id) and "/" not in name]
        if len(matches) != 1:
            problem = f"{len(matches)} session ids begin with" if matches else "no session"
            raise NotFound(f"{self.url}: {problem} {session_id!r}: list the sessions to see their ids")
        return matches[0]


class Project:
    """The sessions of one project. Safe for use by many threads. Costs below are those of the first call."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self._part = session_info.key_part(name, "project")
        self._lock = threading.Lock()
        self._loaded = LRUCache[str, tuple[str, _Session]](_REMEMBERED_TURNS, lambda entry: len(entry[1].turns) + 1)
        """Sessions by id, each with the version that was read."""

    def versions(self) -> dict[str, str]:
        """The ids of sessions, each with a token that changes when the session grows (1 LIST per 1,000 sessions)."""
        return {session_id: stored.etag for session_id, stored in self._list().items()}

    def sessions(
        self, since: Any = None, until: Any = None, *, branch: str | None = None, tool: str | None = None
    ) -> list[SessionInfo]:
        """The descriptions of sessions, in the order in which they began (1 LIST; 1 GET per session, 32 at once).

        `since` and `until`: only sessions with a turn in that time; see `context`. `branch`: only sessions that ended
        on that git branch. `tool`: only sessions that called a tool of that name.
        """
        span = span_of(since, until)
        with ThreadPoolExecutor(_THREADS) as threads:
            infos = [info for info in threads.map(self._info_of, self._list().values()) if info]
        infos = [info for info in infos if branch in (None, info.branch) and (tool is None or tool in info.tools)]
        infos = [info for info in infos if span.may_have_turns(info.started, info.ended)]
        return sorted(infos, key=lambda info: (info.started, info.session_id))

    def info(self, session_id: str) -> SessionInfo:
        """The description of one session (1 GET). Raises `NotFound`."""
        return self._load(session_id).info

    def records(self, session_id: str) -> tuple[SessionInfo, list[Record]]:
        """The description of a session and its records, without secrets (1 GET). Raises `NotFound`."""
        info, lines, _ = self._get(session_id)
        return info, list(map(json.loads, lines))

    @validate_options(TextOptions)
    def context(
        self, since: Any = None, until: Any = None, *, sessions: list[str] | None = None, **options: Unpack[TextOptions]
    ) -> ProjectText:
        """All sessions as one text, in the order in which they were added: for each a heading, then its turns.

        Each session is a document, named by its id, with `agent`, `title`, `started`, `ended`, `branch`, `cwd`,
        `users`, `tools` and `turns` as metadata. The archive stores the text, and a caller who may write updates it.

        `since` and `until`: only turns of that time; datetimes, seconds since 1970, or ISO 8601 (a date means the whole
        day). `sessions`: only the sessions with these ids. Cost: 1 LIST per 1,000 sessions, 2 GETs to open the text,
        1 GET for each new session, and the requests of one `append`. With one of the three, the text is in memory:
        1 GET per session, with `since` or `until` after the requests of `sessions`. Raises `NotFound` for no session.
        """
        span = span_of(since, until)
        versions = self.versions() if sessions is None else {}
        if sessions is None and not versions:
            raise NotFound(f"no sessions of project {self.name!r} at {self.store.url}: upload one first")
        if sessions is None and span == ALWAYS:
            return self._stored_text(versions, options)
        wanted = [info.session_id for info in self.sessions(since, until)] if sessions is None else sessions
        with ThreadPoolExecutor(_THREADS) as threads:
            loaded = [_Session(info, span.turns_of(turns)) for info, turns in threads.map(self._load, wanted)]
        return self._text_in_memory((session for session in loaded if session.turns), options)

    def _text_in_memory(self, sessions: Iterable[_Session], options: TextOptions) -> ProjectText:
        """A text of these sessions (no request)."""
        name = f"sessions-{uuid.uuid4().hex}"
        store = MemoryStore(name)
        publish(documents(list(_documents(sessions, {}))), store)
        text = cast(ProjectText, ProjectText.open(store, **options))
        text.helpers = self.helpers()
        forget(name)  # its objects go with the text
        return text

    def _stored_text(self, versions: Mapping[str, str], options: TextOptions) -> ProjectText:
        """The text in the archive, updated to `versions`; in memory if the caller may not write. Raises `NotFound`."""
        texts, is_updated = StoreWrapper(self.store, f"{session_info.TEXTS}/{self._part}/"), False
        for _ in range(_ATTEMPTS):
            text_versions: dict[str, Any] | None = None  # of the sessions in the text; None if there is no text
            try:
                text = cast(ProjectText, ProjectText.open(texts, **options))
                text_versions = {name: text.documents.metadata(name).get("version") for name in text.documents}
                if is_updated or text_versions == versions:
                    text.helpers = self.helpers()
                    return text
                text.close()
            except NotFound:
                if is_updated:
                    raise
            try:
                _update(texts, text_versions, versions, self._load)
                is_updated = True
            except (AlreadyExists, NotFound):
                continue  # another reader has just changed something: look again
            except AccessDenied:
                return self._text_in_memory(_load_all(versions, self._load), options)
        raise StoreFailure(f"{texts.url}: other processes changed it during all {_ATTEMPTS} attempts: try again")

    def helpers(self) -> dict[str, Callable[..., object]]:
        """The functions that list, read and search sessions, by name, for code that a model writes."""
        return {name: getattr(self, name) for name in _REPL_FUNCTIONS}

    def list_sessions(
        self, since: Any = None, until: Any = None, *, branch: str | None = None, tool: str | None = None
    ) -> list[str]:
        """The ids of sessions, sorted (1 LIST per 1,000 sessions). With a filter, costs as much as `sessions`."""
        if (since, until, branch, tool) == (None, None, None, None):
            return sorted(self._list())
        return sorted(info.session_id for info in self.sessions(since, until, branch=branch, tool=tool))

    def list_turns(self, session_id: str) -> list[int]:
        """The numbers of a session's turns; none for a missing session (same requests as `turns`)."""
        return [turn.number for turn in self._turns_or_none(session_id)]

    def read_turn(self, session_id: str, n: int) -> dict[str, Any]:
        """A turn as `Turn.to_dict` returns it; a dict with `error` if it is missing (same requests as `turns`)."""
        turn = next((turn for turn in self._turns_or_none(session_id) if turn.number == n), None)
        return turn.to_dict() if turn else {"error": f"Turn {n} not found in session {session_id}"}

    def read_session(self, session_id: str) -> str:
        """A session as text, with a line `[Turn n - ROLE]` before each turn (same requests as `turns`)."""
        turns = [f"[Turn {turn.number} - {turn.role.upper()}]\n{turn.text}" for turn in self._turns_or_none(session_id)]
        return "\n\n".join(turns) or f"No turns found for session {session_id}"

    def search_transcripts(self, keyword: str, limit: int = 200) -> list[dict[str, Any]]:
        """At most `limit` turns with `keyword` in any case, as dicts (requests: `context`, `grep`, whole turns)."""
        with suppress(NotFound), self.context() as text:
            return [turn.to_dict() for turn in islice(_turns_with(text, keyword), limit)]
        return []

    def search(self, words: str, k: int = 10, *, max_seconds: float | None = None) -> Passages:
        """The best passage of each of the `k` sessions that match `words` best; `document` is the session's id.

        `words` are as in `Monocontext.search`; offsets and lines refer to the text of `context()`. Costs the requests
        of both. Raises `NotFound` if the project has no session, `ValueError` if `words` has no word to look for.
        """
        with self.context() as text:
            return text.search(words, k=k, max_seconds=max_seconds, per_document=True)

    def search_sessions(self, words: str, k: int = 10) -> list[dict[str, Any]]:
        """The passages of `search` as dicts, for a REPL. If text was left unread, the last dict has only a `note`."""
        passages = self.search(words, k)
        rows = [{"session_id": item.document, "score": round(item.score, 2), "content": item.text} for item in passages]
        return [*rows, {"note": passages.note}] if passages.note else rows

    def turns(self, session_id: str) -> list[Turn]:
        """All turns of a session (1 GET; 1 HEAD if the session is in memory). Raises `NotFound`."""
        return self._load(session_id).turns

    def _turns_or_none(self, session_id: str) -> list[Turn]:
        with suppress(NotFound, InvalidUrl):  # an invalid id is missing too
            return self.turns(session_id)
        return []

    def _load(self, session_id: str) -> _Session:
        """A session with its turns: from memory if it has not changed (1 HEAD), else from the archive (1 GET)."""
        with self._lock:
            version, session = self._loaded.get(session_id, ("", None))
        with suppress(NotFound):
            if session and version == self.store.head(session_key(self.name, session_id)).etag:
                return session
        info, lines, version = self._get(session_id)
        maker = SESSION_READERS[info.agent if info.agent in SESSION_READERS else "chat"].maker(session_id)
        session = _Session(info, [turn for record in map(json.loads, lines) for turn in maker.feed(record)])
        with self._lock, suppress(ValueError):  # a session that is too large is read each time
            self._loaded[session_id] = version, session
        return session

    def _get(self, session_id: str) -> tuple[SessionInfo, list[bytes], str]:
        """The description, the records and the version of a session (1 GET). Raises `NotFound`."""
        try:
            return read_session(self.store, session_key(self.name, session_id))
        except NotFound:
            raise NotFound(f"no session {session_id!r} in project {self.name!r} at {self.store.url}") from None

    def _list(self) -> dict[str, ObjectInfo]:
        """The objects of the project's sessions, by session id (1 LIST per 1,000 sessions)."""
        root = f"{session_info.SESSIONS}/{self._part}/"
        stored = ((session_info.session_of(info.key.removeprefix(root)), info) for info in self.store.list(root))
        return {name: info for name, info in stored if name}

    def _info_of(self, stored: ObjectInfo) -> SessionInfo | None:
        """The description in a listed object (1 GET); None if the object was removed since."""
        with suppress(NotFound):
            return read_info(self.store, stored.key, stored.size_bytes).info
        return None


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
) -> ProjectText:
    """All sessions of a project as one text; see `Project.context`. `project` may be left out if there is only one.
    Raises `NotFound` if there is no such project, or more than one to choose from."""
    text_options = {name: value for name, value in options.items() if name in TextOptions.__annotations__}
    store_options = {name: value for name, value in options.items() if name not in text_options}
    archive = Sessions.open(url, **cast(StoreOptions, store_options))
    if project is None:
        projects = archive.projects()
        if len(projects) != 1:
            advice = f"pass as project= one of {', '.join(projects[:10])}" if projects else "upload a session first"
            raise NotFound(f"{archive.url} has sessions of {len(projects)} projects: {advice}")
        project = projects[0]
    return archive.project(project).context(since, until, sessions=sessions, **cast(TextOptions, text_options))


def _turns_with(text: Monocontext, keyword: str) -> Iterator[Turn]:
    """Yield the turns that contain a keyword in any case, in the order of the text (GETs: `grep`, whole turns)."""
    longest_line = max(keyword.splitlines() or [""], key=len)  # `grep` finds lines
    end = 0
    for hit in text.grep(longest_line, fixed=True, ignore_case=True):
        if hit.offset < end:
            continue  # a second hit in the same turn
        session = text.documents.record(str(hit.document))
        start = text.rfind(_TURN_HEADING, session.start, hit.offset + len(_TURN_HEADING)) + 1
        end = text.find(_TURN_HEADING, hit.offset, session.stop) + 1 or session.stop
        if start:  # else the hit is in the heading of the session
            turns = parse(str(text[start:end]), session.name)
            yield from (turn for turn in turns if keyword.lower() in turn.text.lower())


def _update(store: Store, before: Mapping[str, Any] | None, versions: Mapping[str, str], load: _Load) -> None:
    """Update the text in `store` from the sessions `before` to those in `versions`; publish it if `before` is None.
    Documents are named by session ids, so a session that two readers add at once is in the text once."""
    known, roots = before or {}, list[Manifest]()
    changed = (name for name in versions if known.get(name) != versions[name])
    new_documents = _documents(_load_all(changed, load), versions)
    if before is not None:
        roots += [update(store, batch) for batch in iter(lambda: list(islice(new_documents, _BATCH_SESSIONS)), [])]
    elif first := next(new_documents, None):
        roots.append(publish(documents(chain([first], new_documents)), store))
    if gone := [name for name in known if name not in versions]:
        try:
            roots.append(delete(store, gone, forget=True))
        except StoreFailure as error:
            with Monocontext.open(store) as text:
                if not text.documents.keys().isdisjoint(gone):
                    raise
            warnings.warn(str(error), stacklevel=2)  # only unnamed objects may still hold them
    if any(root.generation % _GC_GENERATIONS == 0 for root in roots):
        gc(store, older_than_seconds=3600.0)


def _load_all(session_ids: Iterable[str], load: _Load) -> Iterator[_Session]:
    """Yield the sessions that can be loaded. Warns of damaged sessions, which are left out."""
    for session_id in session_ids:
        try:
            yield load(session_id)
        except NotFound:
            pass  # removed since the listing
        except DamagedData as error:
            warnings.warn(f"left out: {error}", stacklevel=2)


def _documents(sessions: Iterable[_Session], versions: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name, text and metadata of each session's document. Warns of sessions that cannot be stored as one."""
    for info, turns in sessions:
        title, by = shield(" ".join((info.title or info.first_prompt).split())), ", ".join(info.users) or "unknown"
        when = f"{info.started or '?'} to {info.ended or '?'}"
        head = f"=== SESSION: {info.session_id} ===\nagent {info.agent or '?'} | by {by} | {when} | {info.turns} turns"
        metadata = {name: getattr(info, name) for name in _METADATA}
        metadata |= {"users": list(info.users), "tools": list(info.tools), "version": versions.get(info.session_id, "")}
        try:
            encode_name(info.session_id, 0)
            encode_metadata(metadata, 0)
            text = f"{head}\n{title}\n\n{render(turns)}"
            yield info.session_id, text.encode("utf-8", "replace").decode(), metadata
        except InvalidText as error:
            warnings.warn(f"left out: {info.session_id!a}: {error}", stacklevel=2)
