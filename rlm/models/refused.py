"""Find the field of a request that an endpoint refuses, so that the request may be sent without it. Does no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rlm.models.endpoint_errors import ErrorReport

_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
DROPPABLE = frozenset((
    "temperature", "top_p", "top_k", "min_p", "reasoning_effort", "reasoning", "output_config", "thinking", "stop",
    "stop_sequences", "seed", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "logprobs",
    "stream_options", "stream", "store", *_LIMITS,
))  # fmt: skip
"""Fields that may be left out of a request that is refused. For any other field the caller gets the refusal."""

# How messages refer to fields; other fields are called by their names.
_NAME_PATTERNS = {
    "reasoning_effort": r"reasoning[_. ]effort|effort", "reasoning": r"reasoning(?:\.effort)?|effort",
    "output_config": "output_config|effort", "stop": r"stop(?: (?:words|sequences?))?",
    "stop_sequences": r"stop[_ ]sequences?", "stream_options": "stream_options|include_usage",
}  # fmt: skip
RENAMED = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}  # other names of refused ones

_REFUSAL = re.compile(
    # The field is not known or not supported:
    r"unsupported|(?:n't|not) support|not (?:currently )?support|unrecogni[sz]ed|unknown|unexpected|not implemented"
    r"|no such (?:field|parameter)|invalid (?:argument|field|parameter)|extra (?:inputs|fields?)|deprecated|remove"
    r"|use '?max"
    # This model or account may not use it:
    r"|can(?:not|'t) stream|no stream|not permitted|not allowed|not available|not accept|disabled|is not enabled"
    r"|verif\w+ your organization"
    # Only the default, or one value, is supported:
    r"|only the default|only supports?|only .{0,30}(?:is|are) (?:allowed|supported)|may only be set"
    r"|must (?:be|use) (?:set to |the default|1\b|false|omitted|unset|verified)"
    # It does not go with another field:
    r"|not compatible|incompatible|cannot (?:both )?be (?:used|specified|set)|can't be used",
    re.IGNORECASE,
)
_STREAM = re.compile(
    r"\bstream(?:ing|ed)?\b(?! ?(?:was|were|is closed|closed|ended|error|read|reset|timed))", re.IGNORECASE
)
_OUT_OF_RANGE = re.compile(
    r"out of range|between|less than or equal|greater than or equal|must be [<>]|at most|at least|\b[<>]=? ?-?\d",
    re.IGNORECASE,
)
_BROAD_REFUSAL = re.compile("unsupported|not support|only", re.IGNORECASE)
"""Words of a refusal also where `_OUT_OF_RANGE` matches: "only 1 is supported" sounds like a range."""


def find_refused(report: ErrorReport, sent: Iterable[str]) -> str | None:
    """The field of `sent` that an endpoint refuses, by its report; None for other failures, such as a bad value."""
    names = [name for name in sent if name in DROPPABLE]
    # Any failure that names it counts, however worded: a reply without it lacks nothing but its counts of tokens.
    if "stream_options" in names and "stream_options" in report.message:
        return "stream_options"
    if not _is_refusal(report):
        return None
    parameter = report.param.split(".")[0].split("[")[0]
    return parameter if parameter in names else _first_named(names, report.message)


def _is_refusal(report: ErrorReport) -> bool:
    """Whether a field is refused, rather than its value: the caller must correct a value that is out of range."""
    has_code = "unsupported_parameter" in report.code or "unsupported_value" in report.code
    if not has_code and not _REFUSAL.search(report.message):
        return False
    return not _OUT_OF_RANGE.search(report.message) or _BROAD_REFUSAL.search(report.message) is not None


def _first_named(names: Iterable[str], message: str) -> str | None:
    """The field named first: a later one may be the advised replacement, such as `max_completion_tokens`."""
    positions = []
    for name in names:
        pattern = _NAME_PATTERNS.get(name, re.escape(name))
        match = re.search(rf"(?<!\w)(?:{pattern})(?!\w)", message, re.IGNORECASE)
        if match and name != "stream":  # often a part of other words, so it only counts if nothing else is named
            positions.append((match.start(), name))
    if positions:
        return min(positions)[1]
    return "stream" if "stream" in names and _STREAM.search(message) else None
