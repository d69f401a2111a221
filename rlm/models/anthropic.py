"""Ask models of Anthropic through their SDK (extra `anthropic`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Unpack

from rlm.errors import LLMError, takes
from rlm.models.lm import Message, Reply, read_details, sum_tokens
from rlm.models.sdk import SDKModel, SDKOptions, client_options

_MARK = {"cache_control": {"type": "ephemeral"}}
"""What stands up to here is kept in the maker's cache for the next request with the same beginning."""


class AnthropicLM(SDKModel):
    """The messages API, always streamed. The SDK is imported at the first call.

    Without `api_key` the SDK reads ANTHROPIC_API_KEY itself. `max_output_tokens` limits a reply and the thinking before
    it: the API demands it. A conversation is marked for the maker's cache, so that a turn pays for what the turns
    before it did not hold; a single prompt is not.
    """

    backend = "anthropic"
    names: ClassVar[Mapping[str, str]] = {
        "reasoning_effort": "output_config.effort",
        "max_completion_tokens": "max_tokens",
        "stop": "stop_sequences",
    }
    window_tokens = 200_000
    """The window of the smaller models; others take more."""

    @takes(SDKOptions)
    def __init__(self, model: str, *, max_output_tokens: int = 16_384, **options: Unpack[SDKOptions]) -> None:
        super().__init__(model, partial(_connect, options.get("api_key"), client_options(options)), **options)
        self._max_output_tokens = max_output_tokens

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """One call. Raises LLMError, whose message is one line."""
        name = model or self.model
        request = {"model": name, "max_tokens": self._max_output_tokens, **_conversation(messages)}
        if fields := self._fields() | self._extra_body:
            request["extra_body"] = fields
        client = self._client.get()
        with self._convert_errors(name), client.messages.stream(**request) as stream:
            for piece in stream.text_stream:
                if on_delta:
                    on_delta(piece)
            answer = stream.get_final_message()
        text = "".join(block.text for block in answer.content if block.type == "text")
        return _reply(text, answer.usage, name, self._where)


def _conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields of a request. The API refuses empty messages, so they are left out.

    Each message is a list of one block, marked or not: an earlier message is the same bytes in each request.
    """
    system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    turns: list[dict[str, Any]] = [
        {"role": message["role"], "content": [{"type": "text", "text": message["content"]}]}
        for message in messages
        if message["role"] != "system" and message["content"].strip()
    ]
    fields: dict[str, Any] = {"messages": turns}
    if system:
        fields["system"] = [{"type": "text", "text": system}]
    if len(turns) > 1:
        for blocks in (fields.get("system"), turns[-1]["content"]):
            if blocks:
                blocks[-1] |= _MARK
    return fields


def _reply(text: str, usage: Any, model: str, endpoint: object) -> Reply:
    kept, found = (getattr(usage, f"cache_{kind}_input_tokens", None) for kind in ("creation", "read"))
    read = sum_tokens(getattr(usage, "input_tokens", None), kept or 0, found or 0)
    written = sum_tokens(getattr(usage, "output_tokens", None))
    speed, tier = getattr(usage, "speed", None), getattr(usage, "service_tier", None)
    details = read_details(
        read,
        written,
        cache_read=found,
        cache_write=kept,
        cache_write_1h=getattr(getattr(usage, "cache_creation", None), "ephemeral_1h_input_tokens", None),
        reasoning=getattr(getattr(usage, "output_tokens_details", None), "thinking_tokens", None),
        tier=speed if speed == "fast" else tier,
        endpoint=endpoint,
    )
    return Reply(text, read, written, model, details=details)


def _connect(api_key: str | None, options: Mapping[str, Any]) -> Any:
    try:
        import anthropic
    except ImportError:
        raise LLMError("the anthropic SDK is not installed: pip install 'monocontext-rlm[anthropic]'") from None
    return anthropic.Anthropic(api_key=api_key, **options)
