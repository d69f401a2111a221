"""Keep the items of LangGraph's `BaseStore` in a memory. Needs `pip install langgraph-checkpoint`.

    graph = builder.compile(store=LangGraphStore(Memory.open("s3://bucket/agent"), ttl={"default_ttl": 60}))

Lifetimes are in minutes. A read with `refresh_ttl` restarts the lifetime: it stores the item again, unless another
writer was faster. `query` is ignored. `created_at` is the time of the last write, as in LangGraph's own memory store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any

from langgraph.store import base
from langgraph.store.memory import InMemoryStore

from monocontext.errors import AlreadyExists, InvalidEntry, NotFound
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory
from monocontext.memory.objects import MEMORY_REQUESTS
from monocontext.stores.parallel import at_once

_PREFIX = "store:"
_UPDATED = "updated"  # the time of the last change, in the metadata of an item that a read has stored again


class LangGraphStore(base.BaseStore):  # type: ignore[misc, unused-ignore]
    """Items by namespace and key. Safe for use by many threads, processes and machines at once."""

    supports_ttl = True

    def __init__(self, memory: Memory, *, ttl: Any = None) -> None:
        """`ttl` is LangGraph's `TTLConfig`: `default_ttl` in minutes, `refresh_on_read`."""
        self.memory = memory
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run the operations in threads, and return a result for each: None for a put.

        Reads return the state before the batch. Of several puts of a key, the last counts. Raises `InvalidEntry`,
        `InvalidNamespaceError`, `ValueError`.
        """
        operations = list(ops)
        puts = {(op.namespace, op.key): op for op in operations if isinstance(op, base.PutOp)}
        results = at_once(self._read, operations, MEMORY_REQUESTS)
        at_once(self._put, puts.values(), MEMORY_REQUESTS)
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Run the operations as `batch` does, in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Any) -> Any:
        """The result of a get, search or listing; None for a put."""
        if isinstance(op, base.GetOp):
            try:
                entry = self.memory.entry(_key(op.namespace, op.key))
            except NotFound:
                return None
            if (fields := _item_fields(entry)) and op.refresh_ttl:
                self._refresh(entry)
            return base.Item(**fields) if fields else None
        if isinstance(op, base.SearchOp):
            return self._search(op)
        if isinstance(op, base.ListNamespacesOp):
            return self._list_namespaces(op)
        if not isinstance(op, base.PutOp):
            raise ValueError(f"a batch takes operations of LangGraph's store, not {type(op).__name__}")
        return None

    def _put(self, op: Any) -> None:
        key = _key(op.namespace, op.key)
        if op.value is None:
            self.memory.delete(key)
            return
        try:
            text = json.dumps(dict(op.value), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise InvalidEntry(f"the item {op.key!r} in {op.namespace!r} is not JSON: {error}") from None
        self.memory.put(key, text, None if op.ttl is None else op.ttl * 60)

    def _refresh(self, entry: Entry) -> None:
        """Restart the lifetime of an entry, if it has one (1 conditional put)."""
        if entry.ttl_seconds is not None:
            metadata = {_UPDATED: entry.added_utc.isoformat(), **entry.metadata}
            try:
                self.memory.put(entry.key, entry.value or "", entry.ttl_seconds, if_match=entry.etag, metadata=metadata)
            except (AlreadyExists, NotFound):
                pass  # changed or removed since: there is nothing to prolong

    def _search(self, op: Any) -> list[Any]:
        """The items that match, in order of their keys (1 LIST per 1,000 keys; 1 GET for each item up to the last that
        is returned, `offset + limit` at once)."""
        entries = self.memory.read_entries(_prefix(op.namespace_prefix), ahead=op.offset + op.limit)
        items = ((entry, base.SearchItem(**fields)) for entry in entries if (fields := _item_fields(entry)))
        matches = ((entry, item) for entry, item in items if not op.filter or _passes(item, op))
        chosen = list(islice(matches, op.offset, op.offset + op.limit))
        for entry, _ in chosen if op.refresh_ttl else ():
            self._refresh(entry)
        return [item for _, item in chosen]

    def _list_namespaces(self, op: Any) -> list[tuple[str, ...]]:
        mirror = InMemoryStore()
        mirror.batch([base.PutOp(*_split_key(key), {}) for key in self.memory.list(_PREFIX)])
        return list(mirror.batch([op])[0])


def _item_fields(entry: Entry) -> dict[str, Any] | None:
    """The arguments of LangGraph's `Item`; None for a value of another writer, which is not a JSON object."""
    try:
        value = json.loads(entry.value or "")
    except ValueError:
        return None
    namespace, key = _split_key(entry.key)
    updated = datetime.fromisoformat(entry.metadata[_UPDATED]) if _UPDATED in entry.metadata else entry.added_utc
    times = {"created_at": updated, "updated_at": updated}
    return {"namespace": namespace, "key": key, "value": value, **times} if isinstance(value, dict) else None


def _passes(item: Any, op: Any) -> bool:
    """Whether an item passes the filter of a search, as LangGraph's own store decides."""
    mirror = InMemoryStore()
    mirror.batch([base.PutOp(item.namespace, item.key, item.value)])
    return bool(mirror.batch([op._replace(query=None, limit=1, offset=0)])[0])


def _key(namespace: tuple[str, ...], key: str) -> str:
    """The key in the memory. Labels are not empty and have no dot, so the first `..` ends the namespace."""
    return f"{_PREFIX}{'.'.join(_check_namespace(namespace))}..{key}"


def _prefix(namespace: tuple[str, ...]) -> str:
    """The prefix of the keys of a namespace and of all below it."""
    return _PREFIX + "".join(f"{label}." for label in _check_namespace(namespace))


def _check_namespace(namespace: tuple[str, ...]) -> tuple[str, ...]:
    if not all(isinstance(label, str) and label and "." not in label for label in namespace):
        raise base.InvalidNamespaceError(f"a label must have at least one character and no dot: {namespace!r}")
    return namespace


def _split_key(key: str) -> tuple[tuple[str, ...], str]:
    labels, _, rest = key.removeprefix(_PREFIX).partition("..")
    return tuple(labels.split(".")) if labels else (), rest
