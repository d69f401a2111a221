"""Tell from the code after a call that its result is only searched: `text.lower().find(x)`, `x in text.lower()`.

No other code sees such a result, so it need not be a real `str`. The answer is no where the code cannot tell, as
for a result that gets a name, or a method that is called by other means than its name.
"""

from __future__ import annotations

import sys
from opcode import opmap
from types import FrameType

SEARCHES = frozenset({"count", "endswith", "find", "index", "rfind", "rindex", "startswith"})
"""Methods that give a number or a bool."""

_ATTRIBUTES = frozenset(opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in opmap)
_CALL, _CONTAINS, _CACHE, _EXTENDED = (opmap[name] for name in ("CALL", "CONTAINS_OP", "CACHE", "EXTENDED_ARG"))
_PRECALL = opmap.get("PRECALL", _CACHE)
_SHIFT = 1 if sys.version_info >= (3, 12) else 0
"""From 3.12 on the lowest bit of an attribute's argument says whether it is called."""


def is_searched(frame: FrameType, method: str) -> bool:
    """Whether the frame is at a plain call `x.method()`, and what it does next with the result is a search (2 us)."""
    code = frame.f_code
    units, names, at = code.co_code, code.co_names, frame.f_lasti
    while at > 0 and units[at] == _CACHE:  # for a call of Python code, 3.11 points after the instruction
        at -= 2
    if units[at] != _CALL or units[at + 1]:
        return False
    before = at - 2
    while before > 0 and units[before] in (_CACHE, _PRECALL):
        before -= 2
    if units[before] not in _ATTRIBUTES or _name(units, names, before) != method:
        return False
    after = at + 2
    while units[after] in (_CACHE, _EXTENDED):
        after += 2
    return units[after] == _CONTAINS or (units[after] in _ATTRIBUTES and _name(units, names, after) in SEARCHES)


def _name(units: bytes, names: tuple[str, ...], at: int) -> str:
    """The attribute that the instruction loads."""
    argument, place = units[at + 1], at
    while place >= 2 and units[place - 2] == _EXTENDED:
        place -= 2
        argument |= units[place + 1] << 4 * (at - place)
    return names[argument >> _SHIFT]


def is_counted(frame: FrameType, method: str, arguments: int) -> bool:
    """Whether the frame is at `len(x.method(...))` or `iter` of it, or takes one item or slice (some 100 us)."""
    return _use(frame, method, arguments) in ("len", "iter", "part", "front")


def is_front_taken(frame: FrameType, method: str, arguments: int) -> bool:
    """Whether it takes `iter` of the result, or an item or slice with bounds that count from its beginning."""
    return _use(frame, method, arguments) in ("iter", "front")


_LOADS = frozenset({"LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_SMALL_INT"})
_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"})


def _use(frame: FrameType, method: str, arguments: int) -> str:
    """The use of a plain call's result, `x.method(...)` with names and constants; empty if the code cannot tell."""
    from dis import get_instructions

    found = [each for each in get_instructions(frame.f_code) if each.opname not in _SKIPPED]
    at = max((i for i, each in enumerate(found) if each.offset <= frame.f_lasti), default=0)
    first = at - arguments - 1
    names = [each.opname for each in found]
    if first < 1 or names[at] != "CALL" or found[at].arg != arguments or not _LOADS.issuperset(names[first + 1 : at]):
        return ""
    if names[first] not in ("LOAD_ATTR", "LOAD_METHOD") or found[first].argval != method:
        return ""
    after = names[at + 1 : at + 5]
    if after[:1] == ["CALL"]:
        callee = found[first - 2] if first > 1 and names[first - 1] in _LOADS and found[at + 1].arg == 1 else None
        if callee is None or callee.opname not in ("LOAD_GLOBAL", "LOAD_NAME") or callee.argval in frame.f_globals:
            return ""
        return callee.argval if callee.argval in ("len", "iter") else ""
    bounds = found[at + 1 : at + 3]
    if after[1:2] == ["BINARY_SUBSCR"]:
        bounds = bounds[:1]
    elif not (after[2:3] == ["BINARY_SLICE"] or after[2:4] == ["BUILD_SLICE", "BINARY_SUBSCR"]):
        return ""
    if not _LOADS.issuperset(each.opname for each in bounds):
        return ""
    values = [each.argval if each.opname == "LOAD_CONST" else -1 for each in bounds]
    start, stop = values[0] or 0, values[-1]
    return "front" if type(start) is type(stop) is int and start >= 0 and stop >= 0 else "part"
