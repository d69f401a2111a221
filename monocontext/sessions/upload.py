"""Upload a session of this machine to the archive: its new records, without secrets, each once.

Records and texts are stored first. Then a compare-and-swap of `session.json`, which names them, commits the upload. The
loser of a race deletes its objects, reads the current state, and adds the missing records.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from monocontext.errors import AlreadyExists, NotFound, StoreFailure
from monocontext.format.codec import raw_frames
from monocontext.sessions import names
from monocontext.sessions.project_name import is_absolute, project_of, slug
from monocontext.sessions.read_records import read_records
from monocontext.sessions.reader import SessionFile, TurnMaker
from monocontext.sessions.readers import reader_of
from monocontext.sessions.records import Record, RecordLine, dumps
from monocontext.sessions.redaction import Finding, Redactor
from monocontext.sessions.session_info import MOST_BYTES, SessionInfo, SessionPart, TurnPiece
from monocontext.sessions.turn import Turn, render, tools_of
from monocontext.stores.protocol import Store, get_bounded, put_own

PART_BYTES = 8 << 20
"""Size of the largest object with records, unless one record is larger."""
_HEAD_LINES = 200
"""A session names its directory within so many lines, or not at all."""
_TWIN_LINES = 8
"""An agent such as Codex may write a message twice, within this many lines; an upload may end between the two."""
_ATTEMPTS = 30
"""Attempts to commit while other machines upload the same session."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The result of an upload, or with `dry_run` the result that it would have."""

    session_id: str
    project: str
    records: int
    """The number of new records."""
    turns: int
    """The number of new turns."""
    bytes: int
    """Bytes of the new records, as stored."""
    findings: tuple[Finding, ...] = ()
    """Secrets that were taken out of new records."""
    problems: tuple[str, ...] = ()
    """Lines that were kept as unknown, or left for later, one sentence each."""
    is_dry: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """The number of secrets of each kind."""
        return dict(sorted(Counter(finding.kind for finding in self.findings).items()))


@dataclass(slots=True)
class _NewRecords:
    """What the archive lacks of a session file."""

    maker: TurnMaker
    records: list[bytes] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unreadable: int = 0
    """New lines that could not be parsed."""
    images: int = 0
    """New images that were left out."""
    lines: int = 0
    """Complete lines of the file, the archived ones included."""
    digest: str = ""
    """SHA-256 over the digests of these lines."""
    tail: str = ""
    """Digest of an incomplete last line that was stored; empty if there is none."""


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
    """Upload the new records of a session. Uploading it again does nothing (1 GET, 1 HEAD).

    `project`: by default that of the directory the agent worked in. `user`: `name@machine`, kept with the session.
    `patterns`: regular expressions of more secrets. `is_open`: the agent is still writing; an incomplete last line is
    left for the next upload, and the copy of the text in one object (`transcript.txt`) is not renewed.

    Cost: 1 GET; 1 PUT for each 8 MiB of records, 1 for the text, 1 to commit; the copy; the cost of `SearchIndex.add`.
    Raises `OSError` and `InvalidText` for the file, `InvalidUrl` and `StoreFailure` for the store.
    """
    for _ in range(_ATTEMPTS):
        name = project or project_of_session(file)
        root = f"{names.key_part(name, 'project')}/{names.session_path(file.session_id)}"
        before, etag = _load_info(store, root, name, file)
        redactor = Redactor(patterns, enabled=redact)
        new = _read_new(store, root, file, before, redactor, is_open)
        report = Uploaded(
            file.session_id, name, len(new.records), len(new.turns), sum(map(len, new.records)),
            tuple(new.findings), tuple(new.problems), dry_run,
        )  # fmt: skip
        if dry_run:
            return report
        # With nothing new `session.json` stays as it is. The file may be an older copy: with its count of lines, the
        # next upload of the whole file would add the later lines again.
        if not new.records:
            if not is_open:
                _copy_text(store, root, before)
            return report
        stored: list[str] = []
        after = _store_new(store, root, before, new, redactor, user, stored)
        # After an error here the commit may have succeeded, so the objects that it names stay.
        if _commit(store, f"{names.TRANSCRIPTS}/{root}/{names.SESSION_JSON}", after, etag):
            _add_to_search(store, name, file.session_id, after.pieces[len(before.pieces) :])
            if not is_open:
                _copy_text(store, root, after)
            return report
        for key in stored:
            store.delete(key)
    raise StoreFailure(f"{store.url}: {file.session_id}: others kept writing this session, {_ATTEMPTS} times in a row")


def project_of_session(file: SessionFile) -> str:
    """The project of the repository, or of the first directory, that the records name; else of the session's folder.

    The folder is the last choice: agents shorten its name.
    """
    maker = reader_of(file).maker(file.session_id)
    for line in reader_of(file).lines(file.path):
        maker.feed(line.record)
        if maker.began_in or line.number > _HEAD_LINES:
            break
    place = maker.began_in or maker.cwd
    if place or maker.remote:
        return project_of(place, maker.remote)
    return project_of(file.folder) if is_absolute(file.folder) else slug(file.folder or file.path.parent.name)


def _load_info(store: Store, root: str, project: str, file: SessionFile) -> tuple[SessionInfo, str | None]:
    """The archived description and its ETag; an empty description without an ETag for a new session."""
    key = f"{names.TRANSCRIPTS}/{root}/{names.SESSION_JSON}"
    try:
        blob = get_bounded(store, key, MOST_BYTES)
    except NotFound:
        return SessionInfo(file.session_id, project, file.agent), None
    return SessionInfo.from_bytes(blob.data, f"{store.url}/{key}"), blob.etag


# -- new records -------------------------------------------------------------------------------------------------------


class _Rewritten(Exception):
    """The file does not begin with the lines that the archive has."""


def _read_new(
    store: Store, root: str, file: SessionFile, before: SessionInfo, redactor: Redactor, is_open: bool
) -> _NewRecords:
    new, uuids = _NewRecords(_make_maker(file)), set[str]()
    try:
        _take_lines(file, new, redactor, is_open, before, lambda line: _add_uuid(line.record, uuids))
    except _Rewritten:
        return _merge(store, root, file, before, redactor, is_open)
    return new


def _make_maker(file: SessionFile) -> TurnMaker:
    maker = reader_of(file).maker(file.session_id)
    maker.cwd = file.folder if is_absolute(file.folder) else ""
    return maker


def _take_lines(
    file: SessionFile,
    new: _NewRecords,
    redactor: Redactor,
    is_open: bool,
    before: SessionInfo,
    is_wanted: Callable[[RecordLine], bool],
) -> None:
    """Add to `new` the wanted lines of the file that come after the archived lines.

    The file is read only once, since it may be written to, cut or replaced meanwhile. Raises `_Rewritten`, with nothing
    added, if its first lines are not those of the archive.
    """
    hashed, plain = hashlib.sha256(), redactor.sibling()
    if not before.lines:
        _continue_from(new.maker, before)
    for line in reader_of(file).lines(file.path):
        if line.is_tail:
            if new.lines < before.lines:
                raise _Rewritten
            _take_tail(line, new, redactor, is_open, before, is_wanted)
            break
        hashed.update(line.digest)
        new.lines += 1
        # An incomplete line that is stored already is skipped.
        if is_wanted(line) and not (line.problem and line.digest.hex() == before.tail):
            if new.lines > before.lines:
                _add_line(line, new, redactor)
            else:
                # Redacted as in the archive where the first new record may repeat it.
                may_repeat = before.lines - new.lines < _TWIN_LINES
                new.maker.feed(plain.record(line.record) if may_repeat else line.record)
        if new.lines == before.lines:
            if hashed.hexdigest() != before.digest:
                raise _Rewritten
            _continue_from(new.maker, before)
    if new.lines < before.lines:
        raise _Rewritten
    new.digest = hashed.hexdigest()


def _continue_from(maker: TurnMaker, before: SessionInfo) -> None:
    """Give a maker the number of turns and the title of the archive, which is redacted; that of the file is not."""
    maker.n = before.turns
    maker.title, maker.first_prompt, maker.cwd, maker.branch = (
        before.title, before.first_prompt, before.cwd or maker.cwd, before.branch,
    )  # fmt: skip


def _add_line(line: RecordLine, new: _NewRecords, redactor: Redactor) -> None:
    found, images = len(redactor.findings), redactor.images
    record = redactor.record(line.record, line.number)
    new.findings += redactor.findings[found:]
    new.images += redactor.images - images
    if line.problem:
        new.unreadable += 1
        new.problems.append(f"line {line.number}: {line.problem}; kept as unknown")
    new.records.append(dumps(record))
    new.turns += new.maker.feed(record)


def _take_tail(
    line: RecordLine,
    new: _NewRecords,
    redactor: Redactor,
    is_open: bool,
    before: SessionInfo,
    is_wanted: Callable[[RecordLine], bool],
) -> None:
    """Add an incomplete last line, once. It does not count as a line: it comes again when it is complete."""
    new.tail = line.digest.hex()
    if is_open:
        new.problems.append(f"line {line.number}: incomplete; left for the next upload")
        new.tail = before.tail
    elif new.tail != before.tail and is_wanted(line):
        _add_line(line, new, redactor)


def _merge(
    store: Store, root: str, file: SessionFile, before: SessionInfo, redactor: Redactor, is_open: bool
) -> _NewRecords:
    """The records that the archive lacks, for a file that was rewritten or continued on another machine."""
    new = _NewRecords(_make_maker(file))
    records = read_records(store, [f"{names.SESSIONS}/{root}/{part.name}" for part in before.parts])
    uuids = {record["uuid"] for record in records if isinstance(record.get("uuid"), str)}
    others = Counter(_record_digest(record) for record in records if not isinstance(record.get("uuid"), str))
    for record in records:
        new.maker.feed(record)
    plain = redactor.sibling()

    def is_new(line: RecordLine) -> bool:
        if isinstance(line.record.get("uuid"), str):
            return _add_uuid(line.record, uuids)
        same = _record_digest(plain.record(line.record))
        others[same] -= 1
        return others[same] < 0

    _take_lines(file, new, redactor, is_open, replace(before, lines=0), is_new)
    return new


def _add_uuid(record: Record, uuids: set[str]) -> bool:
    """Add the `uuid` of a record; returns whether it is new. A record without one is always new."""
    uuid = record.get("uuid")
    is_new = not isinstance(uuid, str) or uuid not in uuids
    if isinstance(uuid, str):
        uuids.add(uuid)
    return is_new


def _record_digest(record: Record) -> bytes:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).digest()


# -- storing -----------------------------------------------------------------------------------------------------------


def _store_new(
    store: Store, root: str, before: SessionInfo, new: _NewRecords, redactor: Redactor, user: str, stored: list[str]
) -> SessionInfo:
    """Store records and text; returns the new description. Keys are added to `stored` before they are written."""
    parts, at = list(before.parts), max([0, *(names.part_ms(part.name) for part in before.parts)])
    for lines in _make_batches(new.records):
        at = max(at + 1, time.time_ns() // 1_000_000)
        name = f"part-{at:013d}-{secrets.token_hex(3)}.jsonl"
        stored.append(f"{names.SESSIONS}/{root}/{name}")
        put_own(store, stored[-1], b"\n".join([*lines, b""]))
        parts.append(SessionPart(name, len(lines)))
    pieces = list(before.pieces)
    if new.turns:
        data = render(new.turns).encode("utf-8", "replace")
        sha = hashlib.sha256(data).hexdigest()
        # Each attempt has its own names: the loser of a commit removes only its own objects.
        name = f"turns-{new.turns[0].n:06d}-{sha[:8]}-{secrets.token_hex(3)}.txt"
        stored.append(f"{names.TRANSCRIPTS}/{root}/{name}")
        store.put(stored[-1], data)
        times = [turn.ts for turn in new.turns if turn.ts]
        pieces.append(
            TurnPiece(
                name, sha, len(data), new.turns[0].n, new.turns[-1].n,
                min(times, default=""), max(times, default=""), raw_frames(data),
            )
        )  # fmt: skip
    maker = new.maker
    return replace(
        before,
        title=maker.title or before.title,
        first_prompt=maker.first_prompt or before.first_prompt,
        cwd=maker.cwd or before.cwd,
        branch=maker.branch or before.branch,
        tools=tuple(sorted({*before.tools, *tools_of(new.turns)})),
        started=min(filter(None, (before.started, maker.started)), default=""),
        ended=max(before.ended, maker.ended),
        users=tuple(dict.fromkeys([*before.users, *([user] if user else [])])),
        records=before.records + len(new.records),
        turns=before.turns + len(new.turns),
        lines=new.lines,
        digest=new.digest,
        tail=new.tail,
        redacted=dict(Counter(before.redacted) + Counter(finding.kind for finding in new.findings)),
        is_redacted=before.is_redacted and redactor.enabled,
        images=before.images + new.images,
        unknown=dict(maker.unknown),
        unreadable=before.unreadable + new.unreadable,
        parts=tuple(parts),
        pieces=tuple(pieces),
        write_id=uuid.uuid4().hex,
    )


def _make_batches(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The records of each object, at most `PART_BYTES` together."""
    batch: list[bytes] = []
    size = 0
    for record in records:
        if batch and size + len(record) > PART_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record) + 1
    if batch:
        yield batch


def _commit(store: Store, key: str, info: SessionInfo, etag: str | None) -> bool:
    """Write the description; returns whether the new records are part of the session now."""
    try:
        put_own(store, key, info.to_bytes(), if_match=etag)
        return True
    except (AlreadyExists, NotFound):
        # The commit may have succeeded although its reply was lost, and another upload may have followed: then the
        # current description names our last part.
        with contextlib.suppress(NotFound):
            current = SessionInfo.from_bytes(get_bounded(store, key, MOST_BYTES).data, f"{store.url}/{key}")
            return info.parts[-1].name in {part.name for part in current.parts}
        return False


def _add_to_search(store: Store, project: str, session_id: str, pieces: Sequence[TurnPiece]) -> None:
    """Add new texts to the search filters. After a crash before this, searches read the texts whole until
    `sessions index` adds them."""
    from monocontext.sessions.search_index import SearchIndex

    if pieces:
        path = names.session_path(session_id)
        SearchIndex(store, names.key_part(project, "project")).add((path, each.name, each.bytes) for each in pieces)


def _copy_text(store: Store, root: str, info: SessionInfo) -> None:
    """Store the whole text in one object, for people and programs that read files. Monocontext does not read it."""
    folder, size = f"{names.TRANSCRIPTS}/{root}", sum(piece.bytes for piece in info.pieces)
    if not size:
        return
    with contextlib.suppress(NotFound):
        if store.head(f"{folder}/{names.TRANSCRIPT}").size_bytes == size:
            return  # text only ever grows
    store.put(f"{folder}/{names.TRANSCRIPT}", b"".join(store.get(f"{folder}/{p.name}").data for p in info.pieces))
