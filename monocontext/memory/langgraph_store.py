"""Keep the items of LangGraph's `BaseStore` in a memory. Needs `pip install langgraph-checkpoint`.

    graph = builder.compile(store=LangGraphStore(Memory.open("s3://bucket/agent"), ttl={"default_ttl": 60}))

Lifetimes are in minutes. A read that refreshes restarts them: it stores the item again, unless another writer came
first. There are no embeddings: `query` ranks nothing. The memory keeps one time, so `created_at` is that of the last
write, as in LangGraph's own memory store.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)

from monocontext.engine.fetch.threads import in_threads
from monocontext.errors import AlreadyExists, InvalidEntry, NotFound
from monocontext.memory.entry import Entry
from monocontext.memory.memory import Memory
from monocontext.memory.objects import THREADS

_PREFIX = "store:"
_UPDATED = "updated"
"""The time of the last change, in the metadata of an item that a read has stored again."""

Namespace = tuple[str, ...]


class LangGraphStore(BaseStore):  # type: ignore[misc, unused-ignore]
    """Items by namespace and key. Safe for use by many threads and by many processes at one place."""

    supports_ttl = True

    def __init__(self, memory: Memory, *, ttl: Any = None) -> None:
        """`ttl` is LangGraph's `TTLConfig`: `default_ttl` in minutes, `refresh_on_read`."""
        self.memory = memory
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run the operations in threads and return a result for each, None for a put.

        Reads see the state before the batch; of several puts of a key, the last counts. Raises `InvalidEntry`,
        `InvalidNamespaceError`, `ValueError`.
        """
        value = list(ops)
        puts = {(op.namespace, op.key): op for op in value if isinstance(op, PutOp)}
        results = in_threads(self._read, value, THREADS, "monocontext-memory")
        in_threads(self._put, puts.values(), THREADS, "monocontext-memory")
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Any) -> Any:
        """The result of a get, search or listing; None for a put."""
        if isinstance(op, GetOp):
            entry = self._find(_key(op.namespace, op.key))
            return entry and Item(**self._item_fields(self._refresh(entry, op.refresh_ttl)))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

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

    def _refresh(self, entry: Entry, refresh: bool) -> Entry:
        """Restart the lifetime of an entry (1 conditional put), if `refresh`; returns it as it was read."""
        if refresh and entry.ttl_seconds is not None:
            metadata = {_UPDATED: entry.added_utc.isoformat(), **entry.metadata}
            try:
                self.memory.put(entry.key, entry.value or "", entry.ttl_seconds, if_match=entry.etag, metadata=metadata)
            except (AlreadyExists, NotFound):
                pass  # changed or removed since: there is nothing to prolong
        return entry

    def _item_fields(self, entry: Entry) -> dict[str, Any]:
        """The arguments of LangGraph's `Item`."""
        namespace, key = _split_key(entry.key)
        updated = datetime.fromisoformat(entry.metadata[_UPDATED]) if _UPDATED in entry.metadata else entry.added_utc
        value = json.loads(entry.value or "{}")
        return {"namespace": namespace, "key": key, "value": value, "created_at": updated, "updated_at": updated}

    def _search(self, op: Any) -> list[Any]:
        """Items in order of their keys (1 entry read each, one after another; those before `offset` too)."""
        entries = (self._find(key) for key in self.memory.list(_prefix(op.namespace_prefix)))
        passing = (
            (entry, fields)
            for entry in entries
            if entry is not None and _matches_filter((fields := self._item_fields(entry))["value"], op.filter or {})
        )
        return [
            SearchItem(**fields)
            for entry, fields in islice(passing, op.offset, op.offset + op.limit)
            if self._refresh(entry, op.refresh_ttl)
        ]

    def _find(self, key: str) -> Entry | None:
        try:
            return self.memory.entry(key)
        except NotFound:
            return None

    def _list_namespaces(self, op: Any) -> list[Namespace]:
        found = {
            namespace[: op.max_depth]
            for namespace in {_split_key(key)[0] for key in self.memory.list(_PREFIX)}
            if all(_matches_condition(condition, namespace) for condition in op.match_conditions or ())
        }
        return sorted(found)[op.offset : op.offset + op.limit]


def _key(namespace: Namespace, key: str) -> str:
    """The key in the memory. Labels are not empty and have no dot, so the first `..` ends the namespace."""
    return f"{_PREFIX}{'.'.join(_check_namespace(namespace))}..{key}"


def _prefix(namespace: Namespace) -> str:
    """The prefix of the keys of a namespace and of all below it."""
    return _PREFIX + "".join(f"{label}." for label in _check_namespace(namespace))


def _check_namespace(namespace: Namespace) -> Namespace:
    if not all(isinstance(label, str) and label and "." not in label for label in namespace):
        raise InvalidNamespaceError(f"the labels of a namespace must not be empty or hold a dot: {namespace!r}")
    return namespace


def _split_key(key: str) -> tuple[Namespace, str]:
    """The namespace and key of a `_key`."""
    labels, _, rest = key.removeprefix(_PREFIX).partition("..")
    return tuple(labels.split(".")) if labels else (), rest


def _matches_condition(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins or ends with the path; `*` matches any label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(expected in ("*", label) for expected, label in zip(path, part, strict=True))


def _matches_filter(value: Any, expected: Any) -> bool:
    """Whether a value passes a filter: equal, or within `$eq $ne $gt $gte $lt $lte`; objects field by field.

    Raises `ValueError` for an unknown operator. `$gt` and the like compare numbers: they raise what `float` raises.
    """
    if isinstance(expected, dict):
        if any(name.startswith("$") for name in expected):
            return all(_compare(value, name, bound) for name, bound in expected.items())
        return isinstance(value, dict) and all(_matches_filter(value.get(name), expected[name]) for name in expected)
    if isinstance(expected, list | tuple):
        is_as_long = isinstance(value, list) and len(value) == len(expected)
        return is_as_long and all(map(_matches_filter, value, expected))
    return bool(value == expected)


def _compare(value: Any, name: str, bound: Any) -> bool:
    if name in ("$eq", "$ne"):
        return (value == bound) is (name == "$eq")
    compare = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}.get(name)
    if compare is None:
        raise ValueError(f"Unsupported operator: {name}")
    return value is not None and bool(compare(float(value), float(bound)))
