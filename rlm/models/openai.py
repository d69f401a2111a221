"""Ask the model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Unpack

from rlm.errors import LLMError, takes
from rlm.models import responses
from rlm.models.lm import Message, Reply, read_details, sum_tokens
from rlm.models.log import INFO, log
from rlm.models.sdk import SDKModel, SDKOptions, client_options

Api = Literal["chat", "responses"]


class OpenAILM(SDKModel):
    """Chat completions of the OpenAI SDK, at any `base_url`. The SDK is imported at the first call.

    A model that chat completions refuse because it wants the Responses API is asked there from then on; `api` says so
    before. The SDK's own retries are off, because a run has its own for all backends: `max_retries` turns them on for
    use outside a run.

    Without `api_key` and `base_url` the SDK reads OPENAI_API_KEY and OPENAI_BASE_URL itself. With a `base_url` and no
    key anywhere it sends a placeholder: local endpoints need none.
    """

    backend = "openai"

    @takes(SDKOptions)
    def __init__(self, model: str, *, max_retries: int = 0, api: Api = "chat", **options: Unpack[SDKOptions]) -> None:
        connect = partial(_connect, options.get("api_key"), {**client_options(options), "max_retries": max_retries})
        super().__init__(model, connect, **options)
        # Some endpoints refuse `stream_options`, some refuse to stream at all, some models want the other API: a
        # refusal is remembered.
        self._stream_options: dict[str, Any] = {"stream_options": {"include_usage": True}}
        self._streams = True
        self._api = api
        self._wants_responses: set[str] = set()

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """Make one call, streamed if there is an `on_delta`. Raises LLMError, whose message is one line."""
        name = model or self.model
        by_responses = self._api == "responses" or name in self._wants_responses
        streamed = on_delta is not None and self._streams
        with self._convert_errors(name):
            try:
                if by_responses:
                    client = self._client.get().responses
                    return responses.ask(
                        client, name, messages, self._fields() | self._extra_body, on_delta, streamed, self._where
                    )
                return self._ask(name, messages, on_delta, streamed)
            except Exception as exc:
                refused = str(exc) if getattr(exc, "status_code", None) in (400, 404, 422) else ""
                if not by_responses and "v1/responses" in refused:
                    self._wants_responses.add(name)
                    way = "by the API of responses"
                elif streamed and "stream_options" in refused and self._stream_options:
                    self._stream_options = {}
                    way = "without stream_options"
                elif streamed and "stream" in refused:
                    self._streams = False
                    way = "without streaming"
                else:
                    raise
                log(INFO, "%s: the endpoint refused the request; asked again %s, from now on", name, way)
        return self.complete(messages, model=model, on_delta=on_delta)

    def _ask(
        self, name: str, messages: Sequence[Message], on_delta: Callable[[str], object] | None, streamed: bool
    ) -> Reply:
        request: dict[str, Any] = {"model": name, "messages": list(messages)}
        if fields := self._fields() | self._extra_body:
            request["extra_body"] = fields
        chat = self._client.get().chat.completions
        if streamed and on_delta:
            return self._stream(chat, request | self._stream_options, on_delta)
        answer = chat.create(**request)
        if not getattr(answer, "choices", None):
            raise LLMError(f"model {name!r}: the endpoint sent an answer without choices")
        text = answer.choices[0].message.content or ""
        if on_delta:
            on_delta(text)
        return chat_reply(text, answer.usage, name, getattr(answer, "service_tier", None), self._where)

    def _stream(self, chat: Any, request: dict[str, Any], on_delta: Callable[[str], object]) -> Reply:
        pieces: list[str] = []
        usage = tier = None
        with chat.create(**request, stream=True) as stream:
            for chunk in stream:
                usage, tier = chunk.usage or usage, getattr(chunk, "service_tier", None) or tier
                if chunk.choices and (piece := chunk.choices[0].delta.content):
                    pieces.append(piece)
                    on_delta(piece)
        return chat_reply("".join(pieces), usage, request["model"], tier, self._where)


def chat_reply(text: str, usage: Any, model: str, tier: object, endpoint: object) -> Reply:
    """The reply of a chat completion with its usage. OpenRouter reports the dollars too, DeepSeek its cache by a name
    of its own."""
    read, written = (sum_tokens(getattr(usage, f"{kind}_tokens", None)) for kind in ("prompt", "completion"))
    into, out = (getattr(usage, f"{kind}_tokens_details", None) for kind in ("prompt", "completion"))
    details = read_details(
        read,
        written,
        cache_read=getattr(into, "cached_tokens", None) or getattr(usage, "prompt_cache_hit_tokens", None),
        cache_write=getattr(into, "cache_write_tokens", None),
        reasoning=getattr(out, "reasoning_tokens", None),
        tier=tier,
        endpoint=endpoint,
    )
    return Reply(text, read, written, model, getattr(usage, "cost", None), details=details)


def _connect(api_key: str | None, options: Mapping[str, Any]) -> Any:
    import openai

    try:
        return openai.OpenAI(api_key=api_key, **options)
    except openai.OpenAIError:
        if options.get("base_url") is None:
            raise LLMError("no API key: set OPENAI_API_KEY, or pass api_key= or base_url=") from None
        return openai.OpenAI(api_key="none", **options)
