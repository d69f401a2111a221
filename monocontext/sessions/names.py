"""Turn names of projects and sessions into parts of keys, and back. Pure.

    sessions/<project>/<session>[/subagents/agent-x]/part-<ms, 13 digits>-<6 hex>.jsonl    records
    transcripts/<project>/<session>[/...]/{session.json, turns-*.txt, transcript.txt}      what they say
    summaries/<project>/<session>.json                                                     of the Agent SDK
    compiled/<project>/...                                                                 what `rlm compile` made
    search/<project>/...                                                                   search filters over the texts
    locks/<name>

Names come from files and from other people. Whatever a name is, its part of a key has no slash, does not begin with a
dot and is not empty, so nothing is written outside its folder. Different names have different parts.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from monocontext.errors import InvalidUrl

SESSIONS = "sessions"
TRANSCRIPTS = "transcripts"
SUMMARIES = "summaries"
COMPILED = "compiled"
SEARCH = "search"
LOCKS = "locks"

SESSION_JSON = "session.json"
TRANSCRIPT = "transcript.txt"
BRIEF = "brief.md"

_MOST_BYTES = 200
"""File systems take 255 bytes for a name, and the store's temporary ones need some."""
_PART = re.compile(r"part-(\d{13})-[0-9a-f]{6}\.jsonl")


def key_part(name: str, what: str = "name") -> str:
    """A name as one part of a key. Raises `InvalidUrl` for a name that is empty or too long."""
    if not isinstance(name, str) or not name:
        raise InvalidUrl(f"a {what} must be a str of at least one character, not {name!r}")
    part = quote(name, safe="-_.~", errors="surrogatepass")
    if part.startswith("."):
        part = "%2E" + part[1:]
    if len(part) > _MOST_BYTES:
        raise InvalidUrl(f"the {what} {name[:40]!r}... is too long: its key would take {len(part):,} bytes")
    return part


def name_of(part: str) -> str:
    """The name for a part of a key, as `key_part` makes it."""
    return unquote(part, errors="surrogatepass")


def session_path(session_id: str) -> str:
    """A session's id as parts of a key. The slashes of `<id>/subagents/agent-x` stay, any other is escaped."""
    main, slash, rest = session_id.partition("/subagents/")
    if not slash:
        return key_part(session_id, "session id")
    return "/".join(
        [key_part(main, "session id"), "subagents", *(key_part(each, "agent id") for each in rest.split("/"))]
    )


def session_of(path: str) -> str:
    """The session's id for parts of a key, as `session_path` makes them."""
    return "/".join(name_of(part) for part in path.split("/"))


def is_part(name: str) -> bool:
    """Whether an object of this name has records."""
    return _PART.fullmatch(name) is not None


def part_ms(name: str) -> int:
    """The time in the name of an object with records, in milliseconds since 1970; 0 for any other name."""
    found = _PART.fullmatch(name)
    return int(found[1]) if found else 0
