"""Find the code in tool calls that a reply writes as text or as JSON: models do so although they have no tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from rlm.runners.syntax import is_code

CALL_MARK = re.compile(
    r"(?<!`)(?:<(?:\w{1,20}:|｜DSML｜)?(?:function_calls?|invoke|tool_calls?|tool_use|use_mcp_tool|function)\b"
    r"|\[TOOL_CALLS?\]|<[|｜]tool[▁_]\w*|<\|START_ACTION\|>|<\|python_tag\|>(?=\s*\{))"
)
"""The beginning of a call that is written as text."""
_PARAMETER = re.compile(r"</?(?:\w{1,20}:|｜DSML｜)?(?:parameter|arg_value|arguments?|code)\b[^<>\n]*>", re.IGNORECASE)
_ARGUMENT_FIELDS = ("arguments", "parameters", "args", "input", "kwargs", "function")  # that hold all arguments
_OTHER_FIELDS = {"name", "tool", "type", "id", "function", "tool_name"}  # of a call, which are no arguments


def codes_of_calls(text: str) -> Iterator[str]:
    """Yield the code of each call written as text: its only parameter, the only argument of its JSON, or its text."""
    for call in CALL_MARK.split(text):
        texts_between_marks = _PARAMETER.split(call)[1::2]
        parameters = [part for part in texts_between_marks if part.strip()]
        if "{" in call and not parameters:
            codes = list(codes_of_json(call[call.index("{") :]))
        elif parameters:
            codes = [dedent(parameters[0]).strip("\n")] if len(parameters) == 1 else []
        else:
            codes = [re.split(r"</|<[|｜]", call.partition(">")[2], maxsplit=1)[0].strip()]
        yield from filter(is_code, codes)


def codes_of_json(text: str) -> Iterator[str]:
    """Yield the code of each call in a text of JSON objects whose only argument is code."""
    decoder = json.JSONDecoder(strict=False)
    offset = text.find("{") if text.lstrip()[:1] in ("{", "[") else -1
    while offset >= 0:
        try:
            value, offset = decoder.raw_decode(text, offset)
        except (ValueError, RecursionError):
            return
        argument = _only_argument(value)
        if isinstance(argument, str) and argument.lstrip().startswith("{"):
            yield from codes_of_json(argument)
        elif isinstance(argument, str) and is_code(argument):
            yield argument
        offset = text.find("{", offset)


def _only_argument(value: Any) -> Any:
    """The argument of a call, however deep its object is nested; None if it has several arguments or none."""
    while isinstance(value, dict):
        inner = next((value[name] for name in _ARGUMENT_FIELDS if isinstance(value.get(name), (dict, str))), None)
        arguments = [item for name, item in value.items() if name not in _OTHER_FIELDS]
        value = arguments[0] if inner is None and len(arguments) == 1 else inner
    return value
