"""Read records from the archive, and make turns from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from monocontext.errors import DamagedData
from monocontext.sessions.reader import TurnMaker
from monocontext.sessions.readers import AGENTS, kind_of
from monocontext.sessions.records import Record
from monocontext.sessions.turn import Turn
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store

_THREADS = 16
"""The most GETs at once."""


def read_records(store: Store, keys: Sequence[str]) -> list[Record]:
    """The records of some objects, in order, each `uuid` once (1 GET an object). Raises `DamagedData`."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="monocontext-sessions") as threads:
        bodies = list(in_order(threads, lambda key: store.get(key).data, keys, 2 * _THREADS))
    found: list[Record] = []
    seen: set[str] = set()
    for key, body in zip(keys, bodies, strict=True):
        for number, line in enumerate(body.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise DamagedData(f"{store.url}/{key}: line {number} is not JSON: {error}") from None
            uuid = record.get("uuid") if isinstance(record, dict) else None
            if isinstance(uuid, str):
                if uuid in seen:
                    continue
                seen.add(uuid)
            found.append(record)
    return found


def turns_of(records: Iterable[Record], session_id: str) -> tuple[list[Turn], TurnMaker]:
    """The turns in the records of a session, and their maker with the metadata. The agent is found from the records."""
    records = list(records)
    agent = next((kind for record in records if (kind := kind_of(record))), "claude-code")
    maker = AGENTS[agent].maker(session_id)
    return [turn for record in records for turn in maker.feed(record)], maker
