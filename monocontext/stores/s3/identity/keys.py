"""Keys, their source and their end; and checks of what a source answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from monocontext.records import NamedTuple
from monocontext.stores.http.signing import Credentials
from monocontext.stores.s3.identity.reasons import NoIdentity, check_line


class FoundKeys(NamedTuple):
    """Credentials that a source gave."""

    credentials: Credentials
    source: str
    """The source in words."""
    expires: float | None = None
    """In seconds since 1970; `None` for keys that stay."""


def keys_of(answer: Mapping[str, Any], source: str, names: tuple[str, str, str, str]) -> FoundKeys:
    """The keys in an answer that names them `names`: access key, secret key, token and end. Raises `NoIdentity`."""
    missing = [name for name in names[:2] if not isinstance(answer.get(name), str) or not answer[name]]
    if missing:
        raise NoIdentity(f"{source} gave no {' and no '.join(missing)}")
    for name in names[:3]:
        check_line(answer.get(name), f"{name} from {source}")
    end = answer.get(names[3])
    keys = Credentials(answer[names[0]], answer[names[1]], answer.get(names[2]) or None)
    return FoundKeys(keys, source, None if end is None else seconds_of(end, source))


def seconds_of(end: Any, source: str) -> float:
    """A time in ISO 8601, or in milliseconds since 1970, in seconds since 1970. Raises `NoIdentity`."""
    if isinstance(end, int | float):
        return end / 1000
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(end.removesuffix("UTC"))
    except (AttributeError, ValueError):
        raise NoIdentity(f"{source} gave an end that is no time: {str(end)[:40]!r}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_json(text: str | bytes, source: str) -> dict[str, Any]:
    """An answer that is a JSON object. Raises `NoIdentity`."""
    try:
        found = json.loads(text)
    except ValueError:
        raise NoIdentity(f"{source} gave no JSON") from None
    if not isinstance(found, dict):
        raise NoIdentity(f"{source} gave no JSON object")
    return found
