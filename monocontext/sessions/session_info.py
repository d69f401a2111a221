"""Write and read the object of a session: a description, then the records as JSON lines, both compressed by zstd.

    sessions/<project>/<session>[/subagents/agent-x].jsonl.zst    a session: `zstd -d` shows both, the description first
    texts/<project>/...                                           the turns of all of them: a `Monocontext`
    compiled/<project>/...                                        what `rlm compile` made

Names of projects and sessions are escaped in keys: no part of a key is empty, has a slash or begins with a dot, so
nothing is written outside its folder, and different names have different keys.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import zstandard

from monocontext.errors import DamagedData, InvalidUrl, UnsupportedFormat
from monocontext.stores.protocol import Store
from monocontext.writing.compression import DamagedCompression, DecompressedFile

SESSIONS, TEXTS, COMPILED = "sessions", "texts", "compiled"
BRIEF, ENDING = "brief.md", ".jsonl.zst"
_MOST_NAME_BYTES = 200  # file systems take 255 bytes for a name, and the store's temporary ones need some
_FORMAT = 2
_HEAD_BYTES = 4096  # of an object that are read for its description; a longer description takes the whole object
_MOST_BYTES = 1 << 30  # the longest session, inflated
_REMEDY = "delete this object, then upload the session again"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The description of one session, or of the stream of one subagent."""

    session_id: str
    project: str
    agent: str = ""
    title: str = ""
    first_prompt: str = ""
    cwd: str = ""  # the last directory that the agent worked in
    began_in: str = ""  # the first directory that it worked in
    top: str = ""  # the folder of the clone in which it began, for `sessions pull`; empty outside of a repository
    file_name: str = ""  # of the agent's own file
    branch: str = ""
    started: str = ""
    ended: str = ""
    users: tuple[str, ...] = ()  # who uploaded it, in the form `user@machine`
    records: int = 0
    turns: int = 0
    identities: int = 0  # the number of records that can be told apart: by a uuid, a time or their content (`ids_of`)
    identity: str = ""  # the digest of these identities: a session that begins with them goes on from this one
    redacted: dict[str, int] = field(default_factory=dict)  # secrets that were taken out, by kind
    is_redacted: bool = True  # False after an upload with `--no-redact`
    unknown: dict[str, int] = field(default_factory=dict)  # records that the uploader did not know, by type
    tools: tuple[str, ...] = ()  # names of the tools that were called, sorted
    content_sha256: str = ""  # the digest of the records as stored, which identifies what the session says
    write_id: str = ""  # a new value in each write: equal contents would have equal ETags


class StoredInfo(NamedTuple):
    """The description of a session in the archive."""

    info: SessionInfo
    etag: str  # of the session's object


def pack(info: SessionInfo, lines: Sequence[bytes]) -> bytes:
    """The bytes of a session's object. `lines`: the records as JSON, without newlines."""
    compressor = zstandard.ZstdCompressor(level=9)
    head = json.dumps({"type": "monocontext", "format": _FORMAT, **asdict(info)}).encode()
    return compressor.compress(head + b"\n") + compressor.compress(b"".join(line + b"\n" for line in lines))


def read_info(store: Store, key: str, size_bytes: int, etag: str | None = None) -> StoredInfo:
    """The description of a session, and its ETag (1 GET of the beginning, 1 more for a very long description). Raises
    `NotFound`, `DamagedData`, `UnsupportedFormat`, and `ContextChanged` for another version than that of `etag`."""
    blob, name = store.get_range(key, 0, min(_HEAD_BYTES, size_bytes), etag=etag), f"{store.url}/{key}"
    inflate = zstandard.ZstdDecompressor().decompressobj()
    try:
        line = inflate.decompress(blob.data)
    except zstandard.ZstdError as error:
        raise DamagedData(f"{name} is not a session: {error}") from None
    if inflate.eof:
        return StoredInfo(_parse(line, name), blob.etag)
    info, _, etag = read_session(store, key)
    return StoredInfo(info, etag)


def read_session(store: Store, key: str) -> tuple[SessionInfo, list[bytes], str]:
    """The description, the records as JSON lines, and the ETag of a session (1 GET). Raises what `read_info` raises."""
    blob, name = store.get(key), f"{store.url}/{key}"
    try:
        text = DecompressedFile(io.BytesIO(blob.data), "zstd").read(_MOST_BYTES + 1)
    except DamagedCompression as error:
        raise DamagedData(f"{name}: {error}; {_REMEDY}") from None
    if len(text) > _MOST_BYTES:
        raise DamagedData(f"{name} holds more than {_MOST_BYTES:,} bytes, the limit of a session")
    head, *lines = text.split(b"\n")
    info = _parse(head, name)
    if not lines or lines.pop():
        raise DamagedData(f"{name} is cut off; {_REMEDY}")
    if digest_of(lines) != info.content_sha256:
        raise DamagedData(f"{name}: its records differ from its checksum; {_REMEDY}")
    return info, lines, blob.etag


def digest_of(lines: Sequence[bytes]) -> str:
    """The hexadecimal SHA-256 of the lines, joined by newlines."""
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def _parse(line: bytes, where: str) -> SessionInfo:
    try:
        result = json.loads(line)
        version = result["format"]
        if version <= _FORMAT:
            fields: dict[str, Any] = {name: result[name] for name in SessionInfo.__slots__ if name in result}
            fields |= {name: tuple(fields[name]) for name in ("users", "tools")}
            return SessionInfo(**fields)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedData(f"{where} is not a session: {error!r}") from None
    advice = "upgrade monocontext"
    raise UnsupportedFormat(f"{where} has format {version}, but this version reads formats up to {_FORMAT}: {advice}")


def key_part(name: str, kind: str = "name") -> str:
    """A name as one part of a key. Raises `InvalidUrl` for a name that is empty or too long."""
    if not isinstance(name, str) or not name:
        raise InvalidUrl(f"a {kind} must be a str of at least one character, not {name!r}")
    part = quote(name, safe="-_.~", errors="surrogatepass")
    if part.startswith("."):
        part = "%2E" + part[1:]
    if len(part) > _MOST_NAME_BYTES:
        raise InvalidUrl(f"the {kind} {name[:40]!r}... has {len(part):,} bytes in a key, more than {_MOST_NAME_BYTES}")
    return part


def name_of(part: str) -> str:
    """The name in a part of a key: the inverse of `key_part`."""
    return unquote(part, errors="surrogatepass")


def session_key(project: str, session_id: str) -> str:
    """The key of a session. The slashes of `<id>/subagents/agent-x` stay, any other is escaped. Raises `InvalidUrl`."""
    main, slash, rest = session_id.partition("/subagents/")
    parts = [main, "subagents", *rest.split("/")] if slash else [session_id]
    path = "/".join(key_part(part, "session id") for part in parts)
    return f"{SESSIONS}/{key_part(project, 'project')}/{path}{ENDING}"


def session_of(path: str) -> str:
    """The id of the session whose key ends in `path`, after the project; empty if `path` is not that of a session."""
    stem = path.removesuffix(ENDING)
    return "/".join(name_of(part) for part in stem.split("/")) if stem != path else ""
