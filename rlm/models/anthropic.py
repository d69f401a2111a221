"""Ask models of Anthropic through its SDK (extra `anthropic`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Unpack

from monocontext.errors import install_line
from rlm.errors import LLMError
from rlm.models.endpoint_errors import CallTarget, get, one_line
from rlm.models.lm import Message, Reply, sum_tokens
from rlm.models.message_content import read_parts
from rlm.models.refused_fields import FieldFilter
from rlm.models.reply_builder import ReplyBuilder, ReportedUsage, raise_if_failed, read_details
from rlm.models.sdk import SDKModel
from rlm.models.sdk_options import SDKOptions, client_options

_MARK = {"cache_control": {"type": "ephemeral"}}  # marks a block up to which the API caches the prompt


class AnthropicLM(SDKModel):
    """A model of Anthropic's messages API, always streamed. The SDK is imported at the first call.

    Without `api_key` the SDK reads ANTHROPIC_API_KEY. `max_output_tokens`, which the API requires, limits a reply with
    its thinking. Conversations are cached, so that a turn pays in full for new text only; single prompts are not.
    """

    backend = "anthropic"
    names: ClassVar[Mapping[str, str]] = {
        "reasoning_effort": "output_config.effort", "max_completion_tokens": "max_tokens", "stop": "stop_sequences",
    }  # fmt: skip
    window_tokens = 200_000  # the window of the smaller models; others take more
    required = frozenset(("max_tokens", "stream"))

    def __init__(self, model: str, *, max_output_tokens: int = 16_384, **options: Unpack[SDKOptions]) -> None:
        super().__init__(model, partial(_connect, options.get("api_key"), client_options(options)), **options)
        self._max_output_tokens = max_output_tokens

    def _ask(self, name: str, messages: Sequence[Message], optional: FieldFilter, builder: ReplyBuilder) -> Reply:
        request = {"model": name, "max_tokens": self._max_output_tokens, "stream": True, **_conversation(messages)}
        if body := optional.accept(self._sampling_fields() | self._extra_body):
            request["extra_body"] = body
        client = self._client.get()
        target = CallTarget(name, self._endpoint)
        with client.messages.with_streaming_response.create(**request) as response:
            self._read_response(response, target, builder, read_event=read_event, read_answer=read_answer)
        return builder.build(target, count_usage(builder.usage, None, self._endpoint))


def _conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields of a request that hold its messages. Empty messages are left out, since the API refuses them. Earlier
    messages are the same bytes in each request, so that the API finds them in its cache."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
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


def read_event(value: object, builder: ReplyBuilder) -> None:
    """Add an event of a stream to the builder; ignore unknown ones. Raises EndpointError if it reports a failure."""
    raise_if_failed(value)
    kind = get(value, "type")
    if kind == "message_start":
        _read_message(get(value, "message"), builder)
    elif kind == "content_block_start":
        if not builder.tool:
            builder.tool_index = get(value, "index")
        _read_blocks([get(value, "content_block")], builder)
    elif kind == "content_block_delta":
        builder.add_thinking(get(value, "delta", "thinking"))
        builder.add_text(get(value, "delta", "text"))
        if builder.tool and get(value, "index") == builder.tool_index:
            builder.add_arguments(get(value, "delta", "partial_json"))
    elif kind == "message_delta":
        _read_end(get(value, "delta"), builder)
        _add_usage(get(value, "usage"), builder)
    elif kind == "message_stop":
        builder.is_whole = True


def read_answer(value: object, builder: ReplyBuilder, target: CallTarget) -> None:
    """Add a whole message to the builder. Raises EndpointError for a failure, LLMError for a body without `content`."""
    raise_if_failed(value)
    if not isinstance(get(value, "content"), list):
        raise LLMError(f"{target}: the answer has no `content` (is base_url right?): {one_line(value)[:120]}")
    _read_message(value, builder)


def _read_message(message: object, builder: ReplyBuilder) -> None:
    content = get(message, "content")
    _read_blocks(content if isinstance(content, list) else [], builder)
    _read_end(message, builder)
    _add_usage(get(message, "usage"), builder)


def _read_blocks(blocks: Sequence[object], builder: ReplyBuilder) -> None:
    for block in blocks:
        kind = get(block, "type")
        if isinstance(kind, str) and "tool_use" in kind:
            builder.add_tool_call(get(block, "name"), get(block, "input"))
            continue
        parts = read_parts(block)
        builder.add_thinking(parts.thinking)
        builder.add_text(parts.text)


def _read_end(value: object, builder: ReplyBuilder) -> None:
    builder.set_end(get(value, "stop_reason"))
    if details := get(value, "stop_details", "explanation"):
        builder.end_details = one_line(details)


def _add_usage(usage: object, builder: ReplyBuilder) -> None:
    """Add counts to the builder; those at the end of a stream override those at its beginning."""
    if isinstance(usage, Mapping):
        builder.usage = {**(builder.usage or {}), **{name: count for name, count in usage.items() if count is not None}}


def count_usage(usage: Any, tier: object, endpoint: object) -> ReportedUsage:
    """The counts in the `usage` of a message. `tier` is ignored, since `usage` has it. Dollars are not reported."""
    cache_write, cache_read = (get(usage, f"cache_{kind}_input_tokens") for kind in ("creation", "read"))
    input_tokens = sum_tokens(get(usage, "input_tokens"), cache_write or 0, cache_read or 0)
    output_tokens = sum_tokens(get(usage, "output_tokens"))
    speed = get(usage, "speed")
    details = read_details(
        input_tokens, output_tokens, cache_read=cache_read, cache_write=cache_write,
        cache_write_1h=get(usage, "cache_creation", "ephemeral_1h_input_tokens"),
        reasoning=get(usage, "output_tokens_details", "thinking_tokens"),
        tier=speed if speed == "fast" else get(usage, "service_tier"), endpoint=endpoint,
    )  # fmt: skip
    return ReportedUsage(input_tokens, output_tokens, details, None)


def _connect(api_key: str | None, options: Mapping[str, Any]) -> Any:
    try:
        import anthropic
    except ImportError:
        raise LLMError(f"the anthropic SDK is not installed: {install_line('anthropic', './rlm')}") from None
    return anthropic.Anthropic(api_key=api_key, **options)
