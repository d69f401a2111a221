"""Options that a model sends with each request: temperature, effort, and whatever else its maker knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict

from rlm.errors import UnknownOption

Sampling = Mapping[str, Any]
"""Name -> value, as in the body of a request. The maker of the model knows the names: it refuses unknown ones."""
_OURS = frozenset(("model", "messages", "input", "stream", "system"))
"""Fields that the backend itself writes."""


class SamplingOptions(TypedDict, total=False):
    """Options that most makers know."""

    temperature: float | None
    top_p: float | None
    reasoning_effort: str | None
    """How much a model thinks, such as `low`."""
    max_completion_tokens: int | None
    """The most tokens of a reply, thinking included."""


def check_body(options: Sampling) -> dict[str, Any]:
    """A copy of the options. Raises UnknownOption for a field that is ours, or a value that is no JSON."""
    for name, value in options.items():
        if name in _OURS:
            raise UnknownOption(f"{name!r} cannot be set in sampling options: the run sets it itself")
        try:
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as exc:
            raise UnknownOption(f"the option {name}={value!r} cannot be sent: {exc}") from None
    return dict(options)
