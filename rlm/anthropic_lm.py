"""The models of Anthropic, by their SDK (extra `anthropic`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from rlm.errors import LLMError
from rlm.lm import Message, Reply
from rlm.sdk import SDKClient, is_of, llm_error


class AnthropicLM:
    """The messages API, always streamed. The SDK is imported at the first call.

    Without `api_key` the SDK looks at ANTHROPIC_API_KEY itself. `max_output_tokens` bounds a reply with what
    the model thinks before it: the API demands it.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = 600.0,
        max_output_tokens: int = 16_384,
    ) -> None:
        self.model = model
        self.base_url = base_url
        self.window_tokens = 200_000
        """Of the smaller models; others take more."""
        self._timeout_seconds = timeout_seconds
        self._max_output_tokens = max_output_tokens
        options = {"timeout": timeout_seconds, "max_retries": 0} | ({"base_url": base_url} if base_url else {})
        self._client = SDKClient(partial(_connect, api_key, options), api_key)

    def __repr__(self) -> str:
        return f"<AnthropicLM {self.model} at {self.base_url or 'the default endpoint'}>"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, once it is known."""
        return self._client.secrets

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._client.close()

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """One call. Raises LLMError, whose message is one line."""
        name = model or self.model
        system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
        request: dict[str, Any] = {
            "model": name,
            "max_tokens": self._max_output_tokens,
            "messages": [dict(message) for message in messages if message["role"] != "system"],
        }
        if system:
            request["system"] = system
        client = self._client.get()
        with self._one_line(name), client.messages.stream(**request) as stream:
            for piece in stream.text_stream:
                if on_delta:
                    on_delta(piece)
            answer = stream.get_final_message()
        text = "".join(block.text for block in answer.content if block.type == "text")
        usage = answer.usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        return Reply(text, usage.input_tokens + cached, usage.output_tokens, name)

    @contextmanager
    def _one_line(self, model: str) -> Iterator[None]:
        """Whatever the SDK raises, as an LLMError of one line that holds no key."""
        import anthropic

        try:
            yield
        except Exception as error:
            if isinstance(error, TypeError) and "authentication" in str(error):
                raise LLMError("no API key: set ANTHROPIC_API_KEY, or pass api_key=") from error
            if not is_of(anthropic, error):
                raise
            where = self._client.base_url or self.base_url
            raise llm_error(
                anthropic, error, model=model, where=where, timeout_seconds=self._timeout_seconds, secrets=self.secrets
            ) from error


def _connect(api_key: str | None, options: Mapping[str, Any]) -> Any:
    try:
        import anthropic
    except ImportError:
        raise LLMError("the anthropic SDK is not installed: pip install 'monocontext-rlm[anthropic]'") from None
    return anthropic.Anthropic(api_key=api_key, **options)
