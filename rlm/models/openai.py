"""Ask models at any OpenAI-compatible endpoint, such as those of the providers and servers in `PROVIDERS`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Literal, Unpack

from rlm.errors import LLMError
from rlm.models import chat, responses
from rlm.models.endpoint_errors import CallTarget, EndpointError
from rlm.models.lm import Message, Reply
from rlm.models.reply_builder import ReplyBuilder
from rlm.models.sdk import Accepted, SDKModel, SDKOptions, client_options

Api = Literal["chat", "responses"]

_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoint of a provider, and the environment variables with its key and URL."""

    base_url: str
    keys: tuple[str, ...] = ()  # environment variables for its key, the first set counts; empty for a local server
    url_variable: str = ""  # an environment variable with another base URL; empty for none

    @property
    def key(self) -> str | None:
        """The API key from the environment; None if no variable is set."""
        return next((key for name in self.keys if (key := os.environ.get(name))), None)

    @property
    def url(self) -> str:
        """The base URL. A server's own variable may lack the path, and the scheme and port, as `OLLAMA_HOST` does."""
        value = os.environ.get(self.url_variable, "") if self.url_variable else ""
        if not value:
            return self.base_url
        url = (value if "://" in value else f"http://{value}").rstrip("/").replace("://0.0.0.0", "://127.0.0.1")
        host = url.partition("://")[2]
        if "/" in host:
            return url
        has_port = "://" in value or ":" in host.rpartition("]")[2]  # a scheme without a port means that of the scheme
        port = "" if has_port else f":{self.base_url.rpartition(':')[2].partition('/')[0]}"
        return f"{url}{port}/v1"


PROVIDERS: Mapping[str, Provider] = {
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "cohere": Provider("https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "huggingface": Provider("https://router.huggingface.co/v1", ("HF_TOKEN",)),
    "llamacpp": Provider("http://127.0.0.1:8080/v1"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1", url_variable="LM_STUDIO_API_BASE"),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "moonshot": Provider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "ollama": Provider("http://127.0.0.1:11434/v1", url_variable="OLLAMA_HOST"),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "perplexity": Provider("https://api.perplexity.ai", ("PERPLEXITY_API_KEY",)),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "vllm": Provider("http://127.0.0.1:8000/v1", url_variable="VLLM_API_BASE"),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "zai": Provider("https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",)),
}
"""Name -> provider. Their models need no package besides the OpenAI SDK."""


class OpenAILM(SDKModel):
    """Chat completions of the OpenAI SDK, at any `base_url`. The SDK is imported at the first call.

    If chat completions refuse a model because it needs the Responses API, it is asked there from then on;
    `api="responses"` does so from the start. Without `api_key` and `base_url` the SDK reads OPENAI_API_KEY and
    OPENAI_BASE_URL itself. With a `base_url` and no key anywhere it sends a placeholder: local endpoints need none.
    """

    backend = "openai"

    def __init__(
        self, model: str, *, api: Api = "chat", maker: str | None = None, **options: Unpack[SDKOptions]
    ) -> None:
        """`api`: the API to ask first. `maker`: the key in `PROVIDERS` of the default `base_url` and `api_key`."""
        key_variables: tuple[str, ...] = ()
        if maker is not None:
            endpoint = PROVIDERS[maker]
            options["base_url"] = base_url = options.get("base_url") or endpoint.url
            if base_url.rstrip("/") == endpoint.url:
                self.backend, key_variables = maker, endpoint.keys
            # A server that needs no key must not receive the OPENAI_API_KEY of the environment.
            placeholder = None if endpoint.keys else "none"
            options["api_key"] = options.get("api_key") or endpoint.key or placeholder
        connect = partial(_connect, options.get("api_key"), key_variables, client_options(options))
        super().__init__(model, connect, **options)
        self._api = api
        self._wants_responses: set[str] = set()

    def _ask(self, name: str, messages: Sequence[Message], accepted: Accepted, builder: ReplyBuilder) -> Reply:
        # The SDK connects, authenticates and reports the status; the body is read here, because the SDK hides the mark
        # of the end of a stream and demands shapes that not every endpoint keeps to.
        client, options = self._client.get(), self._fields() | self._extra_body
        reader: ModuleType
        if self._api == "responses" or name in self._wants_responses:
            resource, reader, prompt = client.responses, responses, "input"
            options = {"store": False, **responses.rename_fields(options)}
            stream_options: Mapping[str, Any] = {"stream": True}
        else:
            resource, reader, prompt = client.chat.completions, chat, "messages"
            stream_options = _STREAMED
        body, streaming = accepted(options), accepted(stream_options)
        request: dict[str, Any] = {"model": name, prompt: list(messages)}
        request |= streaming if "stream" in streaming else {}
        request |= {"extra_body": body} if body else {}
        target = CallTarget(name, self._where)
        with resource.with_streaming_response.create(**request) as response:
            self._read_response(response, target, builder, reader.read_chunk, reader.read_answer)
        return builder.build(target, reader.count_usage(builder.usage, builder.tier, self._where))

    def _learn(self, name: str, failed: EndpointError, refused: dict[str, str | None], sent: set[str]) -> bool:
        """Also switch to the Responses API if the endpoint says that the model needs it."""
        is_in_chat = self._api == "chat" and name not in self._wants_responses
        if is_in_chat and failed.status in (400, 404, 422) and "v1/responses" in failed.report.message:
            self._wants_responses.add(name)
            return True
        return super()._learn(name, failed, refused, sent)


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
