"""`Sessions`, an archive in a bucket, and `Project`, the sessions of one project as a reader sees them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

from cachetools import LRUCache

from monocontext.errors import InvalidUrl, NotFound
from monocontext.sessions import names
from monocontext.sessions.project_text import text_of
from monocontext.sessions.raw import read_records, turns_of
from monocontext.sessions.session_info import SessionInfo
from monocontext.sessions.time_span import ALWAYS, Span, inside, span_of, touches, within
from monocontext.sessions.turn import Turn, as_blocks, parse, render
from monocontext.spread import in_order
from monocontext.store import ObjectInfo, Store
from monocontext.stores import open_store
from monocontext.text import Monocontext

if TYPE_CHECKING:
    from monocontext.sessions.upload import Uploaded

THREADS = 32
"""Requests at once."""
_KEPT_TURNS = 200_000
"""Turns that a project remembers, so that reading them one by one reads a session once."""


class Sessions:
    """An archive of sessions: any number of projects, users and machines under one prefix."""

    def __init__(self, store: Store, *, owns_store: bool = False) -> None:
        self.store = store
        self._owns_store = owns_store

    @classmethod
    def open(cls, url: str | os.PathLike[str] | Store, **store_options: Any) -> Self:
        """Open the archive at `s3://bucket/prefix`, a directory or `memory://name`; it need not exist (no request)."""
        if not isinstance(url, str | os.PathLike):
            return cls(url)
        return cls(open_store(url, **store_options), owns_store=True)

    @property
    def url(self) -> str:
        return self.store.url

    def __repr__(self) -> str:
        return f"<Sessions {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back connections. Idempotent."""
        if self._owns_store:
            self.store.close()

    def projects(self) -> list[str]:
        """Projects that have sessions, sorted (1 LIST a thousand objects)."""
        found = set()
        for folder in (names.TRANSCRIPTS, names.SESSIONS):
            for info in self.store.list(f"{folder}/"):
                found.add(names.name_of(info.key.split("/")[1]))
        return sorted(found)

    def project(self, name: str) -> Project:
        """The sessions of one project (no request). Raises `InvalidUrl` for a name that cannot be one."""
        return Project(self.store, name)

    def upload(self, session: str | os.PathLike[str], **options: Any) -> list[Uploaded]:
        """Upload a session of this machine and those of its subagents: a file, or an id or the beginning of one.

        `options` and costs are those of `upload_session`, for each.
        """
        from monocontext.sessions.readers import named
        from monocontext.sessions.upload import upload_session

        return [upload_session(self.store, file, **options) for file in named(os.fspath(session))]

    def find(self, session_id: str, project: str | None = None) -> tuple[Project, str]:
        """The one session whose id is or begins with `session_id`. Raises `NotFound`, also for more than one."""
        found = [
            (each, known)
            for each in ([project] if project else self.projects())
            for known in self.project(each).list_sessions()
            if known == session_id or ("/" not in known and known.startswith(session_id))
        ]
        exact = [pair for pair in found if pair[1] == session_id] or found
        if len(exact) != 1:
            what = f"{len(exact)} sessions begin with" if exact else "no session"
            raise NotFound(f"{self.url}: {what} {session_id!r}")
        return self.project(exact[0][0]), exact[0][1]


class Project:
    """The sessions of one project. Safe for use by many threads. Costs below are requests with nothing remembered."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self._part = names.key_part(name, "project")
        self._infos: LRUCache[tuple[str, str], SessionInfo] = LRUCache(20_000)
        self._turns: LRUCache[tuple[str, ...], tuple[Turn, ...]] = LRUCache(_KEPT_TURNS, getsizeof=lambda t: len(t) + 1)

    def __repr__(self) -> str:
        return f"<Project {self.name} of {self.store.url}>"

    # -- what there is -------------------------------------------------------------------------------------------------

    def versions(self) -> dict[str, str]:
        """Sessions by id, each with a word that changes when it grows (2 LISTs a thousand objects; no GET)."""
        return {session: version for session, (version, _) in self._listed().items()}

    def sessions(self, since: Any = None, until: Any = None) -> list[SessionInfo]:
        """What is known of each session, by the time it began (2 LISTs, and 1 GET a session, 32 at once).

        `since` and `until`: those with a turn in that time; see `context`. Of a session that was written by the Agent
        SDK its records are read.
        """
        span = span_of(since, until)
        return [info for info in self._known() if touches(info.started, info.ended, span)]

    def info(self, session_id: str) -> SessionInfo:
        """What is known of one session (1 GET). Raises `NotFound`."""
        try:
            return self._info(session_id, "")
        except NotFound:
            found = self._listed().get(session_id)
            if found is None:
                raise NotFound(f"No session {session_id!r} in project {self.name!r} at {self.store.url}") from None
            return self._of_records(session_id, *found)

    # -- the text ------------------------------------------------------------------------------------------------------

    def context(
        self, since: Any = None, until: Any = None, *, sessions: list[str] | None = None, **options: Any
    ) -> Monocontext:
        """All sessions as one text, by the time they began: a line that names the session, its turns, and so on.

        `since` and `until` are datetimes, seconds since 1970, or ISO 8601 (a day is the whole of it): turns of that
        time alone. `sessions`: only these. `options` are those of `Monocontext.open`. Cost: as `sessions`, and 1 GET
        for each piece of a session that lies partly in that time; text is read where it is looked at. Raises
        `NotFound` where the project has no session.
        """
        span = span_of(since, until)
        infos = [self.info(each) for each in sessions] if sessions is not None else list(self._known())
        if not infos:
            raise NotFound(f"no sessions of project {self.name!r} at {self.store.url}")
        items: list[Any] = []
        for info in infos:
            body = list(self._items(info, span))
            if body:
                items += [self._head(info), *body]
        return text_of(self.store, items, self.helpers(), **options)

    def _items(self, info: SessionInfo, span: Span) -> Iterator[Any]:
        if not info.pieces:
            yield render(within(self.turns(info.session_id), span))
            return
        for piece in info.pieces:
            key = f"{self._folder(info.session_id)}/{piece.name}"
            if span == ALWAYS or (piece.started and inside(piece.started, piece.ended, span)):
                yield key, piece
            elif touches(piece.started, piece.ended, span):
                turns = parse(self.store.get(key).data.decode(), info.session_id)
                if text := render(within(list(turns), span)):
                    yield text

    def _head(self, info: SessionInfo) -> str:
        title = " ".join((info.title or info.first_prompt).split())
        by = ", ".join(info.users) or "unknown"
        told = (
            f"agent {info.agent or '?'} | by {by} | {info.started or '?'} to {info.ended or '?'} | {info.turns} turns"
        )
        return f"=== SESSION: {info.session_id} ===\n{told}\n{title}\n\n"

    # -- DeepRecurse's helpers ----------------------------------------------------------------------------------------

    def helpers(self) -> dict[str, Callable[..., object]]:
        """The functions over sessions, by the names that model code knows them by."""
        return {
            "list_sessions": self.list_sessions,
            "list_turns": self.list_turns,
            "read_turn": self.read_turn,
            "read_session": self.read_session,
            "search_transcripts": self.search_transcripts,
        }

    def list_sessions(self) -> list[str]:
        """Ids of all sessions, sorted (2 LISTs)."""
        return sorted(self._listed())

    def list_turns(self, session_id: str) -> list[int]:
        """Numbers of a session's turns; none of a session that is not there (a GET for each of its pieces)."""
        return [turn.n for turn in self._turns_or_none(session_id)]

    def read_turn(self, session_id: str, n: int) -> dict[str, Any]:
        """One turn: `turn_number`, `role`, `content`, `timestamp`, `session_id`; else a dict with `error`."""
        turn = next((turn for turn in self._turns_or_none(session_id) if turn.n == n), None)
        return turn.to_dict() if turn else {"error": f"Turn {n} not found in session {session_id}"}

    def read_session(self, session_id: str) -> str:
        """A session as text: `[Turn n - ROLE]` and what was said."""
        return as_blocks(self._turns_or_none(session_id)) or f"No turns found for session {session_id}"

    def search_transcripts(self, keyword: str, limit: int = 200) -> list[dict[str, Any]]:
        """The turns that hold a text, in any case, at most `limit`; reads every session."""
        wanted = keyword.lower()
        found: list[dict[str, Any]] = []
        for session_id in self.list_sessions():
            for turn in self._turns_or_none(session_id):
                if wanted in turn.text.lower():
                    found.append(turn.to_dict())
                    if len(found) >= limit:
                        return found
        return found

    def turns(self, session_id: str) -> list[Turn]:
        """All turns of a session (a GET for what is known of it, and for each of its pieces). Raises `NotFound`."""
        info = self.info(session_id)
        remembered = (session_id, *(info.content_sha256 or (info.write_id,)))
        turns = self._turns.get(remembered)
        if turns is None:
            if info.pieces or info.parts:
                folder = self._folder(session_id)
                with ThreadPoolExecutor(THREADS, thread_name_prefix="monocontext-sessions") as threads:
                    keys = [f"{folder}/{piece.name}" for piece in info.pieces]
                    texts = list(in_order(threads, lambda key: self.store.get(key).data, keys, THREADS))
                turns = tuple(turn for data in texts for turn in parse(data.decode(), session_id))
            else:
                turns = tuple(turns_of(self._records(session_id), session_id)[0])
            if len(turns) < _KEPT_TURNS:
                self._turns[remembered] = turns
        return list(turns)

    def _turns_or_none(self, session_id: str) -> list[Turn]:
        try:
            return self.turns(session_id)
        except (NotFound, InvalidUrl):  # an id that cannot be one is not there either
            return []

    # -- objects -------------------------------------------------------------------------------------------------------

    def _folder(self, session_id: str) -> str:
        return f"{names.TRANSCRIPTS}/{self._part}/{names.session_path(session_id)}"

    def _listed(self) -> dict[str, tuple[str, tuple[ObjectInfo, ...]]]:
        """Sessions by id: their version, and the records of those that only the Agent SDK wrote."""
        found: dict[str, tuple[str, tuple[ObjectInfo, ...]]] = {}
        root = f"{names.TRANSCRIPTS}/{self._part}/"
        for info in self.store.list(root):
            path, _, name = info.key.removeprefix(root).rpartition("/")
            if name == names.SESSION_JSON:
                found[names.session_of(path)] = (info.etag, ())
        raw: dict[str, list[ObjectInfo]] = {}
        root = f"{names.SESSIONS}/{self._part}/"
        for info in self.store.list(root):
            path, _, name = info.key.removeprefix(root).rpartition("/")
            if names.is_part(name) and (session := names.session_of(path)) not in found:
                raw.setdefault(session, []).append(info)
        return found | {session: (f"{len(parts)}:{parts[-1].key}", tuple(parts)) for session, parts in raw.items()}

    def _known(self) -> list[SessionInfo]:
        listed = self._listed()

        def known(session_id: str) -> SessionInfo | None:
            version, parts = listed[session_id]
            try:
                return self._of_records(session_id, version, parts) if parts else self._info(session_id, version)
            except NotFound:  # removed since it was listed
                return None

        with ThreadPoolExecutor(THREADS, thread_name_prefix="monocontext-sessions") as threads:
            infos = [info for info in in_order(threads, known, listed, 2 * THREADS) if info]
        return sorted(infos, key=lambda info: (info.started, info.session_id))

    def _info(self, session_id: str, version: str) -> SessionInfo:
        known = self._infos.get((session_id, version)) if version else None
        if known is None:
            key = f"{self._folder(session_id)}/{names.SESSION_JSON}"
            blob = self.store.get(key)
            known = SessionInfo.from_bytes(blob.data, f"{self.store.url}/{key}")
            self._infos[session_id, blob.etag] = known
        return known

    def _of_records(self, session_id: str, version: str, parts: tuple[ObjectInfo, ...]) -> SessionInfo:
        """What records say that were written without us."""
        known = self._infos.get((session_id, version))
        if known is None:
            records = read_records(self.store, [part.key for part in parts])
            turns, maker = turns_of(records, session_id)
            known = self._infos[session_id, version] = SessionInfo(
                session_id, self.name, maker.agent, maker.title, maker.first_prompt, maker.cwd, maker.branch,
                maker.started, maker.ended, records=len(records), turns=len(turns), write_id=version,
                unknown=maker.unknown, is_redacted=False,
            )  # fmt: skip
        return known

    def _records(self, session_id: str) -> list[dict[str, Any]]:
        found = self._listed().get(session_id)
        return read_records(self.store, [part.key for part in found[1]]) if found else []


def open_project(
    url: str | os.PathLike[str] | Store,
    project: str | None = None,
    *,
    since: Any = None,
    until: Any = None,
    **options: Any,
) -> Monocontext:
    """All sessions of a project as one text; without `project`, of the only one there is. See `Project.context`.

    Raises `NotFound` where there is no such project, or more than one to choose from.
    """
    reading = {name: options.pop(name) for name in _READING if name in options}
    archive = Sessions.open(url, **options)
    if project is None:
        found = archive.projects()
        if len(found) != 1:
            raise NotFound(f"{archive.url}: {len(found)} projects, name one of them: {', '.join(found[:10]) or 'none'}")
        project = found[0]
    return archive.project(project).context(since, until, **reading)


_READING = (
    "cache_bytes",
    "materialize_limit",
    "threads",
    "hedge",
    "cache_dir",
    "cache_dir_bytes",
    "workers",
    "sessions",
)
