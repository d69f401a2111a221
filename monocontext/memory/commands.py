"""Parse the commands of the memory protocol, whose grammar is that of CloudLLM's `memory` tool. Does no I/O.

Unlike the original, this parser loses no text: values keep their spaces, a value in quotes may end in a number, and a
malformed lifetime is part of the value, or an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from monocontext.errors import InvalidParameters
from monocontext.memory.encoding import MAX_TTL_SECONDS

Verb = Literal["P", "G", "L", "D", "C", "T", "SPEC"]

# Unicode's White_Space. `str.split` also splits at U+001C to U+001F, other implementations of the protocol do not.
_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_SPACES = re.compile(f"[{_WHITE}]+")
_TTL = re.compile(r"\+?[0-9]+")  # a lifetime in seconds, such as `60` or `+60`, not `-1` or `1.5`
_OPTIONAL_TTL = re.compile(f"(?:[{_WHITE}]+(\\+?[0-9]+))?")  # what may follow a quoted value: nothing, or ` 60`
_MOST_WORDS = 3  # words after the verb of a command; the rest is not split

_VERBS: dict[str, Verb] = {
    "P": "P", "PUT": "P", "G": "G", "GET": "G", "L": "L", "LIST": "L", "D": "D", "DELETE": "D",
    "C": "C", "CLEAR": "C", "T": "T", "TOTAL": "T", "SPEC": "SPEC",
}  # fmt: skip
_SYNTAX = {"P": "ERR:Invalid PUT Syntax", "G": "ERR:Invalid GET Syntax", "D": "ERR:Invalid DELETE Syntax"}
_MISSING = (
    'Invalid parameters: Missing \'command\' field. Write {"command": "P key value 60"}, or '
    '{"command": "P", "key": "key", "value": "any text", "ttl": 60}'
)


class CommandRefused(Exception):
    """A command is invalid. The message is the `error` of the reply."""


@dataclass(frozen=True, slots=True)
class Command:
    """One parsed command."""

    verb: Verb
    key: str = ""
    value: str = ""
    ttl_seconds: int | None = None
    reports_ttl: bool = False  # whether the reply states the lifetime, since that number may be part of the value
    with_times: bool = False  # whether the reply of G or L has times and ETags, for the word META
    prefix: str = ""  # of the keys that L lists
    scope: str = ""  # what T counts: A (all), K (keys) or V (values)
    if_absent: bool = False
    if_match: str | None = None


def parse(parameters: Mapping[str, Any]) -> Command:
    """The command in a tool call. Raises `CommandRefused` for an invalid command, `InvalidParameters` for none."""
    text = parameters.get("command") if isinstance(parameters, Mapping) else None
    if not isinstance(text, str):
        raise InvalidParameters(_MISSING)
    text = text.strip(_WHITE)
    if not text:
        raise CommandRefused("ERR:Invalid Command")
    first, *words = _SPACES.split(text, maxsplit=_MOST_WORDS)
    verb = _VERBS.get(first)
    key = parameters.get("key")
    key = key if isinstance(key, str) and key else None
    match verb:
        case None:
            raise CommandRefused("ERR:Unknown Command")
        case "P":
            return _parse_put(text, key, parameters)
        case "L":
            return _parse_list(key, words)
        case "T":
            return _parse_total(words if key is None else _split_words(key))
        case "C" | "SPEC":
            return Command(verb)
    if key is None:  # the first word is the key of G and D
        if not words:
            raise CommandRefused(_SYNTAX[verb])
        key, *words = words
    return Command(verb, key=key, with_times=verb == "G" and words[:1] == ["META"])


def _parse_put(text: str, key: str | None, parameters: Mapping[str, Any]) -> Command:
    """Parse a put. Its key and value are both parameters, or are both in the text of the command."""
    ttl = _parse_ttl(parameters.get("ttl"))
    value = parameters.get("value")
    reports_ttl = False
    if key is not None or value is not None:
        if key is None or value is None:
            raise CommandRefused(_SYNTAX["P"])
        value = value if isinstance(value, str) else _to_json(value)
    else:
        parts = _SPACES.split(text, maxsplit=2)
        if len(parts) < 3:
            raise CommandRefused(_SYNTAX["P"])
        key = parts[1]
        value, inline = _split_ttl(parts[2], reads_ttl=ttl is None)
        if inline is not None:
            ttl = _parse_ttl(inline)
            reports_ttl = _SPACES.search(value) is not None
    if_match, if_absent = parameters.get("if_match"), parameters.get("if_absent")
    if if_match is not None and not isinstance(if_match, str):
        raise CommandRefused(_SYNTAX["P"])
    if if_absent not in (None, True, False) or (if_absent and if_match is not None):
        raise CommandRefused(_SYNTAX["P"])
    return Command("P", key, value, ttl, reports_ttl, if_absent=bool(if_absent), if_match=if_match)


def _split_ttl(rest: str, reads_ttl: bool) -> tuple[str, str | None]:
    """The value in the text after a key, and the digits of its lifetime, or None. Without `reads_ttl`, no number is a
    lifetime: `_split_ttl("a b 60", True)` is `("a b", "60")`, with False it is `("a b 60", None)`."""
    if rest.startswith('"'):
        try:
            literal, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            pass  # a text that begins with a quote
        else:
            match = _OPTIONAL_TTL.fullmatch(rest, end)
            if match and (reads_ttl or not match[1]):
                return literal, match[1]
    if reads_ttl:
        # Parsed from the end: a regular expression would try every space of a long text.
        before = rest.rstrip("0123456789")
        digits = rest[len(before) :]
        before = before.removesuffix("+")
        value = before.rstrip(_WHITE)
        if digits and value and len(value) < len(before):
            return value, digits
    return rest, None


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise CommandRefused(_SYNTAX["P"]) from None


def _split_words(text: str) -> list[str]:
    return _SPACES.split(text.strip(_WHITE), maxsplit=_MOST_WORDS)


def _parse_ttl(ttl: Any) -> int | None:
    """A lifetime in whole seconds from a number or digits; None for None. Raises `CommandRefused`."""
    if ttl is None:
        return None
    if isinstance(ttl, str) and _TTL.fullmatch(ttl):
        digits = ttl.lstrip("+0") or "0"
        ttl = int(digits) if len(digits) < 12 else MAX_TTL_SECONDS + 1
    if isinstance(ttl, bool) or not isinstance(ttl, int) or not 0 <= ttl <= MAX_TTL_SECONDS:
        raise CommandRefused("ERR:Invalid TTL")
    return ttl


def _parse_list(key: str | None, words: list[str]) -> Command:
    if key is not None:
        words = [key, *words] if key.endswith("*") else _split_words(key) + words
    begins_with_meta = words[:1] == ["META"]  # `L META start*`; otherwise `L start* META`
    prefix, following = [*(words[1:] if begins_with_meta else words), "", ""][:2]
    if not prefix.endswith("*"):
        return Command("L", with_times=begins_with_meta)
    return Command("L", with_times=begins_with_meta or following == "META", prefix=prefix[:-1])


def _parse_total(words: list[str]) -> Command:
    scope = words[0] if words else ""
    if scope not in ("A", "K", "V"):
        raise CommandRefused(f"ERR:Invalid TOTAL {'Scope' if scope else 'Syntax'}")
    return Command("T", scope=scope)


def key_before_meta(key: str) -> str | None:
    """The key in a parameter such as `key META`, which the original accepts; None for any other text."""
    parts = _split_words(key)
    return parts[0] if len(parts) > 1 and parts[0] and parts[1] == "META" else None
