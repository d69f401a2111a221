"""Tell from a caller's bytecode how it uses the result of a method: `x in text.lower()`, `text.split()[0]`.

Code that only searches a result, or takes a part of it, never sees the rest, so the result need not be a real `str` or
`list`. The bytecode cannot tell where a result gets a name, or where the method is not called by its name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dis import Instruction, get_instructions
from functools import lru_cache
from types import CodeType, FrameType
from typing import Literal, cast

Use = Literal["search", "len", "iter", "front", "part", "unknown"]

_SEARCHES = frozenset({"count", "endswith", "find", "index", "rfind", "rindex", "startswith"})
"""Methods that return a number or a bool."""
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_LOADS = frozenset({"LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_SMALL_INT"})
_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"})


def use_of_result(caller: FrameType, method: str, arguments: int) -> Use:
    """The use of the result of the call that a frame is at, `x.method(...)` with `arguments` names or constants.

    - "search": `in`, or a method of `str` that returns a number or a bool
    - "len", "iter": the built-in function
    - "front": an item or slice whose bounds are constants that count from the beginning
    - "part": another item or slice
    """
    code = _instructions(caller.f_code)
    call = bisect_right(code, caller.f_lasti, key=lambda each: each.offset) - 1
    first = call - arguments - 1
    if first < 1 or code[call].opname != "CALL" or code[call].arg != arguments:
        return "unknown"
    attribute, *given = code[first:call]
    if attribute.opname not in _ATTRIBUTES or attribute.argval != method or not _are_loads(given):
        return "unknown"
    after = code[call + 1 : call + 5]
    names = [each.opname for each in after]
    if names[:1] == ["CONTAINS_OP"] or (after and after[0].opname in _ATTRIBUTES and after[0].argval in _SEARCHES):
        return "search"
    if names[:1] == ["CALL"] and after[0].arg == 1 and first > 1 and _are_loads(code[first - 1 : first]):
        function = code[first - 2]
        is_built_in = function.opname in ("LOAD_GLOBAL", "LOAD_NAME") and function.argval not in caller.f_globals
        return cast(Use, function.argval) if is_built_in and function.argval in ("len", "iter") else "unknown"
    if names[1:2] == ["BINARY_SUBSCR"]:
        bounds = after[:1]
    elif names[2:3] == ["BINARY_SLICE"] or names[2:4] == ["BUILD_SLICE", "BINARY_SUBSCR"]:
        bounds = after[:2]
    else:
        return "unknown"
    if not _are_loads(bounds):
        return "unknown"
    values = [each.argval if each.opname == "LOAD_CONST" else -1 for each in bounds]
    start, stop = values[0] or 0, values[-1]
    return "front" if type(start) is type(stop) is int and start >= 0 and stop >= 0 else "part"


@lru_cache(maxsize=16)
def _instructions(code: CodeType) -> list[Instruction]:
    """The instructions of a piece of code, without those that only prepare others. Cached for calls in a loop."""
    return [each for each in get_instructions(code) if each.opname not in _SKIPPED]


def _are_loads(instructions: Sequence[Instruction]) -> bool:
    return _LOADS.issuperset(each.opname for each in instructions)
