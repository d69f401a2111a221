"""Use a model of DSPy (3.4) as an `LM` of ours, and an `LM` as a model of DSPy, with tokens, cost and thinking.

    import dspy
    from rlm import RLM, AnthropicLM
    from rlm.compat.dspy_lm import FromDSPy, to_dspy

    RLM(lm=FromDSPy(dspy.LM("openai/gpt-5-mini"))).completion("Who wrote it?", context)
    dspy.configure(lm=to_dspy(AnthropicLM("claude-opus-5-5")))

`dspy` is not a dependency: install it separately. Tools and images, which an `LM` does not support, are an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import dspy
from dspy import lm15
from dspy.clients.backend_selection import CLIENT_KEYS
from dspy.utils.exceptions import is_retryable_lm_error

from rlm.calls.prices import dollars
from rlm.errors import LLMError, PromptTooLong, RateLimited, RLMError
from rlm.models.endpoint_errors import one_line
from rlm.models.lm import LM, Message, Reply, read_details
from rlm.models.sampling import Sampling


class FromDSPy:
    """A `dspy.LM` as an `LM`, with its options and cache, without its retries. A cached answer costs 0 dollars."""

    def __init__(self, lm: dspy.LM) -> None:
        self._lm, self.model = lm, str(lm.model)
        options_of_dspy = CLIENT_KEYS | {"rollout_id"}
        self.sampling = {
            name: kwarg for name, kwarg in lm.kwargs.items() if kwarg is not None and name not in options_of_dspy
        }
        self.secrets = (key,) if (key := str(lm.kwargs.get("api_key") or "")) else ()

    def with_sampling(self, options: Sampling) -> FromDSPy:
        """This model with more options. None removes an option."""
        return FromDSPy(self._lm.copy(**options))

    def complete(
        self, messages: Sequence[Message], *, model: str | None = None, on_delta: Callable[[str], object] | None = None
    ) -> Reply:
        """Call the model once. `on_delta` receives the whole text. Raises LLMError."""
        lm = self._lm.copy(model=model or self.model, num_retries=0)  # a copy, whose history holds only this call
        body = {"model": lm.model, "messages": [dict(message) for message in messages], **self.sampling}
        try:
            response = lm(lm15.request_from_openai_chat(body), rollout_id=lm.kwargs.get("rollout_id"))
        except dspy.LMError as error:
            raise _to_llm_error(error) from error
        entry = lm.history[-1] if lm.history else {"usage": {}, "cost": None}  # it is empty with `disable_history`
        usage, recorded = response.usage, entry["usage"]
        input_tokens = recorded.get("prompt_tokens") or usage.input_tokens or 0
        output_tokens = recorded.get("completion_tokens") or usage.output_tokens or 0
        # DSPy records no usage for an answer from its cache.
        is_cached = bool(lm.history and not recorded and usage.input_tokens)
        text = response.text or ""
        if on_delta:
            on_delta(text)
        return Reply(
            text, input_tokens, output_tokens, lm.model, 0.0 if is_cached else entry["cost"],
            details=read_details(input_tokens, output_tokens, cache_read=usage.cache_read_tokens or 0,
                                 cache_write=usage.cache_write_tokens or 0, reasoning=usage.reasoning_tokens or 0),
            thinking="".join(part.text for part in response.message.parts_of(lm15.ThinkingPart)),
            cut=response.finish_reason == "length", called=response.tool_calls[0].name if response.tool_calls else "",
        )  # fmt: skip


def to_dspy(lm: LM, **options: Any) -> dspy.LM:
    """Make a `dspy.LM` of an `LM`. DSPy caches by the model's name: pass `cache=False` for scripted replies."""
    engine = _Engine(lm)
    name = options.pop("model", None) or str(getattr(lm, "model", None) or type(lm).__name__)
    return _PricedLM(name, engine=engine, async_engine=_AsyncEngine(engine), **options)


class _PricedLM(dspy.LM):  # type: ignore[misc]
    """A `dspy.LM` whose history has the cost of our replies. DSPy knows the prices of its own providers only."""

    def update_history(self, entry: dict[str, Any]) -> None:
        responses = entry["response"] if isinstance(entry["response"], tuple) else (entry["response"],)
        costs = [(response.provider_data or {}).get("dollars") for response in responses]
        known = [cost for cost in costs if cost is not None]
        super().update_history({**entry, "cost": sum(known) if len(known) == len(costs) else None})


class _Engine:
    """Answers requests of DSPy with an `LM`."""

    def __init__(self, lm: LM) -> None:
        self._lm = lm

    def complete(self, request: lm15.Request) -> lm15.Response:
        messages = [{"role": message.role, "content": message.text} for message in request.messages]
        if request.system:
            messages.insert(0, {"role": "system", "content": lm15.Message.user(request.system).text})
        if request.tools or any(message["content"] is None for message in messages):
            raise lm15.UnsupportedFeatureError(f"{request.model} accepts only text here: no tools, images or files")
        try:
            reply = self._with_options(request.config).complete(messages)
        except RLMError as error:
            raise _to_dspy_error(error) from error
        thinking = [lm15.ThinkingPart(reply.thinking)] if reply.thinking else []
        details = reply.details
        usage = lm15.Usage(
            reply.input_tokens or None, reply.output_tokens or None, cache_read_tokens=details.cache_read or None,
            cache_write_tokens=details.cache_write or None, reasoning_tokens=details.reasoning or None,
        )  # fmt: skip
        return lm15.Response(
            None, reply.model, lm15.Message.assistant([*thinking, lm15.TextPart(reply.text)]),
            "length" if reply.cut else "stop", usage, provider_data={"dollars": dollars(reply, {})},
        )  # fmt: skip

    def _with_options(self, config: lm15.Config) -> Any:
        arguments = {field.name: getattr(config, field.name) for field in fields(config)}
        options = {name: value for name, value in arguments.items() if value not in (None, ())} | (
            config.extensions or {}
        )
        options.pop("extensions", None)
        if "max_tokens" in options:
            options["max_completion_tokens"] = options.pop("max_tokens")
        if "reasoning" in options:
            options["reasoning_effort"] = options.pop("reasoning").effort
        if not options:
            return self._lm
        with_sampling = getattr(self._lm, "with_sampling", None)
        if not callable(with_sampling):
            raise LLMError(f"{type(self._lm).__name__} does not accept request options: leave out {', '.join(options)}")
        return with_sampling(options)


class _AsyncEngine:
    """Answers requests in threads."""

    def __init__(self, engine: _Engine) -> None:
        self._engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return await asyncio.to_thread(self._engine.complete, request)


def _to_llm_error(error: dspy.LMError) -> LLMError:
    if isinstance(error, dspy.ContextWindowExceededError):
        return PromptTooLong(one_line(error))
    if isinstance(error, dspy.LMRateLimitError):
        return RateLimited(one_line(error), retry_after_seconds=error.retry_after)
    return LLMError(one_line(error), transient=is_retryable_lm_error(error))


def _to_dspy_error(error: RLMError) -> lm15.LM15Error:
    if isinstance(error, PromptTooLong):
        return lm15.ContextLengthError(str(error))
    if isinstance(error, RateLimited):
        return lm15.RateLimitError(str(error), retry_after=error.retry_after_seconds)
    return (lm15.ServerError if getattr(error, "transient", False) else lm15.ProviderError)(str(error))
