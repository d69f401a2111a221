"""Ask models of many other makers through the library any-llm (extra `models`): Gemini, Azure, OpenRouter, Bedrock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Unpack

from rlm.errors import LLMError, RateLimited, takes
from rlm.models.lm import Message, Reply
from rlm.models.openai import chat_reply
from rlm.models.retry_after import retry_after_seconds
from rlm.models.sdk import SDKModel, SDKOptions, client_options, conceal, is_transient_status, one_line

_INSTALL = "any-llm is not installed: pip install 'monocontext-rlm[models]', and what it needs for {}"


class AnyLM(SDKModel):
    """A model of `provider`, by the name that any-llm gives it. The library is imported at the first call.

    Without `api_key` any-llm reads the variable that the provider is known for. What a provider cannot take (such as
    `headers`, where its SDK has none) is an error of the first call.
    """

    @takes(SDKOptions)
    def __init__(self, provider: str, model: str, **options: Unpack[SDKOptions]) -> None:
        known = client_options(options)
        given = {name: known[name] for name in ("default_headers",) if name in known}
        connect = partial(_connect, provider, options.get("api_key"), options.get("base_url"), given)
        super().__init__(model, connect, **options)
        self.backend = self.provider = provider

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """One call, streamed if there is an `on_delta`. Raises LLMError, whose message is one line."""
        name = model or self.model
        request = {
            "model": name, "messages": [dict(each) for each in messages], "timeout": self._timeout_seconds,
            **self._fields(), **({"extra_body": self._extra_body} if self._extra_body else {}),
        }  # fmt: skip
        with self._convert_errors(name):
            client = self._client.get().ask
            if on_delta is None:
                answer = client.completion(**request)
                if not answer.choices:
                    raise LLMError(f"model {name!r} of {self.provider}: an answer without choices")
                text, usage = answer.choices[0].message.content or "", answer.usage
            else:
                text, usage = _stream(client, request, on_delta)
        return chat_reply(text, usage, name, None, self.provider)

    @contextmanager
    def _convert_errors(self, model: str) -> Iterator[None]:
        try:
            from any_llm.exceptions import AnyLLMError, ProviderError, RateLimitError
        except ImportError as error:
            raise LLMError(f"{_INSTALL.format(self.provider)}: {error}") from error
        try:
            yield
        except AnyLLMError as error:
            line = conceal(f"model {model!r} of {self.provider}: {one_line(error.message)}", self.secrets)
            if isinstance(error, RateLimitError):
                wait = {} if error.retry_after is None else {"retry-after": error.retry_after}
                raise RateLimited(line, retry_after_seconds=retry_after_seconds(wait)) from error
            status = error.status_code
            transient = isinstance(error, ProviderError) if status is None else is_transient_status(status)
            raise LLMError(line, transient=transient) from error
        except ImportError as error:
            raise LLMError(f"{_INSTALL.format(self.provider)}: {error}") from error


def knows(provider: str) -> bool:
    """Whether any-llm is installed and has this provider; it is not imported for that."""
    spec = find_spec("any_llm")
    return spec is not None and any(
        (Path(place) / "providers" / provider).is_dir() for place in spec.submodule_search_locations or ()
    )


class _Provider:
    """The client of a provider, with what `SDKClient` asks of one."""

    def __init__(self, ask: Any, api_key: str | None, base_url: str | None) -> None:
        self.ask, self.api_key, self.base_url = ask, api_key, base_url

    def close(self) -> None:
        """The library closes what it holds."""


def _connect(provider: str, api_key: str | None, base_url: str | None, given: Mapping[str, Any]) -> _Provider:
    try:
        import any_llm
        from any_llm.exceptions import UnsupportedParameterError
    except ImportError:
        raise LLMError(_INSTALL.format(provider)) from None
    make = partial(any_llm.AnyLLM.create, provider, api_key, base_url, unified_exceptions=True, **given)
    try:
        return _Provider(make(max_retries=0), api_key, base_url)
    except UnsupportedParameterError:  # its SDK has no retries that could be counted twice
        return _Provider(make(), api_key, base_url)


def _stream(client: Any, request: Mapping[str, Any], on_delta: Callable[[str], object]) -> tuple[str, Any]:
    pieces: list[str] = []
    usage = None
    for chunk in client.completion(**request, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        if chunk.choices and (piece := chunk.choices[0].delta.content):
            pieces.append(piece)
            on_delta(piece)
    return "".join(pieces), usage
