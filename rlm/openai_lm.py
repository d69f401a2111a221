"""The model behind any OpenAI-compatible endpoint."""

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
_TRANSPORT = ("openai", "httpx", "httpx2", "httpcore", "httpcore2", "json")


class OpenAILM:
    """Chat completions of the OpenAI SDK, at any `base_url`. The SDK is imported at the first call.

    One client with its pool of connections serves all threads; it is closed with the object, or by `close()`. The SDK's
    own retries are off, because a run has its own for all backends: `max_retries` turns them on for use outside a run.

    Without `api_key` and `base_url` the SDK looks at OPENAI_API_KEY and OPENAI_BASE_URL itself. With a `base_url` alone
    and no key to be found, a placeholder is sent: local endpoints ask for none.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = 600.0,
        max_retries: int = 0,
    ) -> None:
        self.model = model
        self.base_url = base_url
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._max_retries = max_retries
        self._lock = threading.Lock()
        self._client: Any = None
        self._closing: weakref.finalize[Any, Any] | None = None
        # Some endpoints refuse `stream_options`, some refuse to stream at all: what they refuse is not asked again.
        self._stream_options: dict[str, Any] = {"stream_options": {"include_usage": True}}
        self._streams = True

    def __enter__(self) -> OpenAILM:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<OpenAILM {self.model} at {self.base_url or 'the default endpoint'}>"

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
        """One call; streamed when there is an `on_delta` to feed. Raises LLMError, whose message is one line."""
        name = model or self.model
        request = {"model": name, "messages": list(messages)}
        with self._one_line(name):
            if on_delta is None or not self._streams:
                return self._whole(request, on_delta)
            options = self._stream_options
            try:
                return self._streamed(request | options, on_delta)
            except Exception as exc:
                refused = str(exc) if getattr(exc, "status_code", None) in (400, 422) else ""
                if "stream_options" in refused and options:
                    self._stream_options = {}
                elif "stream" in refused:
                    self._streams = False
                else:
                    raise
        return self.complete(messages, model=model, on_delta=on_delta)

    def _whole(self, request: dict[str, Any], on_delta: Callable[[str], object] | None) -> Reply:
        answer = self._connected().chat.completions.create(**request)
        if not getattr(answer, "choices", None):
            raise LLMError(f"model {request['model']!r}: the endpoint sent an answer without choices")
        text = answer.choices[0].message.content or ""
        if on_delta:
            on_delta(text)
        return _reply(text, answer.usage, request["model"])

    def _streamed(self, request: dict[str, Any], on_delta: Callable[[str], object]) -> Reply:
        pieces: list[str] = []
        usage = None
        with self._connected().chat.completions.create(**request, stream=True) as stream:
            for chunk in stream:
                usage = chunk.usage or usage
                if chunk.choices and (piece := chunk.choices[0].delta.content):
                    pieces.append(piece)
                    on_delta(piece)
        return _reply("".join(pieces), usage, request["model"])

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                import openai

                options: dict[str, Any] = {
                    "base_url": self.base_url, "timeout": self._timeout_seconds, "max_retries": self._max_retries,
                }  # fmt: skip
                try:
                    self._client = openai.OpenAI(api_key=self._api_key, **options)
                except openai.OpenAIError:
                    if self.base_url is None:
                        raise LLMError("no API key: set OPENAI_API_KEY, or pass api_key= or base_url=") from None
                    self._client = openai.OpenAI(api_key="none", **options)
                self._closing = weakref.finalize(self, self._client.close)
            return self._client

    @contextmanager
    def _one_line(self, model: str) -> Iterator[None]:
        """Whatever the SDK raises, as an LLMError of one line that holds no key."""
        import openai

        try:
            yield
        except Exception as exc:
            if type(exc).__module__.split(".")[0] not in _TRANSPORT:
                raise
            where = getattr(self._client, "base_url", self.base_url)
            body = getattr(exc, "body", None)
            said = body.get("message") if isinstance(body, dict) else None
            said = " ".join(str(said or getattr(exc, "message", exc)).split())[:300]
            status = getattr(exc, "status_code", None)
            transient = status in (408, 409) or (isinstance(status, int) and status >= 500)
            match exc:
                case openai.AuthenticationError() | openai.PermissionDeniedError():
                    line = f"{where} refuses this API key: {said}"
                case openai.NotFoundError():
                    line = f"no model {model!r} at {where}: {said}"
                case openai.APITimeoutError():
                    line, transient = f"{where} gave no answer within {self._timeout_seconds:g} seconds", True
                case openai.APIConnectionError():
                    line, transient = f"cannot reach {where}: {exc.__cause__ or said}", True
                case openai.RateLimitError():
                    line = f"{where} is rate limited, or its quota is spent: {said}"
                case _:
                    line = f"model {model!r} at {where}: {said}"
            for secret in self.secrets:
                line = line.replace(secret, "[secret]")
            if isinstance(exc, openai.RateLimitError) and exc.code != "insufficient_quota":
                raise RateLimited(line, retry_after_seconds=retry_after_seconds(exc.response.headers)) from exc
            raise LLMError(line, transient=transient or not isinstance(exc, openai.APIError)) from exc


def _reply(text: str, usage: Any, model: str) -> Reply:
    return Reply(
        text, getattr(usage, "prompt_tokens", None) or 0, getattr(usage, "completion_tokens", None) or 0, model
    )
