"""Find the field of a request that an endpoint refuses, so that the request may be sent without it. Pure."""

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
_SPOKEN = {
    "reasoning_effort": r"reasoning[_. ]effort|effort", "reasoning": r"reasoning(?:\.effort)?|effort",
    "output_config": "output_config|effort", "stop": r"stop(?: (?:words|sequences?))?",
    "stop_sequences": r"stop[_ ]sequences?", "stream_options": "stream_options|include_usage",
}  # fmt: skip
RENAMED = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}
"""Another name under which to send a refused field."""

_REFUSAL = re.compile(
    r"unsupported|can(?:not|'t) stream|no stream|not (?:currently )?support|(?:n't|not) support|unrecogni[sz]ed"
    r"|unknown|unexpected|not permitted"
    r"|not allowed|not available|not accept|only the default|only supports?|deprecated|not compatible|incompatible"
    r"|cannot (?:both )?be (?:used|specified|set)|can't be used|must (?:be|use) (?:set to |the default|1\b|false"
    r"|omitted|unset|verified)|may only be set|no such (?:field|parameter)|invalid (?:argument|field|parameter)"
    r"|extra (?:inputs|fields?)|only .{0,30}(?:is|are) (?:allowed|supported)"
    r"|disabled|is not enabled|not implemented|verif\w+ your organization|remove|use '?max",
    re.IGNORECASE,
)
_STREAM = re.compile(
    r"\bstream(?:ing|ed)?\b(?! ?(?:was|were|is closed|closed|ended|error|read|reset|timed))", re.IGNORECASE
)
_OUT_OF_RANGE = re.compile(
    r"out of range|between|less than or equal|greater than or equal|must be [<>]|at most|at least|\b[<>]=? ?-?\d",
    re.IGNORECASE,
)


def find_refused(report: ErrorReport, sent: Iterable[str]) -> str | None:
    """The sent field that the endpoint refuses; None if the failure has another cause. A value out of range is another
    cause: the caller must correct it."""
    names = [name for name in sent if name in DROPPABLE]
    named = report.param.split(".")[0].split("[")[0]
    refuses = _REFUSAL.search(report.message) is not None
    if "stream_options" in names and "stream_options" in report.message:
        return "stream_options"
    if not refuses and not any(item in report.code for item in ("unsupported_parameter", "unsupported_value")):
        return None
    if _OUT_OF_RANGE.search(report.message) and not re.search("unsupported|not support|only", report.message, re.I):
        return None
    if named in names:
        return named
    # The first one named counts: a later one may be the advised replacement, such as `max_completion_tokens`.
    results = []
    for name in names:
        word = rf"(?<!\w)(?:{_SPOKEN.get(name, re.escape(name))})(?!\w)"
        if name != "stream" and (match := re.search(word, report.message, re.IGNORECASE)):
            results.append((match.start(), name))
    if results:
        return min(results)[1]
    return "stream" if "stream" in names and _STREAM.search(report.message) else None
