"""Describe an uploaded session in `session.json`: its properties and the objects that it consists of.

Writing it, by compare-and-swap, commits an upload: records and texts are written before it, and objects that it does
not name do not count. So each record counts exactly once, even if a machine dies or two upload the same session.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from monocontext.errors import DamagedData, UnsupportedFormat
from monocontext.format.index import FrameRecord

FORMAT = 1
MOST_BYTES = 32 << 20
"""No `session.json` is larger: 100,000 uploads of a session take 30 MB."""


@dataclass(frozen=True, slots=True)
class SessionPart:
    """An object with records."""

    name: str
    records: int


@dataclass(frozen=True, slots=True)
class TurnPiece:
    """An object with turns as text; never changes."""

    name: str
    sha256: str
    bytes: int
    first_turn: int
    last_turn: int
    started: str
    """The earliest time of a turn, as written; empty if no turn has one."""
    ended: str
    """The latest time of a turn, as written; empty if no turn has one."""
    frames: tuple[FrameRecord, ...]
    """Frame records of the text: sessions are joined into one text without being read."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session, or the stream of one subagent."""

    session_id: str
    project: str
    agent: str = ""
    title: str = ""
    first_prompt: str = ""
    cwd: str = ""
    branch: str = ""
    started: str = ""
    ended: str = ""
    users: tuple[str, ...] = ()
    """Who uploaded it, each as `user@machine`."""
    records: int = 0
    turns: int = 0
    lines: int = 0
    """Lines of the transcript file that are archived."""
    digest: str = ""
    """The digest of these lines, to check whether a file still begins with them."""
    tail: str = ""
    """The digest of an incomplete last line that is archived; empty if there is none."""
    redacted: dict[str, int] = field(default_factory=dict)
    """The number of secrets of each kind that were taken out."""
    is_redacted: bool = True
    """False after an upload with `--no-redact`."""
    images: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    """The number of records of each type that the uploader did not know. They are in the archive."""
    unreadable: int = 0
    """The number of lines that were no records. They are in the archive."""
    parts: tuple[SessionPart, ...] = ()
    pieces: tuple[TurnPiece, ...] = ()
    write_id: str = ""
    """A new value in each write: equal contents would have equal ETags."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were called, sorted; empty for sessions that an earlier version uploaded."""

    @property
    def content_sha256(self) -> tuple[str, ...]:
        """The hashes of the text, which identify it."""
        return tuple(piece.sha256 for piece in self.pieces)

    def to_bytes(self) -> bytes:
        """The object `session.json`, as it is stored."""
        fields = asdict(self)
        fields["pieces"] = [{**asdict(p), "frames": [list(frame[1:]) for frame in p.frames]} for p in self.pieces]
        return json.dumps({"format": FORMAT, **fields}, indent=1, ensure_ascii=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> SessionInfo:
        """The session in an object. Raises `DamagedData`, and `UnsupportedFormat` for the data of a newer version."""
        try:
            found = json.loads(data)
            if found["format"] > FORMAT:
                raise UnsupportedFormat(f"{where}: format {found['format']}, this version reads {FORMAT}")
            known = {name: found[name] for name in cls.__slots__ if name in found}
            known["parts"] = tuple(SessionPart(**part) for part in found["parts"])
            known["pieces"] = tuple(_piece(piece) for piece in found["pieces"])
            known["users"] = tuple(found["users"])
            known["tools"] = tuple(found.get("tools", ()))
            return cls(**known)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
            if isinstance(error, DamagedData):
                raise
            raise DamagedData(f"{where} is not a session: {error!r}") from None


def _piece(found: dict[str, Any]) -> TurnPiece:
    frames = tuple(FrameRecord(int(row[0]), *map(int, row)) for row in found["frames"])
    piece = TurnPiece(**{**found, "frames": frames})
    if sum(frame.bytes for frame in frames) != piece.bytes:
        raise ValueError(f"{piece.name}: frames of another size than {piece.bytes} bytes")
    return piece
