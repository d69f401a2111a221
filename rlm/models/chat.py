"""Read chat completions, whole or in chunks, in the shapes in which endpoints of many makers send them. Pure."""

from __future__ import annotations

from typing import Any

from rlm.errors import LLMError
from rlm.models.heard import Heard, first_of, get, read_parts, read_thinking
from rlm.models.listener import Listener
from rlm.models.lm import TokenDetails, read_details, sum_tokens
from rlm.models.statement import Asked, one_line

_THINKING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
"""Names of fields for thinking, of which an endpoint may send several with the same words."""
_CUT_NATIVE = ("length", "max_tokens", "max_output_tokens")
"""The provider's own reasons, of which a router may make `stop`."""
_REPEATED_CHARACTERS = 20
"""Shortest text that its last chunk repeats as a whole: shorter ones may be meant."""


def read_chunk(value: object, heard: Heard, on_delta: Listener | None) -> None:
    """Take one chunk of a stream. Raises Failed for one that reports a failure."""
    heard.check(value)
    heard.usage = get(value, "usage") or heard.usage
    heard.tier = get(value, "service_tier") or heard.tier
    _read_choice(value, heard, on_delta)


def read_answer(value: object, heard: Heard, on_delta: Listener | None, asked: Asked) -> None:
    """Take a whole chat completion. Raises Failed for a failure, LLMError for an answer without choices."""
    read_chunk(value, heard, on_delta)
    blocked = get(value, "promptFeedback", "blockReason") or get(value, "prompt_feedback", "block_reason")
    if blocked:
        heard.end(f"content_filter: {blocked}")
    elif not isinstance(_choice(value), dict):
        raise LLMError(f"{asked}: an answer without choices: {one_line(value)[:120]}")


def count_usage(
    usage: Any, tier: object, endpoint: object, kinds: tuple[str, str] = ("prompt", "completion")
) -> tuple[int, int, TokenDetails, Any]:
    """Tokens in and out, details and dollars; `kinds`: the endpoint's words for in and out. OpenRouter reports the
    dollars too, DeepSeek its cache by a name of its own."""
    read, written = (sum_tokens(get(usage, f"{kind}_tokens")) for kind in kinds)
    into, out = (get(usage, f"{kind}_tokens_details") for kind in kinds)
    details = read_details(
        read,
        written,
        cache_read=get(into, "cached_tokens") or get(usage, "prompt_cache_hit_tokens"),
        cache_write=get(into, "cache_write_tokens"),
        reasoning=get(out, "reasoning_tokens"),
        tier=tier,
        endpoint=endpoint,
    )
    return read, written, details, get(usage, "cost")


def _choice(value: object) -> Any:
    """The first of the choices."""
    choices = get(value, "choices")
    return (
        next((one for one in choices if get(one, "index") in (0, None, "0")), None)
        if isinstance(choices, list)
        else None
    )


def _read_choice(value: object, heard: Heard, on_delta: Listener | None) -> None:
    choice = _choice(value)
    heard.check(choice if get(choice, "error") else None)
    message, has_delta = get(choice, "delta"), isinstance(choice, dict) and "delta" in choice
    if not message and not (heard.text and has_delta):  # else some repeat the whole message in their last chunk
        message = get(choice, "message")
    if not isinstance(message, dict):
        message = {"content": message} if isinstance(message, str) else {}
    text, thinking, refusal = read_parts(message.get("content"))
    if get(message, "extra_content", "google", "thought") is True:
        text, thinking = "", text
    if text and heard.text and not has_delta:  # some send the whole so far, others one piece each
        text = text.removeprefix("".join(heard.text))
    elif len(heard.text) > 1 and get(choice, "finish_reason"):
        text = _without_repeated(text, "".join(heard.text))
    thinking = thinking or next((said for name in _THINKING if (said := read_thinking(message.get(name)))), "")
    heard.think(thinking, on_delta)
    heard.write(text or get(choice, "text"), on_delta)
    refusals = (refusal, message.get("refusal"))
    heard.refusal += [said for said in refusals if isinstance(said, str) and said]
    calls, call = message.get("tool_calls"), message.get("function_call")
    if calls or call:
        heard.call(get(first_of(calls), "function", "name") or get(call, "name"))
    native = get(choice, "native_finish_reason")
    heard.end(native if isinstance(native, str) and native.lower() in _CUT_NATIVE else get(choice, "finish_reason"))
    filtered = get(choice, "content_filter_results")
    if isinstance(filtered, dict) and isinstance(filtered.get("error"), dict):
        heard.said = one_line(get(filtered, "error", "message") or "")


def _without_repeated(text: str, before: str) -> str:
    """The text of a last chunk, which some endpoints fill with the whole reply once more."""
    said = text.strip()
    return "" if len(said) >= _REPEATED_CHARACTERS and said == before.strip() else text
