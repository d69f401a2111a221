"""Read answers of OpenAI's Responses API, which some models require instead of chat completions. Does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rlm.errors import LLMError
from rlm.models import chat
from rlm.models.endpoint_errors import CallTarget, EndpointError, get, one_line, read_error
from rlm.models.message_content import read_parts, read_thinking
from rlm.models.reply_builder import ReplyBuilder, raise_if_failed

_THINKING_EVENTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_END_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")

_BY_SERVER = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
"""Tool calls that the endpoint itself carries out before it writes a message."""


def read_event(value: object, builder: ReplyBuilder) -> None:
    """Add an event of a stream to the builder; ignore unknown ones. Raises EndpointError if it reports a failure."""
    raise_if_failed(value)
    kind = get(value, "type")
    if kind == "response.output_item.added" and get(value, "item", "phase") == "commentary":
        builder.commentary_ids.add(str(get(value, "item", "id")))
    elif kind == "response.output_text.delta" and str(get(value, "item_id")) in builder.commentary_ids:
        builder.add_thinking(get(value, "delta"))
    elif kind == "response.output_text.delta":
        builder.add_text(get(value, "delta"))
    elif kind == "response.output_text.done" and not builder.text:  # some endpoints send the text only here
        builder.add_text(get(value, "text"))
    elif kind in _THINKING_EVENTS:
        builder.add_thinking(get(value, "delta"))
    elif kind == "response.refusal.delta":
        builder.add_refusal(get(value, "delta"))
    elif kind == "response.refusal.done" and not builder.refusal:
        builder.add_refusal(get(value, "refusal"))
    elif kind in _END_EVENTS:
        _read_response(get(value, "response"), builder)
        if not builder.end_reason and kind != "response.done":  # the other names are a status
            _set_end(kind.removeprefix("response."), get(value, "response"), builder)
        builder.is_whole = True


def read_answer(value: object, builder: ReplyBuilder, target: CallTarget) -> None:
    """Add a whole response to the builder. Raises EndpointError for a failure, LLMError for a body without `output`."""
    raise_if_failed(value)
    if not isinstance(get(value, "output"), list) and get(value, "status") in (None, "completed"):
        raise LLMError(f"{target}: the answer has no `output` (is base_url right?): {one_line(value)[:120]}")
    _read_response(value, builder)


def rename_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a chat completion by the names of this API."""
    renamed = dict(fields)
    for name in ("max_completion_tokens", "max_tokens"):
        if name in renamed:
            renamed["max_output_tokens"] = renamed.pop(name)
    if "reasoning_effort" in renamed:
        renamed["reasoning"] = {**(renamed.get("reasoning") or {}), "effort": renamed.pop("reasoning_effort")}
    return renamed


count_usage = partial(chat.count_usage, kinds=("input", "output"))
"""Like `chat.count_usage`, with this API's names of the counts."""


def _read_response(response: object, builder: ReplyBuilder) -> None:
    """Read the end of a response, and the parts of its output that have not arrived as events."""
    builder.usage = get(response, "usage") or builder.usage  # a second event at the end may lack it
    builder.tier = get(response, "service_tier") or builder.tier
    _read_output(response, builder)
    if error := get(response, "error"):
        raise EndpointError(read_error(error))
    status = get(response, "status")
    if status is not None:
        _set_end(status, response, builder)
    if status == "completed" and any(get(item, "status") == "incomplete" for item in _messages(response)):
        builder.set_end("incomplete")


def _read_output(response: object, builder: ReplyBuilder) -> None:
    """Read the items of the output: messages, thinking and calls of tools."""
    output, messages = get(response, "output"), _messages(response)
    carried_out = _BY_SERVER if messages else ()  # calls that a message follows need no answer
    text, thinking, refusal = list[str](), list[str](), list[str]()
    for item in output if isinstance(output, list) else []:
        kind = get(item, "type")
        # A commentary that is the only message is the answer.
        if kind == "message" and get(item, "phase") == "commentary" and len(messages) > 1:
            thinking.append(read_parts(get(item, "content")).text)
        elif kind == "message":
            parts = read_parts(get(item, "content"))
            text.append(parts.text)
            thinking.append(parts.thinking)
            refusal.append(parts.refusal)
        elif kind == "reasoning":
            thinking.append(read_thinking(get(item, "summary")) or read_thinking(get(item, "content")))
        elif isinstance(kind, str) and kind.endswith("_call") and kind not in carried_out:
            builder.add_tool_call(get(item, "name") or kind, get(item, "arguments") or get(item, "input"))
    if not builder.thinking:
        builder.add_thinking("".join(thinking))
    if not builder.text:
        builder.add_text("".join(text) if text else get(response, "output_text"))
    builder.refusal = builder.refusal or refusal


def _set_end(status: object, response: object, builder: ReplyBuilder) -> None:
    """Record why the response ended."""
    if status == "incomplete":
        builder.set_end(get(response, "incomplete_details", "reason") or "incomplete")
    else:
        builder.set_end("completed" if status == "completed" else f"failed: {status}")


def _messages(response: object) -> list[Any]:
    """The items of the output that are messages."""
    output = get(response, "output")
    return [item for item in output if get(item, "type") == "message"] if isinstance(output, list) else []
