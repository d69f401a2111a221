"""Read chat completions, whole or in chunks, in the shapes that endpoints of many providers send. Does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.errors import LLMError
from rlm.models.endpoint_errors import CallTarget, get, one_line
from rlm.models.lm import sum_tokens
from rlm.models.message_content import read_parts, read_thinking
from rlm.models.reply_builder import ReplyBuilder, ReportedUsage, raise_if_failed, read_details

_THINKING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
"""Fields that may hold thinking; an endpoint may send the same thinking in several."""
_NATIVE_LIMITS = ("length", "max_tokens", "max_output_tokens")  # reasons of a provider that a router may call `stop`
_END_FIELDS = ("finish_reason", "finishReason", "stop_reason", "stopReason")
"""Fields with the reason why a reply ended. The first that is set counts: vLLM writes matched text into others."""
_REPEATED_CHARACTERS = 20  # a last chunk that repeats the whole reply counts as a repetition from this length on


def read_event(value: object, builder: ReplyBuilder) -> None:
    """Add a chunk of a stream to the builder. Raises EndpointError if it reports a failure."""
    raise_if_failed(value)
    if not isinstance(value, dict):
        return
    builder.usage = value.get("usage") or get(value, "x_groq", "usage") or builder.usage
    builder.tier = value.get("service_tier") or builder.tier
    choice = _choice(value)
    if isinstance(choice, dict):
        _read_choice(choice, builder)


def read_answer(value: object, builder: ReplyBuilder, target: CallTarget) -> None:
    """Add a whole completion to the builder. Raises EndpointError for a failure, LLMError if there are no choices."""
    read_event(value, builder)
    blocked = get(value, "promptFeedback", "blockReason") or get(value, "prompt_feedback", "block_reason")
    if blocked:
        builder.set_end(f"content_filter: {blocked}")
    elif not isinstance(_choice(value), dict):
        raise LLMError(f"{target}: the answer has no `choices` (is base_url right?): {one_line(value)[:120]}")


def count_usage(
    usage: Any, tier: object, endpoint: object, kinds: tuple[str, str] = ("prompt", "completion")
) -> ReportedUsage:
    """The counts in the `usage` of a completion. `kinds`: the endpoint's words for input and output. Only OpenRouter
    reports dollars. DeepSeek has its own name for the tokens of its cache."""
    usage = usage if isinstance(usage, Mapping) else {}
    input_tokens, output_tokens = (sum_tokens(usage.get(f"{kind}_tokens")) for kind in kinds)
    input_details, output_details = (usage.get(f"{kind}_tokens_details") for kind in kinds)
    details = read_details(
        input_tokens, output_tokens, tier=tier, endpoint=endpoint,
        cache_read=get(input_details, "cached_tokens") or usage.get("prompt_cache_hit_tokens"),
        cache_write=get(input_details, "cache_write_tokens"), reasoning=get(output_details, "reasoning_tokens"),
    )  # fmt: skip
    return ReportedUsage(input_tokens, output_tokens, details, usage.get("cost"))


def _choice(value: object) -> Any:
    """The choice with index 0, or without an index; None if there is none."""
    choices = value.get("choices") if isinstance(value, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict) or choice.get("index") in (0, None, "0"):
            return choice
    return None


def _read_choice(choice: dict[str, Any], builder: ReplyBuilder) -> None:
    """Add the thinking, text and tool call of a choice to the builder, and the reason why it ended."""
    if choice.get("error"):
        raise_if_failed(choice)
    message = _message_of(choice, builder)
    text, thinking, refusal = read_parts(message.get("content"))
    if get(message, "extra_content", "google", "thought") is True:
        text, thinking = "", text
    for name in _THINKING_FIELDS:
        if name in message and not thinking:
            thinking = read_thinking(message[name])
    finish = next((choice[name] for name in _END_FIELDS if choice.get(name)), None)
    builder.add_thinking(thinking)
    builder.add_text(_new_part(text, choice, builder, is_last=finish is not None) or choice.get("text"))
    builder.refusal += [part for part in (refusal, message.get("refusal")) if isinstance(part, str) and part]
    _read_tool_call(message, builder)
    native = choice.get("native_finish_reason")
    builder.set_end(native if isinstance(native, str) and native.lower() in _NATIVE_LIMITS else finish)
    if details := get(choice, "content_filter_results", "error", "message"):
        builder.end_details = one_line(details)


def _new_part(text: str, choice: Mapping[str, Any], builder: ReplyBuilder, *, is_last: bool) -> str:
    """The part of a chunk's text that has not arrived before: some endpoints repeat what they have sent."""
    if not text or not builder.text:
        return text
    if "delta" not in choice:  # a message in each chunk: some send all of the text so far, others one piece each
        return text.removeprefix("".join(builder.text))
    is_long = is_last and len(builder.text) > 1 and len(text.strip()) >= _REPEATED_CHARACTERS
    return "" if is_long and text.strip() == "".join(builder.text).strip() else text


def _read_tool_call(message: Mapping[str, Any], builder: ReplyBuilder) -> None:
    """Take the first tool call of a message, or a piece of its arguments."""
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else message.get("function_call")
    if not call:
        return
    function = get(call, "function") or call
    if not builder.tool:
        builder.add_tool_call(get(function, "name"), get(function, "arguments"))
    elif get(call, "index") in (0, None):
        builder.add_arguments(get(function, "arguments"))


def _message_of(choice: dict[str, Any], builder: ReplyBuilder) -> Mapping[str, Any]:
    """The `delta` of a choice, else its `message`; empty for a last chunk that repeats the whole message."""
    message = choice.get("delta")
    if not message and not (builder.text and "delta" in choice):
        message = choice.get("message")
    if isinstance(message, str):
        return {"content": message}
    return message if isinstance(message, dict) else {}
