"""Turn names of projects and sessions into keys, and back. Pure.

    sessions/<project>/<session>[/subagents/agent-x].jsonl.zst    a session: one object, records without secrets
    texts/<project>/...                                           the turns of all of them: a `Monocontext`
    compiled/<project>/...                                        what `rlm compile` made

Names come from files and from other people. Whatever a name is, its part of a key has no slash, does not begin with a
dot and is not empty, so nothing is written outside its folder. Different names have different parts.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from monocontext.errors import InvalidUrl

SESSIONS, TEXTS, COMPILED = "sessions", "texts", "compiled"
BRIEF = "brief.md"
ENDING = ".jsonl.zst"
_MOST_BYTES = 200  # file systems take 255 bytes for a name, and the store's temporary ones need some


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


def session_key(project: str, session_id: str) -> str:
    """The key of a session. The slashes of `<id>/subagents/agent-x` stay, any other is escaped. Raises `InvalidUrl`."""
    main, slash, rest = session_id.partition("/subagents/")
    parts = [main, "subagents", *rest.split("/")] if slash else [session_id]
    path = "/".join(key_part(part, "session id") for part in parts)
    return f"{SESSIONS}/{key_part(project, 'project')}/{path}{ENDING}"


def session_of(path: str) -> str:
    """The session's id for the end of a key, as `session_key` makes it; empty for any other object."""
    stem = path.removesuffix(ENDING)
    return "/".join(name_of(part) for part in stem.split("/")) if stem != path else ""
