"""Ask models at any OpenAI-compatible endpoint, such as those of `PROVIDERS`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from types import ModuleType
from typing import Any, Literal, NamedTuple, Unpack

from rlm.errors import LLMError
from rlm.models import chat, responses
from rlm.models.endpoint_errors import CallTarget, EndpointError
from rlm.models.lm import Message, Reply
from rlm.models.refused_fields import FieldFilter
from rlm.models.reply_builder import ReplyBuilder
from rlm.models.sdk import SDKModel
from rlm.models.sdk_options import SDKOptions, client_options


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoint of a provider, and the environment variables with its key."""

    url: str
    key_variables: tuple[str, ...] = ()  # the first that is set has the key; none for a local server


PROVIDERS: Mapping[str, Provider] = {
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "cohere": Provider("https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "huggingface": Provider("https://router.huggingface.co/v1", ("HF_TOKEN",)),
    "llamacpp": Provider("http://127.0.0.1:8080/v1"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1"),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "moonshot": Provider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "ollama": Provider("http://127.0.0.1:11434/v1"),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "perplexity": Provider("https://api.perplexity.ai", ("PERPLEXITY_API_KEY",)),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "vllm": Provider("http://127.0.0.1:8000/v1"),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "zai": Provider("https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",)),
}
"""Name -> provider. Their models need no package besides the OpenAI SDK."""


class _Api(NamedTuple):
    """How to ask one of the two APIs, and the module that reads its answers."""

    resource: str  # the attribute of the SDK's client with `create`
    messages_field: str  # the field of a request with the messages
    controls: Mapping[str, object]  # the fields of a request that ask for a stream
    reader: ModuleType  # with `read_event`, `read_answer` and `count_usage`


_CHAT = _Api("chat.completions", "messages", {"stream": True, "stream_options": {"include_usage": True}}, chat)
_RESPONSES = _Api("responses", "input", {"stream": True}, responses)


class OpenAILM(SDKModel):
    """Chat completions of the OpenAI SDK, at any `base_url`. The SDK is imported at the first call.

    If chat completions refuse a model because it needs the Responses API, it is asked there from then on;
    `api="responses"` does so from the start. Without `api_key` and `base_url` the SDK reads OPENAI_API_KEY and
    OPENAI_BASE_URL itself. With a `base_url` and no key anywhere it sends a placeholder: local endpoints need none.
    """

    backend = "openai"

    def __init__(
        self, model: str, *, api: Literal["chat", "responses"] = "chat", provider: str | None = None,
        **options: Unpack[SDKOptions],
    ) -> None:  # fmt: skip
        """`api`: the API to ask first. `provider`: a key of `PROVIDERS`, for the default `base_url` and `api_key`."""
        key_variables: tuple[str, ...] = ()
        if provider is not None:
            endpoint = PROVIDERS[provider]
            options["base_url"] = base_url = options.get("base_url") or endpoint.url
            if base_url.rstrip("/") == endpoint.url:
                self.backend, key_variables = provider, endpoint.key_variables
            # A server that needs no key must not receive the OPENAI_API_KEY of the environment.
            placeholder = None if endpoint.key_variables else "none"
            keys = [options.get("api_key"), *map(os.environ.get, endpoint.key_variables), placeholder]
            options["api_key"] = next(filter(None, keys), None)
        connect = partial(_connect, options.get("api_key"), key_variables, client_options(options))
        super().__init__(model, connect, **options)
        self._asks_responses = api == "responses"
        self._models_of_responses: set[str] = set()  # models that chat completions refused for the Responses API

    def _ask(self, name: str, messages: Sequence[Message], optional: FieldFilter, builder: ReplyBuilder) -> Reply:
        # The SDK connects, authenticates and reports the status; the body is read here, because the SDK hides the mark
        # of the end of a stream and demands shapes that not every endpoint keeps to.
        api, options = _CHAT, self._sampling_fields() | self._extra_body
        if self._asks_responses or name in self._models_of_responses:
            api, options = _RESPONSES, {"store": False, **responses.rename_fields(options)}
        request: dict[str, Any] = {"model": name, api.messages_field: list(messages)}
        if body := optional.accept(options):
            request["extra_body"] = body
        controls = optional.accept(api.controls)
        if "stream" in controls:
            request |= controls
        resource, target = attrgetter(api.resource)(self._client.get()), CallTarget(name, self._endpoint)
        with resource.with_streaming_response.create(**request) as response:
            read_event, read_answer = api.reader.read_event, api.reader.read_answer
            self._read_response(response, target, builder, read_event=read_event, read_answer=read_answer)
        return builder.build(target, api.reader.count_usage(builder.usage, builder.tier, self._endpoint))

    def _learn(self, name: str, failed: EndpointError, optional: FieldFilter) -> bool:
        """Also switch to the Responses API if the endpoint says that the model needs it."""
        asks_chat = not self._asks_responses and name not in self._models_of_responses
        if asks_chat and failed.status in (400, 404, 422) and "v1/responses" in failed.report.message:
            self._models_of_responses.add(name)
            return True
        return super()._learn(name, failed, optional)


def _connect(api_key: str | None, key_variables: tuple[str, ...], options: Mapping[str, Any]) -> Any:
    import openai

    if api_key is None and key_variables:
        raise LLMError(f"no API key: set {' or '.join(key_variables)}, or pass api_key=")
    try:
        return openai.OpenAI(api_key=api_key, **options)
    except openai.OpenAIError:
        if not options.get("base_url") and not os.environ.get("OPENAI_BASE_URL"):
            raise LLMError("no API key: set OPENAI_API_KEY, or pass api_key= or base_url=") from None
        return openai.OpenAI(api_key="none", **options)
