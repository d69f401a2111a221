"""Ask by OpenAI's Responses API, which some models want in the place of chat completions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlm.errors import LLMError
from rlm.models.lm import Message, Reply, read_details, sum_tokens


def ask(
    responses: Any,
    model: str,
    messages: Sequence[Message],
    fields: Mapping[str, Any],
    on_delta: Callable[[str], object] | None,
    streamed: bool,
    endpoint: object,
) -> Reply:
    """One call of `responses`, the resource of a client. `fields`: of a chat completion. Nothing is stored there."""
    request: dict[str, Any] = {"model": model, "input": list(messages), "store": False}
    request["extra_body"] = _rename(fields)
    pieces: list[str] = []
    if streamed and on_delta:
        answer = None
        with responses.create(**request, stream=True) as events:
            for event in events:
                if event.type == "response.output_text.delta":
                    pieces.append(event.delta)
                    on_delta(event.delta)
                elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                    answer = event.response
    else:
        answer = responses.create(**request)
        pieces.append(answer.output_text)
        if on_delta:
            on_delta(answer.output_text)
    error = getattr(answer, "error", None)
    if answer is None or error is not None:
        said = " ".join(str(getattr(error, "message", "") or "the answer broke off").split())
        raise LLMError(f"model {model!r} at {endpoint}: {said}", transient=True)
    return _reply("".join(pieces), answer, model, endpoint)


def _rename(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a chat completion by the names of this API."""
    renamed = dict(fields)
    for name in ("max_completion_tokens", "max_tokens"):
        if name in renamed:
            renamed["max_output_tokens"] = renamed.pop(name)
    if "reasoning_effort" in renamed:
        renamed["reasoning"] = {**renamed.get("reasoning", {}), "effort": renamed.pop("reasoning_effort")}
    return renamed


def _reply(text: str, answer: Any, model: str, endpoint: object) -> Reply:
    usage = answer.usage
    read, written = (sum_tokens(getattr(usage, f"{kind}_tokens", None)) for kind in ("input", "output"))
    into, out = (getattr(usage, f"{kind}_tokens_details", None) for kind in ("input", "output"))
    details = read_details(
        read,
        written,
        cache_read=getattr(into, "cached_tokens", None),
        cache_write=getattr(into, "cache_write_tokens", None),
        reasoning=getattr(out, "reasoning_tokens", None),
        tier=getattr(answer, "service_tier", None),
        endpoint=endpoint,
    )
    return Reply(text, read, written, model, details=details)
