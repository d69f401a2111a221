"""The model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from rlm.errors import LLMError
from rlm.lm import Message, Reply
from rlm.sdk import SDKClient, is_of, llm_error


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
        self._timeout_seconds = timeout_seconds
        options = {"base_url": base_url, "timeout": timeout_seconds, "max_retries": max_retries}
        self._client = SDKClient(partial(_connect, api_key, options), api_key)
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
        answer = self._client.get().chat.completions.create(**request)
        if not getattr(answer, "choices", None):
            raise LLMError(f"model {request['model']!r}: the endpoint sent an answer without choices")
        text = answer.choices[0].message.content or ""
        if on_delta:
            on_delta(text)
        return _reply(text, answer.usage, request["model"])

    def _streamed(self, request: dict[str, Any], on_delta: Callable[[str], object]) -> Reply:
        pieces: list[str] = []
        usage = None
        with self._client.get().chat.completions.create(**request, stream=True) as stream:
            for chunk in stream:
                usage = chunk.usage or usage
                if chunk.choices and (piece := chunk.choices[0].delta.content):
                    pieces.append(piece)
                    on_delta(piece)
        return _reply("".join(pieces), usage, request["model"])

    @contextmanager
    def _one_line(self, model: str) -> Iterator[None]:
        """Whatever the SDK raises, as an LLMError of one line that holds no key."""
        import openai

        try:
            yield
        except Exception as error:
            if not is_of(openai, error):
                raise
            where = self._client.base_url or self.base_url
            raise llm_error(
                openai, error, model=model, where=where, timeout_seconds=self._timeout_seconds, secrets=self.secrets
            ) from error


def _connect(api_key: str | None, options: Mapping[str, Any]) -> Any:
    import openai

    try:
        return openai.OpenAI(api_key=api_key, **options)
    except openai.OpenAIError:
        if options["base_url"] is None:
            raise LLMError("no API key: set OPENAI_API_KEY, or pass api_key= or base_url=") from None
        return openai.OpenAI(api_key="none", **options)


def _reply(text: str, usage: Any, model: str) -> Reply:
    return Reply(
        text, getattr(usage, "prompt_tokens", None) or 0, getattr(usage, "completion_tokens", None) or 0, model
    )
