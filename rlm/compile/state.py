"""Load and commit `state.json`: the sessions that a project's compiled context covers.

All published files are made from the state alone, so a run reads the state, and only those sessions that it lacks.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from monocontext.errors import AlreadyExists, DamagedData, NotFound, UnsupportedFormat
from monocontext.stores.protocol import Store, get_bounded, put_own
from rlm.compile.digest import SECTIONS, Statement

FORMAT = 1
MOST_BYTES = 64 << 20
"""The largest state that is read; 100,000 sessions take 40 MB."""
MOST_STATEMENTS = 2_000
"""The most decisions, and likewise patterns, that the state keeps: the newest. Digests keep all."""


@dataclass(frozen=True, slots=True)
class DigestedSession:
    """A session that the compiled context covers."""

    session_id: str
    version: str
    """The version of the session that was read."""
    digest: str
    """The name of the digest: `digests/<digest>.md`."""
    turns: int
    maker: str
    """The model that made the digest, or `extractive` for rules."""
    title: str = ""
    """Its title or first prompt, on one line."""
    started: str = ""
    """The earliest time of a turn, as written; empty if unknown."""
    ended: str = ""
    """The latest time of a turn, as written; empty if unknown."""
    by: str = ""
    """Who uploaded it, each as `user@machine`, separated by `, `."""


@dataclass(frozen=True, slots=True)
class State:
    """One generation of a project's compiled context."""

    generation: int = 0
    sessions: dict[str, DigestedSession] = field(default_factory=dict)
    """By session ID."""
    statements: tuple[Statement, ...] = ()
    """Decisions and patterns of all sessions, the oldest session first."""
    summary: tuple[Statement, ...] = ()
    """The statements of the brief, over all sessions."""
    maker: str = ""
    """The model that made the summary, or `extractive` for rules."""
    brief_etag: str = ""
    """ETag of `brief.md` as this generation wrote it."""
    write_id: str = ""
    """Random for each write, so that a writer recognises its own state (`put_own`)."""
    note: str = ""
    """The brief's note about a limit that was reached."""
    unmerged: tuple[str, ...] = ()
    """IDs of sessions whose statements were merged by rules, since a limit was reached before a model could."""

    @property
    def turns(self) -> dict[str, int]:
        """The number of turns of each session."""
        return {session.session_id: session.turns for session in self.sessions.values()}

    def with_session(self, session: DigestedSession, found: list[Statement]) -> State:
        """The state with this session, and its decisions and patterns in place of its earlier ones."""
        others = [each for each in self.statements if not _is_from(each, session.session_id)]
        both = [*others, *(each for each in found if each.section in SECTIONS[1:3])]
        sections = [[each for each in both if each.section == name][-MOST_STATEMENTS:] for name in SECTIONS[1:3]]
        return replace(
            self, sessions={**self.sessions, session.session_id: session}, statements=(*sections[0], *sections[1])
        )

    def without(self, gone: set[str]) -> State:
        """The state without these sessions.

        A statement goes if one of its turns is theirs; a line of the summary only if all are.
        """
        return replace(
            self,
            sessions={name: session for name, session in self.sessions.items() if name not in gone},
            unmerged=tuple(name for name in self.unmerged if name not in gone),
            statements=tuple(each for each in self.statements if not any(_is_from(each, name) for name in gone)),
            summary=tuple(each for each in self.summary if not all(t.rpartition(":")[0] in gone for t in each.turns)),
        )

    def to_bytes(self) -> bytes:
        """The state as JSON."""
        rows = {
            "format": FORMAT,
            "generation": self.generation,
            "maker": self.maker,
            "brief_etag": self.brief_etag,
            "write_id": self.write_id,
            "note": self.note,
            "unmerged": self.unmerged,
            "sessions": [
                {name: getattr(each, name) for name in DigestedSession.__slots__} for each in self.sessions.values()
            ],
            "summary": [each.to_list() for each in self.summary],
            "statements": [each.to_list() for each in self.statements],
        }
        return json.dumps(rows, ensure_ascii=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> State:
        """The state in an object; `where` names it in errors.

        Raises `DamagedData`, and `UnsupportedFormat` for the data of a newer version.
        """
        try:
            fields: dict[str, Any] = json.loads(data)
            if fields["format"] > FORMAT:
                raise UnsupportedFormat(
                    f"{where} has format {fields['format']}, and this version reads up to {FORMAT}: upgrade "
                    "monocontext-rlm"
                )
            return cls(
                generation=int(fields["generation"]),
                sessions={row["session_id"]: DigestedSession(**row) for row in fields["sessions"]},
                statements=tuple(map(Statement.of_list, fields["statements"])),
                summary=tuple(map(Statement.of_list, fields["summary"])),
                maker=str(fields["maker"]),
                brief_etag=str(fields["brief_etag"]),
                write_id=str(fields["write_id"]),
                note=str(fields.get("note", "")),
                unmerged=tuple(map(str, fields.get("unmerged", ()))),
            )
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
            if isinstance(error, DamagedData):
                raise
            raise DamagedData(f"{where} is not the state of a compiled context: {error!r}") from None


def load(store: Store, key: str) -> tuple[State, str | None]:
    """The state and its ETag; an empty state and None if there is none (1 GET). Raises as `from_bytes`."""
    try:
        blob = get_bounded(store, key, MOST_BYTES)
    except NotFound:
        return State(), None
    return State.from_bytes(blob.data, f"{store.url}/{key}"), blob.etag


def commit(store: Store, key: str, state: State, etag: str | None) -> bool:
    """Write the state if the stored one is still version `etag` (None: if there is none). Returns False if it is not.

    1 PUT; more if its reply is lost. Raises `StoreFailure`.
    """
    try:
        put_own(store, key, replace(state, write_id=uuid.uuid4().hex).to_bytes(), if_match=etag)
        return True
    except (AlreadyExists, NotFound):
        return False


def _is_from(statement: Statement, session_id: str) -> bool:
    """Whether a turn of the statement, `session:number`, is of this session."""
    return any(turn.rpartition(":")[0] == session_id for turn in statement.turns)
