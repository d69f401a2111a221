"""Further names for the namespace, as the caller gives them: functions for the model to call, values to use."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping

RESERVED = frozenset(
    ("context", "answer", "FINAL", "FINAL_VAR", "SUBMIT", "SHOW_VARS", "LLMError", "llm_query", "llm_query_batched",
     "rlm_query", "rlm_query_batched", "history", "__builtins__", "__name__")
)  # fmt: skip
"""Names that a run gives itself."""


def tools_and_lines(custom: Mapping[str, object] | None) -> tuple[dict[str, object], tuple[str, ...]]:
    """The names with their objects, and a line for each that tells the model of it.

    A value is the object itself or, as in rlms, `{"tool": object, "description": str}`. Raises ValueError for a name
    that is reserved or that no code can say.
    """
    tools: dict[str, object] = {}
    lines: list[str] = []
    for name, given in (custom or {}).items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"a custom tool needs a Python name, not {name!r}")
        if name in RESERVED:
            raise ValueError(f"the name {name!r} of a custom tool is reserved")
        described = isinstance(given, Mapping) and "tool" in given and set(given) <= {"tool", "description"}
        tool = given["tool"] if described and isinstance(given, Mapping) else given
        said = given.get("description") if described and isinstance(given, Mapping) else None
        tools[name] = tool
        lines.append(_line(name, tool, str(said) if said else None))
    return tools, tuple(lines)


def _line(name: str, tool: object, description: str | None) -> str:
    if callable(tool):
        try:
            signature = str(inspect.signature(tool))
        except (TypeError, ValueError):
            signature = "(...)"
        about = description or (inspect.getdoc(tool) or "").split("\n\n")[0]
        return f"`{name}{signature}`: {' '.join(about.split())}".rstrip(": ")
    return f"`{name}`, a {type(tool).__name__}{f': {description}' if description else ''}"
