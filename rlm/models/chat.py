"""Read chat completions, whole or in chunks, in the shapes in which endpoints of many providers send them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.errors import LLMError
from rlm.models.endpoint_errors import CallTarget, get, one_line
from rlm.models.lm import TokenDetails, read_details, sum_tokens
from rlm.models.reply_builder import ReplyBuilder, read_parts, read_thinking

_THINKING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
"""Fields that may hold thinking; an endpoint may send the same thinking in several."""
_CUT_NATIVE = ("length", "max_tokens", "max_output_tokens")
"""Reasons of a provider for which a router may send `stop` instead."""
_ENDS = ("finish_reason", "finishReason", "stop_reason", "stopReason")
"""Fields with the reason why a reply ended. The first counts: vLLM writes the text that matched into another."""
_REPEATED_CHARACTERS = 20  # a last chunk that repeats the whole reply counts as a repetition from this length on


def read_chunk(value: object, builder: ReplyBuilder) -> None:
    """Take one chunk of a stream. Raises EndpointError for one that reports a failure."""
    builder.raise_failure(value)
    if not isinstance(value, dict):
        return
    builder.usage = value.get("usage") or ("x_groq" in value and get(value, "x_groq", "usage")) or builder.usage
    builder.tier = value.get("service_tier") or builder.tier
    choice = _choice(value)
    if isinstance(choice, dict):
        _read_choice(choice, builder)


def read_answer(value: object, builder: ReplyBuilder, target: CallTarget) -> None:
    """Take a whole chat completion. Raises EndpointError for a failure, LLMError for an answer without choices."""
    read_chunk(value, builder)
    blocked = get(value, "promptFeedback", "blockReason") or get(value, "prompt_feedback", "block_reason")
    if blocked:
        builder.set_end(f"content_filter: {blocked}")
    elif not isinstance(_choice(value), dict):
        raise LLMError(f"{target}: the answer has no `choices` (is base_url right?): {one_line(value)[:120]}")


def count_usage(
    usage: Any, tier: object, endpoint: object, kinds: tuple[str, str] = ("prompt", "completion")
) -> tuple[int, int, TokenDetails, Any]:
    """Input tokens, output tokens, details and reported dollars. `kinds` are the endpoint's words for input and output.

    Only OpenRouter reports dollars. DeepSeek has its own name for the tokens of its cache.
    """
    usage = usage if isinstance(usage, Mapping) else {}
    input_tokens, output_tokens = (sum_tokens(usage.get(f"{kind}_tokens")) for kind in kinds)
    into, out = usage.get(f"{kinds[0]}_tokens_details"), usage.get(f"{kinds[1]}_tokens_details")
    details = read_details(
        input_tokens, output_tokens, tier=tier, endpoint=endpoint,
        cache_read=get(into, "cached_tokens") or usage.get("prompt_cache_hit_tokens"),
        cache_write=get(into, "cache_write_tokens"), reasoning=get(out, "reasoning_tokens"),
    )  # fmt: skip
    return input_tokens, output_tokens, details, usage.get("cost")


def _choice(value: object) -> Any:
    """The choice with index 0, or without an index; None if there is none."""
    choices = value.get("choices") if isinstance(value, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict) or choice.get("index") in (0, None, "0"):
            return choice
    return None


def _read_choice(choice: dict[str, Any], builder: ReplyBuilder) -> None:
    if choice.get("error"):
        builder.raise_failure(choice)
    message = _message_of(choice, builder)
    text, thinking, refusal = read_parts(message.get("content"))
    if "extra_content" in message and get(message, "extra_content", "google", "thought") is True:
        text, thinking = "", text
    native, finish = choice.get("native_finish_reason"), next(filter(None, map(choice.get, _ENDS)), None)
    if text and builder.text and "delta" not in choice:  # some send the whole so far, others one piece each
        text = text.removeprefix("".join(builder.text))
    elif len(builder.text) > 1 and finish and len(text.strip()) >= _REPEATED_CHARACTERS:
        text = "" if text.strip() == "".join(builder.text).strip() else text  # some repeat the whole reply
    for name in _THINKING:
        if name in message and not thinking:
            thinking = read_thinking(message[name])
    builder.add_thinking(thinking)
    builder.add_text(text or choice.get("text"))
    builder.refusal += [result for result in (refusal, message.get("refusal")) if isinstance(result, str) and result]
    calls = message.get("tool_calls")
    if call := calls[0] if isinstance(calls, list) and calls else message.get("function_call"):
        function = get(call, "function") or call
        if not builder.tool:
            builder.add_tool_call(get(function, "name"), get(function, "arguments"))
        elif get(call, "index") in (0, None):
            builder.add_arguments(get(function, "arguments"))
    builder.set_end(native if isinstance(native, str) and native.lower() in _CUT_NATIVE else finish)
    filtered = choice.get("content_filter_results")
    if isinstance(filtered, dict) and isinstance(filtered.get("error"), dict):
        builder.end_details = one_line(get(filtered, "error", "message") or "")


def _message_of(choice: dict[str, Any], builder: ReplyBuilder) -> Mapping[str, Any]:
    """The `delta` of a choice, else its `message`; empty for a last chunk that repeats the whole message."""
    message = choice.get("delta")
    if not message and not (builder.text and "delta" in choice):
        message = choice.get("message")
    if isinstance(message, str):
        return {"content": message}
    return message if isinstance(message, dict) else {}
