"""Find the fields that an endpoint refuses in its errors, and leave them out of requests. Does no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.models.endpoint_errors import CallTarget, ErrorReport

_OPTIONAL = frozenset((
    "temperature", "top_p", "top_k", "min_p", "reasoning_effort", "reasoning", "output_config", "thinking", "stop",
    "stop_sequences", "seed", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "logprobs",
    "stream_options", "stream", "store", "max_completion_tokens", "max_tokens", "max_output_tokens",
))  # fmt: skip
"""Fields that may be left out of a request. If an endpoint refuses another field, the caller gets the error."""
_OTHER_NAMES = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}
"""The name under which a refused field is sent before it is left out."""

# How messages refer to fields; other fields are called by their names.
_NAME_PATTERNS = {
    "reasoning_effort": r"reasoning[_. ]effort|effort", "reasoning": r"reasoning(?:\.effort)?|effort",
    "output_config": "output_config|effort", "stop": r"stop(?: (?:words|sequences?))?",
    "stop_sequences": r"stop[_ ]sequences?", "stream_options": "stream_options|include_usage",
}  # fmt: skip

_REFUSAL = re.compile(
    # "Unsupported parameter: 'top_k'", "this model does not support temperature", "Extra inputs are not permitted"
    r"unsupported|(?:n't|not) support|not (?:currently )?support|unrecogni[sz]ed|unknown|unexpected|not implemented"
    r"|no such (?:field|parameter)|invalid (?:argument|field|parameter)|extra (?:inputs|fields?)|deprecated|remove"
    r"|use '?max"
    # "reasoning_effort is not available on your plan", "you must verify your organization to stream this model"
    r"|can(?:not|'t) stream|no stream|not permitted|not allowed|not available|not accept|disabled|is not enabled"
    r"|verif\w+ your organization"
    # "Only the default (1) value is supported", "temperature may only be set to 1", "top_p must be omitted"
    r"|only the default|only supports?|only .{0,30}(?:is|are) (?:allowed|supported)|may only be set"
    r"|must (?:be|use) (?:set to |the default|1\b|false|omitted|unset|verified)"
    # "temperature is not compatible with thinking", "`temperature` and `top_p` cannot both be specified"
    r"|not compatible|incompatible|cannot (?:both )?be (?:used|specified|set)|can't be used",
    re.IGNORECASE,
)
"""Words that refuse a field, as in the comments; not "temperature: 3 is too high", which refuses its value."""
_STREAM = re.compile(
    r"\bstream(?:ing|ed)?\b(?! ?(?:was|were|is closed|closed|ended|error|read|reset|timed))", re.IGNORECASE
)
"""The field `stream`, as in "streaming is not supported", but not in "the stream was closed"."""
_OUT_OF_RANGE = re.compile(
    r"out of range|between|less than or equal|greater than or equal|must be [<>]|at most|at least|\b[<>]=? ?-?\d",
    re.IGNORECASE,
)
"""Words about a value that is out of range, such as "temperature must be between 0 and 2"."""
_BROAD_REFUSAL = re.compile("unsupported|not support|only", re.IGNORECASE)
"""Words that refuse a field even if `_OUT_OF_RANGE` matches: "unsupported value: at most 1 with this model"."""


@dataclass(slots=True)
class FieldFilter:
    """The optional fields of one request, without those that its endpoint refuses."""

    refused: dict[str, str | None]  # refused field -> the name under which it is sent; None if it is left out
    sent: set[str] = field(default_factory=set)  # the names of the fields that `accept` let through

    def accept(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that may be sent, by the names that the endpoint takes."""
        accepted: dict[str, Any] = {}
        for name, value in fields.items():
            sent_name: str | None = name
            while sent_name is not None and sent_name in self.refused:
                sent_name = self.refused[sent_name]
            if sent_name is not None:
                accepted.setdefault(sent_name, value)
        self.sent.update(accepted)
        return accepted

    def learn(self, report: ErrorReport, required: frozenset[str]) -> bool:
        """Find the field that a failure refuses, and rename it or leave it out from now on. Returns False if there is
        no such field, or if it is one of `required`, which no request may lack."""
        name = _find_refused(report, self.sent)
        if name is None or name in required:
            return False
        other = _OTHER_NAMES.get(name)
        self.refused[name] = None if other in self.refused or other in self.sent else other
        return True

    def notes(self, target: CallTarget) -> list[str]:
        """A sentence on each refused field, for the notes of a run."""
        changes = {name: f"sent as {other}" if other else "left out" for name, other in self.refused.items()}
        return [f"{target} refuses {name}: {change}" for name, change in changes.items()]


def _find_refused(report: ErrorReport, sent: Iterable[str]) -> str | None:
    """The field of `sent` that an endpoint refuses, by its report; None for other failures, such as a bad value."""
    names = [name for name in sent if name in _OPTIONAL]
    # Any failure that names it counts, however worded: a reply without it lacks nothing but its counts of tokens.
    if "stream_options" in names and "stream_options" in report.message:
        return "stream_options"
    has_code = "unsupported_parameter" in report.code or "unsupported_value" in report.code
    if not has_code and not _REFUSAL.search(report.message):
        return None
    if _OUT_OF_RANGE.search(report.message) and not _BROAD_REFUSAL.search(report.message):
        return None  # the value is refused, which the caller must correct
    parameter = report.param.split(".")[0].split("[")[0]  # "messages" of "messages[0].role"
    return parameter if parameter in names else _first_named(names, report.message)


def _first_named(names: Iterable[str], message: str) -> str | None:
    """The field that the message names first, since a later one may be its replacement; None if there is none."""
    positions = []
    for name in names:
        pattern = _NAME_PATTERNS.get(name, re.escape(name))
        match = re.search(rf"(?<!\w)(?:{pattern})(?!\w)", message, re.IGNORECASE)
        if match and name != "stream":  # often a part of other words, so it only counts if nothing else is named
            positions.append((match.start(), name))
    if positions:
        return min(positions)[1]
    return "stream" if "stream" in names and _STREAM.search(message) else None
