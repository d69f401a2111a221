"""Recognise that a prompt does not fit into the window of a model, in the words of many providers. Does no I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

_CODES = (
    "context_length_exceeded", "exceed_context_size", "context_window_exceeded", "context_length_error",
    "max_prompt_tokens_exceeded", "string_above_max_length", "tokens_limit_reached", "request_too_large",
    "input_too_long", "prompt_too_long", "max_message_tokens_exceeded",
)  # fmt: skip

_TEXT = r"(?:prompts?|inputs?|messages?|requests?|text|body|conversation|tokens?|content|string|length|it)"
_OVER = (
    r"(?:too (?:long|large|big|many)|exceed\w*|overflow\w*|longer than|larger than|greater than|more than|above"
    r"|over|surpass\w*|beyond|reached|does not fit|doesn't fit|not enough|must have less than|should not exceed)"
)
_WINDOW = (
    r"(?:(?:context|sequence|model|seq|input|prompt)[ _-]*(?:length|window|size|limit|len)|n_ctx|max_seq_len"
    r"|max_model_len|(?:max\w*|limit)[^.]{0,30}?(?:context|tokens?\b(?! to generate)|prompt|input)|token limit)"
)
_WORDS = (
    rf"maximum (?:context|prompt|input|model|sequence) length"  # "maximum context length is 8192 tokens"
    rf"|maximum (?:number of )?(?:input )?tokens allowed"
    # "prompt is too long: 210000 tokens > 200000 maximum"
    rf"|(?:prompt|input|request|messages?|conversation|inputs|context)\b[^.]{{0,60}}?\btoo (?:long|large|big)\b"
    # "the input length exceeds the context length", "requested tokens exceed the limit of 8,192"
    rf"|{_TEXT}\b.{{0,80}}?{_OVER}.{{0,60}}?(?:{_WINDOW}|limit of [\d,]{{3}}|[\d,]{{3}} tokens)"
    rf"|{_WINDOW}.{{0,40}}?(?:\bis\b |has been |was )?{_OVER}"  # "context window is exceeded"
    rf"|reached (?:the )?context (?:length|window)|context the overflows"
    rf"|reduce (?:the|your) (?:length|size|prompt|input|message)"  # "please reduce the length of the messages"
    rf"|range of input length|prompt exceeds|exceeded model token limit"  # "range of input length should be [1, 30720]"
    rf"|too many tokens: |extra usage is required for long context"
)
# Other limits: "tokens per minute", "max_tokens is too large" for the reply, "stop sequence too long".
_OTHER_LIMITS = (
    r"too many tokens,? (?:please )?wait|per (?:minute|day|hour|second)|rate limit|quota"
    r"|\bmax_(?:completion_|output_|new_)?tokens\b\W*(?:\w+ ){0,3}?(?:is too|must be|exceeds|cannot|should|greater"
    r"|larger|above|:)|completion tokens,? whereas|\bstop\b.{0,20}too"
)
_CERTAIN_WORDS = r"request too large|input or output tokens must be reduced|tokens\W*\+\W*max_new_tokens"
"""Messages about the prompt that also match `_OTHER_LIMITS`, such as a request larger than the tokens of a minute."""

_NUMBER = r"(\d{1,3}(?:[,_]\d{3})+|\d+)"
_LIMITS = (  # how many tokens fit: "> 200000", "200000 maximum", "maximum context length is 8,192"
    rf"(?:>|<=|less than|\[\d+, ?)\s*{_NUMBER}",
    rf"{_NUMBER} (?:token )?(?:maximum|max)\b",
    r"(?:maximum (?:context|prompt|input|model|allowed)[^\d]{0,40}|context (?:length|window|size)[^\d]{0,40}"
    r"|maximum[^\d]{0,60}|max_seq_len[^\d]{0,9}|max_model_len[^\d]{0,9}|limit[^\d]{0,30}|max size[^\d]{0,9}"
    rf"|exceed\w*[^\d]{{0,9}}){_NUMBER}",
)
_COUNT = rf"(?<![\w.\-]){_NUMBER}(?![\w.]*\w)"  # "8,192"; not a part of a name, such as "gpt-5.4"
_SUM = rf"{_NUMBER} \+ {_NUMBER} > "  # tokens of the prompt and of the reply, above a limit


class PromptSizes(NamedTuple):
    """The sizes in tokens that an error about a prompt reports; None for a size that it does not report."""

    tokens: int | None  # of the prompt
    window_tokens: int | None  # of the model's window


def read_too_long(message: str, code: str, status: int | None) -> PromptSizes | None:
    """The sizes that an error reports if it says that a prompt is too long; None for other errors."""
    if not any(item in code for item in _CODES) and not _find(_CERTAIN_WORDS, message):
        is_other = status in (401, 404, 408, 429, 503, 529) or _find(_OTHER_LIMITS, message)
        if is_other or not _find(_WORDS, message):
            return None
    window = next((_to_int(number[1]) for item in _LIMITS if (number := _find(item, message))), None)
    counts = [_to_int(match[1]) for match in re.finditer(_COUNT, message)]
    if terms := re.search(_SUM, message):
        counts.append(_to_int(terms[1]) + _to_int(terms[2]))
    above = [count for count in counts if window is not None and window < count < 10**9]
    return PromptSizes(max(above, default=None), window)


def _find(pattern: str, message: str) -> re.Match[str] | None:
    """Search without compiling ahead: the patterns take 20 ms, and most programs never see such an error."""
    return re.search(pattern, message, re.IGNORECASE | re.DOTALL)


def _to_int(digits: str) -> int:
    return int(re.sub("[,_]", "", digits)[:12])
