"""Describe an uploaded session in `session.json`: its properties and the objects that it consists of.

Writing it, by compare-and-swap, is the commit of an upload: records and texts come before it, and an object that it
does not name does not count. So a machine that dies in the middle, and two that upload one session, leave each record
exactly once.
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
    """Greatest time of a turn."""
    frames: tuple[FrameRecord, ...]
    """Many sessions make one text by these, without being read."""


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
    """The uploaders: `user@machine`."""
    records: int = 0
    turns: int = 0
    lines: int = 0
    """Lines of the transcript file that have been taken."""
    digest: str = ""
    """The digest of those lines, to check whether a file still begins with them."""
    tail: str = ""
    """Digest of a last line that was kept though it was cut off."""
    redacted: dict[str, int] = field(default_factory=dict)
    """Secrets taken out, by kind."""
    is_redacted: bool = True
    """False after an upload with `--no-redact`."""
    images: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    """Records of types that the uploader did not know, by type. They are in the archive."""
    unreadable: int = 0
    """Lines that were no records. They are in the archive."""
    parts: tuple[SessionPart, ...] = ()
    pieces: tuple[TurnPiece, ...] = ()
    write_id: str = ""
    """New with each write: equal contents would have equal ETags."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were called, sorted; empty for sessions that an earlier version uploaded."""

    @property
    def content_sha256(self) -> tuple[str, ...]:
        """Names the text."""
        return tuple(piece.sha256 for piece in self.pieces)

    def to_bytes(self) -> bytes:
        """The object `session.json`, as it is stored."""
        fields = asdict(self)
        fields["pieces"] = [{**asdict(p), "frames": [list(frame[1:]) for frame in p.frames]} for p in self.pieces]
        return json.dumps({"format": FORMAT, **fields}, indent=1, ensure_ascii=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> SessionInfo:
        """Raises `DamagedData`, and `UnsupportedFormat` for the data of a newer version."""
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
