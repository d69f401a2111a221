"""Evaluate builtins, `math` and methods of lists on known values. Nothing here reads the context."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from monocontext.engine.hints import bounded
from monocontext.engine.hints.bounded import MOST_ITEMS, attempt, is_plain
from monocontext.engine.hints.values import (
    UNKNOWN,
    Items,
    LineList,
    Loaded,
    Pieces,
    Progression,
    Table,
    TextValue,
    run_of,
)

_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "divmod": divmod,
    "float": float,
    "int": int,
    "max": max,
    "min": min,
    "round": round,
    "str": str,
    "repr": repr,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.sqrt": math.sqrt,
    "math.log2": math.log2,
    "math.log": math.log,
    "math.log10": math.log10,
    "re.escape": re.escape,
}
# fmt: off
BUILTINS = frozenset(name for name in _PLAIN if "." not in name) | {
    "len", "range", "list", "tuple", "set", "frozenset", "sorted", "reversed", "enumerate", "zip", "sum",
    "isinstance", "type", "slice", "iter", "any", "all", "dict", "map", "filter",
}
# fmt: on
MOST_DIGITS = 20
"""That a number is rounded to: `round(5, -10**9)` works out the power of ten."""
_TYPES = {"str": "str", "int": "int", "float": "float", "list": "list", "tuple": "tuple", "dict": "dict"}


def call(name: str, arguments: Sequence[object]) -> object:
    """The result of the builtin; `UNKNOWN` where that depends on data."""
    match name, arguments:
        case "len", [value]:
            return length(value)
        case "range", [*bounds]:
            return _range([bound for bound in bounds if type(bound) is int], len(bounds))
        case "round", [_, int() as digits] if abs(digits) > MOST_DIGITS:
            return UNKNOWN
        case "slice", [*bounds] if 0 < len(bounds) < 4:
            return slice(*bounds)
        case "enumerate", [value, *start]:
            return _enumerate(value, start[0] if start else 0)
        case "zip", [_, *_]:
            return _zip(arguments)
        case "reversed", [value]:
            return _reverse(value)
        case (("list" | "tuple" | "set" | "frozenset" | "sorted" | "iter"), [value]):
            return _collect(name, value)
        case (("list" | "set"), []):
            return Items([])
        case "dict", []:
            return Table({})
        case "sum", [value]:
            return _total(value)
        case "isinstance", [value, kinds]:
            return _is_instance(value, kinds)
        case (("int" | "float" | "str" | "bool" | "round" | "abs"), [Loaded() as loaded]):
            return loaded if name == "str" else UNKNOWN
        case (("max" | "min"), [value]):
            run = run_of(value)
            if run is None or not 0 < run.count <= MOST_ITEMS:
                return UNKNOWN
            return call(name, [run.item(k) for k in range(run.count)]) if run.count > 1 else run.item(0)
        case "bool", [value]:
            known = bounded.truth(value)
            return UNKNOWN if known is None else known
    if name in _PLAIN and all(map(is_plain, arguments)):
        return attempt(_PLAIN[name], *arguments)
    return UNKNOWN


def length(value: object) -> object:
    """`len(value)`."""
    match value:
        case TextValue():
            return value.stop - value.start
        case Loaded(length=int() as known):
            return known
        case Items():
            return UNKNOWN if value.known_length is None else value.known_length
    run = run_of(value)
    return UNKNOWN if run is None else run.count


def _range(bounds: list[int], given: int) -> object:
    if len(bounds) < given or not 0 < given < 4:
        return UNKNOWN
    try:
        made = range(*bounds)
        return made if len(made) else ()
    except (ValueError, OverflowError):
        return UNKNOWN


def _enumerate(value: object, start: object) -> object:
    run = run_of(value)
    if not isinstance(start, int):
        start = 0
    if run is None:
        return Items(None)
    if isinstance(value, range) and run.count > MOST_ITEMS:
        return Progression((start, value.start), (1, value.step), run.count)
    if run.count > MOST_ITEMS:
        return Items(None, run.count)
    return Items([(start + k, run.item(k)) for k in range(run.count)])


def _zip(values: Sequence[object]) -> object:
    runs = [run_of(value) for value in values]
    known = [run for run in runs if run is not None]
    if len(known) < len(runs):
        return Items(None)
    count = min(run.count for run in known)
    if count > MOST_ITEMS:
        ranges = [value for value in values if isinstance(value, range)]
        if len(ranges) < len(values):
            return Items(None, count)
        return Progression(tuple(r.start for r in ranges), tuple(r.step for r in ranges), count)
    return Items([tuple(run.item(k) for run in known) for k in range(count)])


def _reverse(value: object) -> object:
    match value:
        case range():
            return value[::-1]
        case Progression():
            delta = tuple(-step for step in value.delta)
            return Progression(value.item(value.count - 1), delta, value.count) if value.count else value
        case Items(items=list() as items):
            return Items(items[::-1])
        case tuple():
            return value[::-1]
    return value if isinstance(value, Items) else UNKNOWN


def _collect(name: str, value: object) -> object:
    run = run_of(value)
    if run is None:
        return Items(None)
    if run.count > MOST_ITEMS:
        return value if isinstance(value, range | Progression) and name != "sorted" else Items(None, run.count)
    items = [run.item(k) for k in range(run.count)]
    if name == "sorted":
        if not all(map(is_plain, items)):
            return Items(None, len(items))
        made = attempt(sorted, items)
        return made if isinstance(made, Items) else Items(None, len(items))
    if name in ("set", "frozenset"):
        items = list(dict.fromkeys(items)) if all(map(is_plain, items)) else items
    return tuple(items) if name == "tuple" else Items(items)


def _total(value: object) -> object:
    run = run_of(value)
    if run is None or run.count > MOST_ITEMS:
        return UNKNOWN
    total: object = 0
    for k in range(run.count):
        total = bounded.binary(ast.Add, total, run.item(k))
    return total


def _is_instance(value: object, kinds: object) -> object:
    """`isinstance`, where the kinds are named by builtins; a text says that it is a `str`."""
    names = {getattr(kind, "path", None) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))}
    if not names <= set(_TYPES):
        return UNKNOWN
    match value:
        case TextValue() | Loaded() | str():
            kind = "str"
        case LineList() | Pieces():
            kind = "list"
        case bool() | int() | float() | tuple():
            kind = "int" if isinstance(value, bool) else type(value).__name__
        case Table():
            kind = "dict"
        case _:
            return UNKNOWN
    return kind in names


def list_method(value: Items, name: str, arguments: Sequence[object], *, certain: bool) -> object:
    """A method of a list; one that changes it under a condition leaves a list of which nothing is known."""
    items = value.items
    match name, arguments:
        case (("index" | "count"), [wanted]) if items is not None and all(map(is_plain, items)) and is_plain(wanted):
            return attempt(getattr(items, name), wanted)
        case (("copy"), []):
            return Items(items[:] if items is not None else None, value.length)
        case (("index" | "count" | "copy"), _):
            return UNKNOWN
        case (("append" | "add"), [item]) if certain and items is not None and len(items) < MOST_ITEMS:
            items.append(item)
            return None
        case "append", [_] if certain and value.known_length is not None:
            value.items, value.length = None, value.known_length + 1
            return None
        case (("extend" | "update"), [more]) if certain and items is not None:
            run = run_of(more)
            if run is not None and run.count + len(items) <= MOST_ITEMS:
                items.extend(run.item(k) for k in range(run.count))
                return None
        case "pop", ([] | [int()]) if certain and items:
            return attempt_raw(items.pop, *arguments)
        case "insert", [int() as place, item] if certain and items is not None and len(items) < MOST_ITEMS:
            items.insert(place, item)
            return None
        case (("sort" | "reverse" | "clear"), []) if certain and items is not None and all(map(is_plain, items)):
            attempt_raw(getattr(items, name))
            return None
    value.items, value.length = None, None
    return UNKNOWN


def attempt_raw(function: Callable[..., object], *arguments: object) -> object:
    """A method of a list that may fail, its result as it is."""
    try:
        return function(*arguments)
    except (LookupError, TypeError, OverflowError):
        return UNKNOWN


def table_method(value: Table, name: str, arguments: Sequence[object], *, certain: bool) -> object:
    """A method of a dictionary."""
    table = value.items
    match name, arguments:
        case "items", [] if table is not None:
            return Items(list(table.items()))
        case "keys", [] if table is not None:
            return Items(list(table))
        case "values", [] if table is not None:
            return Items(list(table.values()))
        case (("items" | "keys" | "values"), _):
            return Items(None)
        case "get", [key, *default] if table is not None and is_plain(key):
            return table.get(key, default[0] if default else None)
        case (("get" | "copy"), _):
            return UNKNOWN
    value.items = None
    return UNKNOWN
