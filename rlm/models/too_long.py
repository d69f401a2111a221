"""Recognise that a prompt does not fit into the window of a model, in the words of many providers. Does no I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

_CODES = (
    "context_length_exceeded", "exceed_context_size", "context_window_exceeded", "context_length_error",
    "max_prompt_tokens_exceeded", "string_above_max_length", "tokens_limit_reached", "request_too_large",
    "input_too_long", "prompt_too_long", "max_message_tokens_exceeded",
)  # fmt: skip
"""Parts of the codes that providers give such an error."""
_OTHER_STATUSES = (401, 404, 408, 429, 503, 529)  # of errors that are never about the length of the prompt
_MOST_TOKENS = 10**9  # no prompt has as many; a larger number is something else, such as a time

# "The INPUT (10000 tokens) IS LONGER THAN the model's CONTEXT LENGTH": what is too long, how it says so, and for what.
_TEXT = r"(?:prompts?|inputs?|messages?|requests?|text|body|conversation|tokens?|content|string|length|it)"
_OVER = (
    r"(?:too (?:long|large|big|many)|exceed\w*|overflow\w*|longer than|larger than|greater than|more than|above"
    r"|over|surpass\w*|beyond|reached|does not fit|doesn't fit|not enough|must have less than|should not exceed)"
)
# "n_ctx", "context window", "maximum number of tokens"; not "maximum tokens to generate", which is of the reply
_WINDOW = (
    r"(?:(?:context|sequence|model|seq|input|prompt)[ _-]*(?:length|window|size|limit|len)|n_ctx|max_seq_len"
    r"|max_model_len|(?:max\w*|limit)[^.]{0,30}?(?:context|tokens?\b(?! to generate)|prompt|input)|token limit)"
)
_TOO_LONG_WORDS = (
    rf"maximum (?:context|prompt|input|model|sequence) length"  # "maximum context length is 8192 tokens"
    rf"|maximum (?:number of )?(?:input )?tokens allowed"  # "the maximum number of tokens allowed"
    # "prompt is too long: 210000 tokens > 200000 maximum"
    rf"|(?:prompt|input|request|messages?|conversation|inputs|context)\b[^.]{{0,60}}?\btoo (?:long|large|big)\b"
    # "the input length exceeds the context length", "requested tokens exceed the limit of 8,192"
    rf"|{_TEXT}\b.{{0,80}}?{_OVER}.{{0,60}}?(?:{_WINDOW}|limit of [\d,]{{3}}|[\d,]{{3}} tokens)"
    rf"|{_WINDOW}.{{0,40}}?(?:\bis\b |has been |was )?{_OVER}"  # "context window is exceeded"
    rf"|reached (?:the )?context (?:length|window)"
    rf"|context the overflows"  # LM Studio writes "when context the overflows"
    rf"|reduce (?:the|your) (?:length|size|prompt|input|message)"  # "please reduce the length of the messages"
    rf"|range of input length"  # "range of input length should be [1, 30720]"
    rf"|prompt exceeds|exceeded model token limit"
    rf"|too many tokens: |extra usage is required for long context"
)
_OTHER_LIMITS = (  # "tokens per minute", "max_tokens is too large" (for the reply), "stop sequence too long"
    r"too many tokens,? (?:please )?wait|per (?:minute|day|hour|second)|rate limit|quota"
    r"|\bmax_(?:completion_|output_|new_)?tokens\b\W*(?:\w+ ){0,3}?(?:is too|must be|exceeds|cannot|should|greater"
    r"|larger|above|:)|completion tokens,? whereas|\bstop\b.{0,20}too"
)
_CERTAIN_WORDS = r"request too large|input or output tokens must be reduced|tokens\W*\+\W*max_new_tokens"
"""Messages about the prompt that also match `_OTHER_LIMITS`, such as a request larger than the tokens of a minute."""

_NUMBER = r"(\d{1,3}(?:[,_]\d{3})+|\d+)"  # "8192", "8,192", "8_192"
_WINDOW_NUMBERS = (  # how many tokens fit; the first that is found counts
    rf"(?:>|<=|less than|\[\d+, ?)\s*{_NUMBER}",  # "> 200000", "[1, 30720]"
    rf"{_NUMBER} (?:token )?(?:maximum|max)\b",  # "200000 maximum"
    # "maximum context length is 8,192", "limit of 272000 tokens", "exceeds 4096"
    r"(?:maximum (?:context|prompt|input|model|allowed)[^\d]{0,40}|context (?:length|window|size)[^\d]{0,40}"
    r"|maximum[^\d]{0,60}|max_seq_len[^\d]{0,9}|max_model_len[^\d]{0,9}|limit[^\d]{0,30}|max size[^\d]{0,9}"
    rf"|exceed\w*[^\d]{{0,9}}){_NUMBER}",
)
_COUNT = rf"(?<![\w.\-]){_NUMBER}(?![\w.]*\w)"  # "8,192"; not a part of a name, such as "gpt-5.4"
_SUM = rf"{_NUMBER} \+ {_NUMBER} > "  # "3000 + 2000 > 4096": tokens of the prompt and of the reply, and the window
_MOST_DIGITS = 12  # that are read of a number, so that an absurd one cannot overflow a float


class PromptSizes(NamedTuple):
    """The sizes in tokens that an error about a prompt reports; None for a size that it does not report."""

    tokens: int | None  # of the prompt
    window_tokens: int | None  # of the model's window


def read_too_long(message: str, code: str, status: int | None) -> PromptSizes | None:
    """The sizes that an error reports if it says that a prompt is too long; None for other errors. `code`: as in an
    `ErrorReport`. The prompt's size is the largest number above the window: others are of a part, or of the reply."""
    if not any(part in code for part in _CODES) and not _find(_CERTAIN_WORDS, message):
        is_other_limit = status in _OTHER_STATUSES or _find(_OTHER_LIMITS, message)
        if is_other_limit or not _find(_TOO_LONG_WORDS, message):
            return None
    found = filter(None, (_find(pattern, message) for pattern in _WINDOW_NUMBERS))
    window_tokens = next((_to_int(match[1]) for match in found), None)
    counts = [_to_int(match[1]) for match in re.finditer(_COUNT, message)]
    if terms := re.search(_SUM, message):
        counts.append(_to_int(terms[1]) + _to_int(terms[2]))
    larger = [count for count in counts if window_tokens is not None and window_tokens < count < _MOST_TOKENS]
    return PromptSizes(max(larger, default=None), window_tokens)


def _find(pattern: str, message: str) -> re.Match[str] | None:
    """Search without regard to case. Compiles at the first use: it takes 20 ms, and most programs see no such error."""
    return re.search(pattern, message, re.IGNORECASE | re.DOTALL)


def _to_int(digits: str) -> int:
    return int(re.sub("[,_]", "", digits)[:_MOST_DIGITS])
