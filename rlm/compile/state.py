"""`state.json`: which sessions a project's compiled context is made of. Writing it is the commit.

Everything that is published follows from it alone: a run reads it, and of the sessions those that it does not name.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from monocontext.errors import AlreadyExists, DamagedData, NotFound, UnsupportedFormat
from monocontext.store import Store
from rlm.compile.digest import SECTIONS, Statement

FORMAT = 1
MOST_STATEMENTS = 2_000
"""Of decisions, and of patterns: the newest. All are in the digests."""


@dataclass(frozen=True, slots=True)
class Digested:
    """A session that the compiled context covers."""

    session_id: str
    version: str
    """Of the session when it was read."""
    digest: str
    """Names `digests/<digest>.md`."""
    turns: int
    maker: str
    """`extractive`, or the model."""
    title: str = ""
    started: str = ""
    ended: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """One generation of a project's compiled context."""

    generation: int = 0
    sessions: dict[str, Digested] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    """Decisions and patterns of all sessions, the oldest session first."""
    summary: tuple[Statement, ...] = ()
    """What the brief says, over all sessions."""
    maker: str = ""
    """Of the summary: `extractive`, or the model."""
    brief_etag: str = ""
    """Of `brief.md` as this generation wrote it."""
    write_id: str = ""

    @property
    def turns(self) -> dict[str, int]:
        """How many turns each session has."""
        return {session.session_id: session.turns for session in self.sessions.values()}

    def of(self, section: str) -> list[Statement]:
        return [each for each in self.statements if each.section == section]

    def with_session(self, session: Digested, found: list[Statement]) -> State:
        """With the statements of a session in the place of those that it had."""
        kept = [each for each in self.statements if not _is_from(each, session.session_id)]
        both = [*kept, *(each for each in found if each.section in SECTIONS[1:3])]
        sections = [[each for each in both if each.section == name][-MOST_STATEMENTS:] for name in SECTIONS[1:3]]
        return replace(
            self, sessions={**self.sessions, session.session_id: session}, statements=(*sections[0], *sections[1])
        )

    def without(self, gone: set[str]) -> State:
        """Without sessions that were removed."""
        return replace(
            self,
            sessions={name: session for name, session in self.sessions.items() if name not in gone},
            statements=tuple(each for each in self.statements if not any(_is_from(each, name) for name in gone)),
            summary=tuple(each for each in self.summary if not all(t.rpartition(":")[0] in gone for t in each.turns)),
        )

    def to_bytes(self) -> bytes:
        rows = {
            "format": FORMAT,
            "generation": self.generation,
            "maker": self.maker,
            "brief_etag": self.brief_etag,
            "write_id": self.write_id,
            "sessions": [{name: getattr(each, name) for name in Digested.__slots__} for each in self.sessions.values()],
            "summary": [each.to_list() for each in self.summary],
            "statements": [each.to_list() for each in self.statements],
        }
        return json.dumps(rows, ensure_ascii=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> State:
        """Raises `DamagedData`, `UnsupportedFormat`."""
        try:
            found: dict[str, Any] = json.loads(data)
            if found["format"] > FORMAT:
                raise UnsupportedFormat(f"{where}: format {found['format']}, this version reads {FORMAT}")
            return cls(
                generation=int(found["generation"]),
                sessions={row["session_id"]: Digested(**row) for row in found["sessions"]},
                statements=tuple(map(Statement.of_list, found["statements"])),
                summary=tuple(map(Statement.of_list, found["summary"])),
                maker=str(found["maker"]),
                brief_etag=str(found["brief_etag"]),
                write_id=str(found["write_id"]),
            )
        except (ValueError, KeyError, TypeError, IndexError) as error:
            if isinstance(error, DamagedData):
                raise
            raise DamagedData(f"{where} is no state of a compiled context: {error!r}") from None


def load(store: Store, key: str) -> tuple[State, str | None]:
    """The state and its version; an empty one where there is none (1 GET)."""
    try:
        blob = store.get(key)
    except NotFound:
        return State(), None
    return State.from_bytes(blob.data, f"{store.url}/{key}"), blob.etag


def commit(store: Store, key: str, state: State, etag: str | None) -> bool:
    """Whether the state is now the one that is there (1 PUT). A reply that was lost counts as what it was."""
    state = replace(state, write_id=uuid.uuid4().hex)
    try:
        store.put(key, state.to_bytes(), if_absent=etag is None, if_match=etag)
        return True
    except (AlreadyExists, NotFound):
        found, _ = load(store, key)
        return found.write_id == state.write_id


def _is_from(statement: Statement, session_id: str) -> bool:
    return any(turn.rpartition(":")[0] == session_id for turn in statement.turns)
