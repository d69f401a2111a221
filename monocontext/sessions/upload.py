"""Upload a session of this machine: all its records without secrets, as one object, by a conditional PUT.

Of two copies, the archive keeps the longer one; if they went on in different ways, it keeps the shorter as `<id>.2`.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from monocontext import errors
from monocontext.errors import AlreadyExists, ContextChanged, MonocontextError, NotFound
from monocontext.sessions import session_info
from monocontext.sessions.hook import write_file
from monocontext.sessions.project_name import find_repository, project_of, slug
from monocontext.sessions.reader import SessionFile
from monocontext.sessions.readers import SESSION_READERS
from monocontext.sessions.records import Record, dumps, ids_of
from monocontext.sessions.redaction import Finding, Redactor
from monocontext.sessions.session_info import SessionInfo, StoredInfo, digest_of, pack, session_key
from monocontext.stores.protocol import Store, put_own

Note = Callable[[str], object]
_HEAD_LINES = 200  # a session names its directory within its first 200 lines, or not at all
_ATTEMPTS = 30  # attempts to write while other machines upload the same session
_MOST_COPIES = 20  # the most copies of one session that went on in different ways


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The result of an upload, or with `dry_run` the result that it would have."""

    session_id: str
    project: str
    records: int = 0  # the number of new records
    turns: int = 0  # the number of new turns
    bytes: int = 0  # of the object that was written; 0 if nothing was new
    findings: tuple[Finding, ...] = ()  # secrets that were taken out
    problems: tuple[str, ...] = ()  # lines that were kept as unknown, or left for later, one sentence each
    is_partial: bool = False  # an incomplete last line was left for later

    @property
    def counts(self) -> dict[str, int]:
        """The number of secrets of each kind."""
        return dict(sorted(Counter(finding.kind for finding in self.findings).items()))


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of a session, on this machine or in the archive."""

    ids: list[str]  # of its records, in order; see `ids_of`
    count: int  # of records, with those that have no id
    load: Callable[[], tuple[SessionInfo, list[bytes]]]  # returns its description and its records as lines of JSON


def upload_session(
    store: Store,
    file: SessionFile,
    *,
    project: str | None = None,
    user: str = "",
    redact: bool = True,
    patterns: Sequence[str] = (),
    dry_run: bool = False,
    is_open: bool = False,
) -> Uploaded:
    """Upload a session, unless the archive has all of it (then 1 HEAD, 1 GET).

    `project`: by default that of the agent's directory. `user`: `name@machine`, kept with the session. `patterns`:
    regular expressions for more secrets. `is_open`: the agent may still write; an incomplete last line is left for the
    next upload. Cost: 1 HEAD, 1 GET of 4 KiB, 1 PUT; if it differs from what another machine has uploaded, also 1 LIST,
    and 1 GET of each copy. Raises `OSError` and `InvalidText` for the file, `InvalidUrl` and `StoreFailure` for the
    store, `MonocontextError` if too many copies of the session differ.
    """
    name = project or project_of_session(file)
    redactor = Redactor(patterns, enabled=redact)
    records, problems, is_partial = _read(file, is_open)
    load = cache(partial(_redacted, file, name, records, redactor, user))  # once, and only if it is needed
    report = Uploaded(file.session_id, name)
    if records and dry_run:
        info, lines = load()
        report = _report(info, _read_stored(store, session_key(name, file.session_id)), sum(map(len, lines)))
    elif records:
        copy = _Copy(ids_of(record for _, record in records), len(records), load)
        if file.agent == "chat":  # its records have neither uuid nor time: what they say tells them apart
            copy = _copy_of(*load())
        report = _store(store, name, file.session_id, copy)
    report = replace(report, session_id=file.session_id, problems=tuple(problems), is_partial=is_partial)
    return replace(report, findings=tuple(redactor.findings)) if report.records else report


def upload_changed(
    files: Iterable[SessionFile], states_path: Path, upload: Callable[[SessionFile], Uploaded | None], note: Note
) -> list[Uploaded]:
    """Call `upload` with each file that changed since its state was saved at `states_path`, and save the new states.

    Returns the reports of `upload`, which may return None for a file. States of files that are not in `files` are
    dropped. `note` gets a line for each file that fails. Raises `StoreFailure` if the store is down.
    """
    files, before, reports = list(files), read_states(states_path), list[Uploaded]()
    states = {path: before[path] for path in (str(file.path) for file in files) if path in before}
    try:
        for file in files:
            path, state = str(file.path), state_of(file.path)
            if state is None or states.get(path) == state:
                continue
            try:
                report = upload(file)
            except (errors.StoreFailure, errors.Unsupported):
                raise
            except (MonocontextError, OSError, ValueError, RecursionError) as error:
                note(f"left out: {error}" if path in str(error) else f"left out: {path}: {error}")
                if not isinstance(error, errors.InvalidText | errors.InvalidUrl):
                    continue  # tried again at the next call; a file that is no session only when it changes
                report = None
            if report is not None:
                reports.append(report)
            if report is None or not report.is_partial:
                states[path] = state  # as it was before it was read: what was added since is another state
    finally:
        if states != before:
            with suppress(OSError):  # without it, the next call only does more work
                write_file(states_path, json.dumps(states).encode())
    return reports


def read_states(states_path: Path) -> dict[str, list[int]]:
    """The states of uploaded files, by path; empty if the file of states is missing or damaged."""
    with suppress(OSError, ValueError, TypeError):
        return dict(json.loads(states_path.read_bytes()))
    return {}


def state_of(path: Path) -> list[int] | None:
    """The size of a file in bytes, and the time of its last change in nanoseconds; None if there is no such file."""
    with suppress(OSError):
        stat = path.stat()
        return [stat.st_size, stat.st_mtime_ns]
    return None


def user_at_machine() -> str:
    """The name of the uploader: `MONOCONTEXT_USER` if it is set, else `account@host`."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such account, as in containers; no module `pwd`
        name = str(os.getuid()) if hasattr(os, "getuid") else "user"
    return os.environ.get("MONOCONTEXT_USER") or f"{name}@{socket.gethostname()}"


def project_of_session(file: SessionFile) -> str:
    """The project of the repository or first directory that the records name; else the name of the file's folder."""
    maker = SESSION_READERS[file.agent].maker(file.session_id)
    for line in SESSION_READERS[file.agent].lines(file.path):
        maker.feed(line.record)
        if maker.began_in or line.number > _HEAD_LINES:
            break
    location = maker.began_in or maker.cwd
    return project_of(location, maker.remote) if location or maker.remote else slug(file.path.parent.name)


def _read(file: SessionFile, is_open: bool) -> tuple[list[tuple[int, Record]], list[str], bool]:
    """The numbered records of a file, each uuid once; the problems; whether an incomplete last line was left out."""
    results, problems, uuids = list[tuple[int, Record]](), list[str](), set[str]()
    for line in SESSION_READERS[file.agent].lines(file.path):
        if line.is_tail and is_open:
            problems.append(f"line {line.number}: incomplete; left for the next upload")
            return results, problems, True
        if isinstance(uuid := line.record.get("uuid"), str):
            if uuid in uuids:
                continue
            uuids.add(uuid)
        if line.problem:
            problems.append(f"line {line.number}: {line.problem}; kept as unknown")
        results.append((line.number, line.record))
    return results, problems, False


def _redacted(
    file: SessionFile, project: str, numbered: list[tuple[int, Record]], redactor: Redactor, user: str
) -> tuple[SessionInfo, list[bytes]]:
    """The description of a session and its records as lines of JSON, without secrets."""
    records = [redactor.record(record, line) for line, record in numbered]
    maker = SESSION_READERS[file.agent].maker(file.session_id)
    turns = [turn for record in records for turn in maker.feed(record)]
    lines, ids = [dumps(record) for record in records], ids_of(records)
    tools = {turn.tool for turn in turns if turn.kind == "tool_use"}
    began_in = maker.began_in or maker.cwd
    return SessionInfo(
        file.session_id, project, file.agent, maker.title, maker.first_prompt, maker.cwd, began_in,
        find_repository(began_in)[0], file.path.name, maker.branch, maker.started, maker.ended,
        users=(user,) if user else (), records=len(records), turns=len(turns), identities=len(ids),
        identity=_digest(ids), redacted=dict(Counter(finding.kind for finding in redactor.findings)),
        is_redacted=redactor.enabled, unknown=dict(maker.unknown),
        tools=tuple(sorted(tools - {""})), content_sha256=digest_of(lines),
    ), lines  # fmt: skip


def _store(store: Store, project: str, session_id: str, new: _Copy) -> Uploaded:
    """Store a copy under the session's id, or under a further id if it differs, unless the archive has all of it."""
    key = session_key(project, session_id)
    for _ in range(_ATTEMPTS):
        with suppress(AlreadyExists, NotFound, ContextChanged):  # another machine was faster: look again
            stored = _read_stored(store, key)
            if stored is None:
                return _put(store, project, session_id, new, None)
            info = stored.info
            if info.identity != _digest(new.ids[: info.identities]):
                return _Copies(store, project, session_id).add(new)
            is_longer = len(new.ids) > info.identities or new.count > info.records
            return _put(store, project, session_id, new, stored) if is_longer else Uploaded(session_id, project)
    raise MonocontextError(f"{store.url}: others wrote {session_id} during all {_ATTEMPTS} attempts: try again")


class _Copies:
    """The copies of a session in the archive that went on in different ways, by id (1 LIST, 1 GET per copy).

    A copy's records are removed only after a copy with these and more is stored, or, under the session's own id, an
    equal one under another id. So no record is lost, whatever machines do at once or leave undone.
    """

    def __init__(self, store: Store, project: str, session_id: str) -> None:
        self._store, self._project, self._session_id = store, project, session_id
        self._further = [f"{session_id}.{number}" for number in range(2, _MOST_COPIES + 1)]
        names = {session_key(project, name): name for name in (session_id, *self._further)}
        self._copies, self._stored = dict[str, _Copy](), dict[str, StoredInfo]()
        for item in store.list(session_key(project, session_id).removesuffix(session_info.ENDING) + "."):
            if name := names.get(item.key):
                info, lines, etag = session_info.read_session(store, item.key)
                self._copies[name], self._stored[name] = _copy_of(info, lines), StoredInfo(info, etag)

    def add(self, new: _Copy) -> Uploaded:
        """Store a copy. Raises `AlreadyExists`, `NotFound`, `ContextChanged` if another machine was faster."""
        ids, first = set(new.ids), self._copies.get(self._session_id)
        for name, copy in self._copies.items():
            if ids <= set(copy.ids):
                is_longer = ids == set(copy.ids) and new.count > copy.count
                return self._put(name, new) if is_longer else Uploaded(name, self._project)
        if first is None:
            raise NotFound(session_key(self._project, self._session_id))  # removed meanwhile
        first_ids, others = set(first.ids), [set(copy.ids) for copy in self._copies.values() if copy is not first]
        replaces_first = first_ids < ids or any(first_ids <= other for other in others)
        if not replaces_first and new.count > first.count:  # the longest copy has the session's own id
            self._put(self._further_id(first), first)
            replaces_first = True
        new_id = self._session_id if replaces_first else self._further_id(new)
        report = self._put(new_id, new)
        for name, copy in self._copies.items():  # a copy with a part of another's records is no longer needed
            is_part = any(set(copy.ids) < other for other in (ids, first_ids, *others))
            if is_part and name not in (self._session_id, new_id):
                with suppress(NotFound, AlreadyExists):  # it has just changed: it stays
                    self._store.delete(session_key(self._project, name), if_match=self._stored[name].etag)
        return report

    def _further_id(self, copy: _Copy) -> str:
        """The first further id that is free, or whose copy holds only some of the records of `copy`."""
        for name in self._further:
            if name not in self._copies or set(self._copies[name].ids) < set(copy.ids):
                return name
        raise MonocontextError(f"{self._store.url}: {self._session_id} has {_MOST_COPIES} different copies: remove one")

    def _put(self, name: str, copy: _Copy) -> Uploaded:
        return _put(self._store, self._project, name, copy, self._stored.get(name))


def _digest(ids: list[str]) -> str:
    return digest_of([name.encode("utf-8", "backslashreplace") for name in ids])


def _copy_of(info: SessionInfo, lines: list[bytes]) -> _Copy:
    return _Copy(ids_of(map(json.loads, lines)), len(lines), lambda: (info, lines))


def _report(info: SessionInfo, stored: StoredInfo | None, size_bytes: int) -> Uploaded:
    """The report of an upload that writes `info` and its records over `stored`, or as a new session for None."""
    old_records, old_turns = (stored.info.records, stored.info.turns) if stored else (0, 0)
    records, turns = max(0, info.records - old_records), max(0, info.turns - old_turns)
    return Uploaded(info.session_id, info.project, records, turns, size_bytes)


def _put(store: Store, project: str, name: str, copy: _Copy, stored: StoredInfo | None) -> Uploaded:
    """Write a copy under an id, over `stored` or as new. Raises `AlreadyExists`, `NotFound` if beaten to it."""
    info, lines = copy.load()
    old = stored.info if stored else SessionInfo(name, project)
    kinds = {*info.redacted, *old.redacted}  # a session that was pulled has marks, which are not counted again
    redacted = {kind: max(info.redacted.get(kind, 0), old.redacted.get(kind, 0)) for kind in sorted(kinds)}
    written = replace(
        info, session_id=name, users=tuple(dict.fromkeys([*old.users, *info.users])), redacted=redacted,
        is_redacted=info.is_redacted and old.is_redacted, write_id=uuid.uuid4().hex)  # fmt: skip
    data = pack(written, lines)
    put_own(store, session_key(project, name), data, if_match=stored.etag if stored else None)
    return _report(info, stored, len(data))


def _read_stored(store: Store, key: str) -> StoredInfo | None:
    """The description of the session under a key and its ETag (1 HEAD, 1 GET); None if there is no session."""
    with suppress(NotFound):
        head = store.head(key)
        return session_info.read_info(store, key, head.size_bytes, head.etag)
    return None
