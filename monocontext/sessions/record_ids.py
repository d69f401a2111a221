"""Tell records apart without their content, which redaction and the paths of another clone change. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable

from monocontext.sessions.records import Record


def ids_of(records: Iterable[Record]) -> list[str]:
    """The ids of the records that have one, in order; of equal ones the second ends in `#2`.

    It is the `uuid`, else the time and the type; a message of a chat has a digest. Settings of the agent without either
    have no id, and lines that were no records: nothing hangs on them.
    """
    results: list[str] = []
    seen: Counter[str] = Counter()
    for record in records:
        name = _id_of(record)
        if name:
            seen[name] += 1
            results.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return results


def digest_of_ids(ids: Iterable[str]) -> str:
    """One value for a sequence of ids."""
    return hashlib.sha256("\n".join(ids).encode("utf-8", "backslashreplace")).hexdigest()


def _id_of(record: Record) -> str:
    kind, uuid, ts = record.get("type"), record.get("uuid"), record.get("timestamp")
    if isinstance(uuid, str) and uuid:
        return uuid
    if kind == "unreadable":
        return ""
    if isinstance(ts, str) and ts:
        payload = record.get("payload")
        inner = payload.get("type") if isinstance(payload, dict) else None
        return f"{ts} {record.get('ordinal')} {kind} {inner}"
    if "role" in record:
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    return ""
