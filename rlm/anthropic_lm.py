"""The models of Anthropic, by their SDK (extra `anthropic`)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rlm.errors import LLMError, RateLimited
from rlm.lm import Message, Reply
from rlm.retry_after import retry_after_seconds

# Whose exceptions count as "the model gave no answer": the SDK lets those of its HTTP layer through while streaming.
_TRANSPORT = ("anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "json")


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
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._max_output_tokens = max_output_tokens
        self._lock = threading.Lock()
        self._client: Any = None
        self._closing: weakref.finalize[Any, Any] | None = None

    def __repr__(self) -> str:
        return f"<AnthropicLM {self.model} at {self.base_url or 'the default endpoint'}>"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, once it is known."""
        key = self._api_key or getattr(self._client, "api_key", None)
        return (key,) if isinstance(key, str) and len(key) >= 8 else ()

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            closing, self._client, self._closing = self._closing, None, None
        if closing:
            closing()

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
        client = self._connected()
        with self._one_line(name), client.messages.stream(**request) as stream:
            for piece in stream.text_stream:
                if on_delta:
                    on_delta(piece)
            answer = stream.get_final_message()
        text = "".join(block.text for block in answer.content if block.type == "text")
        usage = answer.usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        return Reply(text, usage.input_tokens + cached, usage.output_tokens, name)

    def _connected(self) -> Any:
        try:
            import anthropic
        except ImportError:
            raise LLMError("the anthropic SDK is not installed: pip install 'monocontext-rlm[anthropic]'") from None
        with self._lock:
            if self._client is None:
                options: dict[str, Any] = {"timeout": self._timeout_seconds, "max_retries": 0}
                if self.base_url:
                    options["base_url"] = self.base_url
                self._client = anthropic.Anthropic(api_key=self._api_key, **options)
                self._closing = weakref.finalize(self, self._client.close)
            return self._client

    @contextmanager
    def _one_line(self, model: str) -> Iterator[None]:
        """Whatever the SDK raises, as an LLMError of one line that holds no key."""
        import anthropic

        try:
            yield
        except Exception as exc:
            no_key = isinstance(exc, TypeError) and "authentication" in str(exc)
            if type(exc).__module__.split(".")[0] not in _TRANSPORT and not no_key:
                raise
            where = getattr(self._client, "base_url", self.base_url)
            body = getattr(exc, "body", None)
            error = body.get("error") if isinstance(body, dict) else None
            said = error.get("message") if isinstance(error, dict) else None
            said = " ".join(str(said or getattr(exc, "message", exc)).split())[:300]
            status = getattr(exc, "status_code", None)
            transient = isinstance(status, int) and (status in (408, 409) or status >= 500)
            match exc:
                case TypeError():
                    line = "no API key: set ANTHROPIC_API_KEY, or pass api_key="
                case anthropic.AuthenticationError() | anthropic.PermissionDeniedError():
                    line = f"{where} refuses this API key: {said}"
                case anthropic.NotFoundError():
                    line = f"no model {model!r} at {where}: {said}"
                case anthropic.APITimeoutError():
                    line, transient = f"{where} gave no answer within {self._timeout_seconds:g} seconds", True
                case anthropic.APIConnectionError():
                    line, transient = f"cannot reach {where}: {exc.__cause__ or said}", True
                case anthropic.RateLimitError():
                    line = f"{where} is rate limited: {said}"
                case _:
                    line = f"model {model!r} at {where}: {said}"
            for secret in self.secrets:
                line = line.replace(secret, "[secret]")
            if isinstance(exc, anthropic.RateLimitError):
                raise RateLimited(line, retry_after_seconds=retry_after_seconds(exc.response.headers)) from exc
            raise LLMError(line, transient=transient) from exc
