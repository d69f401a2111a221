"""Read chat completions, whole or in chunks, in the shapes in which endpoints of many makers send them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.errors import LLMError
from rlm.models.endpoint_errors import CallTarget, one_line
from rlm.models.listener import Listener
from rlm.models.lm import TokenDetails, read_details, sum_tokens
from rlm.models.reply_builder import ReplyBuilder, first_of, get, read_parts, read_thinking

_THINKING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
"""Fields that may hold thinking; an endpoint may send the same thinking in several."""
_CUT_NATIVE = ("length", "max_tokens", "max_output_tokens")
"""Reasons of a provider for which a router may send `stop` instead."""
_REPEATED_CHARACTERS = 20
"""A last chunk that repeats the whole reply counts as a repetition from this length on."""


def read_chunk(value: object, builder: ReplyBuilder, on_delta: Listener | None) -> None:
    """Take one chunk of a stream. Raises EndpointError for one that reports a failure."""
    builder.raise_failure(value)
    builder.usage = get(value, "usage") or get(value, "x_groq", "usage") or builder.usage
    builder.tier = get(value, "service_tier") or builder.tier
    _read_choice(value, builder, on_delta)


def read_answer(value: object, builder: ReplyBuilder, on_delta: Listener | None, target: CallTarget) -> None:
    """Take a whole chat completion. Raises EndpointError for a failure, LLMError for an answer without choices."""
    read_chunk(value, builder, on_delta)
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
    input_tokens, output_tokens = (sum_tokens(get(usage, f"{kind}_tokens")) for kind in kinds)
    into, out = (get(usage, f"{kind}_tokens_details") for kind in kinds)
    details = read_details(
        input_tokens,
        output_tokens,
        cache_read=get(into, "cached_tokens") or get(usage, "prompt_cache_hit_tokens"),
        cache_write=get(into, "cache_write_tokens"),
        reasoning=get(out, "reasoning_tokens"),
        tier=tier,
        endpoint=endpoint,
    )
    return input_tokens, output_tokens, details, get(usage, "cost")


def _choice(value: object) -> Any:
    """The choice with index 0, or without an index; None if there is none."""
    choices = get(value, "choices")
    if not isinstance(choices, list):
        return None
    return next((choice for choice in choices if get(choice, "index") in (0, None, "0")), None)


def _read_choice(value: object, builder: ReplyBuilder, on_delta: Listener | None) -> None:
    choice = _choice(value)
    builder.raise_failure(choice if get(choice, "error") else None)
    message = _message_of(choice, builder)
    text, thinking, refusal = read_parts(message.get("content"))
    if get(message, "extra_content", "google", "thought") is True:
        text, thinking = "", text
    if text and builder.text and "delta" not in choice:  # some send the whole so far, others one piece each
        text = text.removeprefix("".join(builder.text))
    elif len(builder.text) > 1 and _finish(choice):
        text = _without_repeated(text, "".join(builder.text))
    thinking = thinking or next((found for name in _THINKING if (found := read_thinking(message.get(name)))), "")
    builder.add_thinking(thinking, on_delta)
    builder.add_text(text or get(choice, "text"), on_delta)
    builder.refusal += [found for found in (refusal, message.get("refusal")) if isinstance(found, str) and found]
    calls, call = message.get("tool_calls"), message.get("function_call")
    if calls or call:
        builder.add_tool_call(get(first_of(calls), "function", "name") or get(call, "name"))
    native = get(choice, "native_finish_reason")
    is_cut = isinstance(native, str) and native.lower() in _CUT_NATIVE
    builder.set_end(native if is_cut else _finish(choice))
    filtered = get(choice, "content_filter_results")
    if isinstance(filtered, dict) and isinstance(filtered.get("error"), dict):
        builder.end_details = one_line(get(filtered, "error", "message") or "")


def _finish(choice: Any) -> Any:
    """Why the reply ended, also by Google's name."""
    return get(choice, "finish_reason") or get(choice, "finishReason")


def _message_of(choice: Any, builder: ReplyBuilder) -> Mapping[str, Any]:
    """The `delta` of a choice, else its `message`; empty for a last chunk that repeats the whole message."""
    message = get(choice, "delta")
    if not message and not (builder.text and isinstance(choice, dict) and "delta" in choice):
        message = get(choice, "message")
    if isinstance(message, str):
        return {"content": message}
    return message if isinstance(message, dict) else {}


def _without_repeated(text: str, before: str) -> str:
    """The text of a last chunk, which some endpoints fill with the whole reply once more."""
    stripped = text.strip()
    return "" if len(stripped) >= _REPEATED_CHARACTERS and stripped == before.strip() else text
