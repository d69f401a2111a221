"""Tell from the code behind a call whether its result is only searched: `text.lower().find(x)`, `x in text.lower()`.

Nobody else gets to see such a result, so it need not be a real `str`. The answer is no where the code cannot tell, as
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
    while at > 0 and units[at] == _CACHE:  # where Python calls Python, 3.11 stands behind the instruction
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
