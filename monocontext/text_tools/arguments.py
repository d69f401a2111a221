"""Check the arguments of a tool call against the signature of the tool."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, get_args

from monocontext.errors import ToolRefusal
from monocontext.options import suggestion

_TYPE_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false", NoneType: "null"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}\Z")
"""An integer such as `5` or `-12`, not `5.0`, of at most 4,000 digits, since Python parses no more than 4,300."""
_BOOLEANS: dict[Any, bool] = {"true": True, "yes": True, "on": True, "1": True, 1: True}
_BOOLEANS |= {"false": False, "no": False, "off": False, "0": False, 0: False}
_MOST_NAME_CHARACTERS = 100  # the longest unknown name for which an error suggests a similar one
HALF_A_PAIR = "half a surrogate pair, which is not a character"


def check_arguments(tool: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arguments to the types of a tool's parameters. Raises `ToolRefusal` for the first that is wrong.

    `tool` is the name of the tool that `function` runs. Other forms of numbers and booleans are accepted if nothing is
    lost: `"5"` and `5.0` for 5, `"true"` for True.
    """
    parameters = inspect.signature(function).parameters
    for name in arguments:
        if name not in parameters:
            near = suggestion(name, parameters) if len(name) <= _MOST_NAME_CHARACTERS else ""
            instead = near or f": it takes {', '.join(parameters) or 'none'}"
            raise ToolRefusal(f"{tool} has no argument {name!r}{instead}")
    for name, parameter in parameters.items():
        if name not in arguments and parameter.default is parameter.empty:
            raise ToolRefusal(f"{tool} needs the argument {name}")
    return {name: _convert(name, value, parameters[name].annotation) for name, value in arguments.items()}


def _convert(name: str, value: Any, annotation: Any) -> Any:
    """Convert a value to one of the types in an annotation. Raises `ToolRefusal` if none has an equal value."""
    types = get_args(annotation) or (annotation,)
    if type(value) in types:
        if isinstance(value, str) and not is_unicode(value):
            raise ToolRefusal(f"{name} contains {HALF_A_PAIR}")
        return value
    if int in types and isinstance(value, str) and _INTEGER.match(value.strip()):
        return int(value)
    if int in types and isinstance(value, float) and value.is_integer():
        return int(value)
    if float in types and not isinstance(value, bool) and (number := _number(value)) is not None:
        return number
    if bool in types and isinstance(value, str | int | float):
        result = _BOOLEANS.get(value.lower() if isinstance(value, str) else value)
        if result is not None:
            return result
    expected = " or ".join(word for type_, word in _TYPE_NAMES.items() if type_ in types)
    raise ToolRefusal(f"{name} must be {expected}, not {json.dumps(value)}")


def _number(value: Any) -> float | None:
    """The finite number that a value is or spells; None for any other value."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def is_unicode(value: str) -> bool:
    """Whether a string has no lone half of a surrogate pair, so that UTF-8 can encode it."""
    return value.encode(errors="replace").decode() == value
