"""Check and describe custom tools: functions and values that the caller adds to the namespace."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping

from rlm.context.description import describe
from rlm.context.lazy import is_lazy

RESERVED = frozenset(
    ("context", "answer", "FINAL", "FINAL_VAR", "SUBMIT", "SHOW_VARS", "LLMError", "llm_query", "llm_query_batched",
     "rlm_query", "rlm_query_batched", "history", "__builtins__", "__name__")
)  # fmt: skip
"""Names that every run defines."""


def describe_tools(custom: Mapping[str, object] | None) -> tuple[dict[str, object], tuple[str, ...]]:
    """The custom tools by name, and a line on each that describes it to the model. A value is the object itself or, as
    in rlms, `{"tool": object, "description": str}`. Raises ValueError for a name that is reserved or is not a
    Python name, TypeError for anything but a mapping."""
    if custom is not None and not isinstance(custom, Mapping):
        raise TypeError(f"custom_tools must be a dict, {{name: function or value}}, not {type(custom).__name__}")
    tools: dict[str, object] = {}
    lines: list[str] = []
    for name, tool in (custom or {}).items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"the name of a custom tool must be a Python identifier, not {name!r}")
        if name in RESERVED:
            raise ValueError(f"the name {name!r} of a custom tool is reserved: choose another name")
        description = ""
        if isinstance(tool, Mapping) and "tool" in tool and set(tool) <= {"tool", "description"}:
            description = str(tool.get("description") or "")
            tool = tool["tool"]
        tools[name] = tool
        lines.append(_describe_tool(name, tool, description))
    return tools, tuple(lines)


def _describe_tool(name: str, tool: object, description: str) -> str:
    if callable(tool):
        try:
            signature = str(inspect.signature(tool))
        except (TypeError, ValueError):
            signature = "(...)"
        summary = description or (inspect.getdoc(tool) or "").split("\n\n")[0]
        return f"`{name}{signature}`: {' '.join(summary.split())}".rstrip(": ")
    described = describe(tool).sentence if is_lazy(tool) else f"a {type(tool).__name__}"
    return f"`{name}`, {described}{f': {description}' if description else ''}"
