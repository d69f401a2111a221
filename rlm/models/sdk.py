"""Share between the SDKs of OpenAI and Anthropic: a model with its client, options of requests, and errors."""

from __future__ import annotations

import importlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Self, Unpack

from rlm.errors import LLMError, RateLimited
from rlm.models.retry_after import retry_after_seconds
from rlm.models.sampling import Sampled, SamplingOptions

_HTTP_LAYERS = ("httpx", "httpx2", "httpcore", "httpcore2", "json")
_SAID_CHARACTERS = 300


class SDKClient:
    """The client of one model: made at the first call, shared by all threads, closed with its owner or by `close`."""

    def __init__(self, connect: Callable[[], Any], api_key: str | None) -> None:
        # `connect` must not hold its owner: that would be a circle, and nothing closed when the owner goes.
        self._connect = connect
        self._api_key = api_key
        self._lock = threading.Lock()
        self._client: Any = None
        self._closing: weakref.finalize[Any, Any] | None = None

    def get(self) -> Any:
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._connect()
                except ValueError as error:  # a proxy of the environment that is none
                    raise LLMError(f"no client can be made: {one_line(error)}") from None
                self._closing = weakref.finalize(self, self._client.close)
            return self._client

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            closing, self._client, self._closing = self._closing, None, None
        if closing:
            closing()

    @property
    def base_url(self) -> Any:
        """The endpoint; None until the first call."""
        return getattr(self._client, "base_url", None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, once it is known."""
        key = self._api_key or getattr(self._client, "api_key", None)
        return (key,) if isinstance(key, str) and len(key) >= 8 else ()


class SDKOptions(SamplingOptions, total=False):
    """How to reach a model and what to send with each request."""

    base_url: str | None
    """Of the endpoint; by default the maker's own, or what the SDK finds in the environment."""
    api_key: str | None
    """By default what the SDK finds in the environment."""
    timeout_seconds: float
    """Of a request; 600 by default."""
    timeout: float | None
    """The same, by the name that the SDKs give it."""
    headers: Mapping[str, str] | None
    """Further headers of each request. Their values are secrets: no record holds them."""
    extra_body: Mapping[str, Any] | None
    """Further fields of each request, sent as they are; they go before all others."""
    window_tokens: int | None
    """The window of the model, where it is another than that of the maker's models."""
    prompt_characters: int | None
    """The most that one prompt of a sub-call may hold."""


class SDKModel(Sampled):
    """A model behind an SDK. One client with its pool of connections serves all threads; `close()` frees it."""

    backend: str
    """The name of the backend: of the SDK's module, or of a provider of any-llm."""
    window_tokens: int
    """The window of the model, where it is known."""
    prompt_characters: int
    """The most that one prompt may hold, where it is known."""

    def __init__(self, model: str, connect: Callable[[], Any], **options: Unpack[SDKOptions]) -> None:
        self.model = model
        self.base_url = _checked_url(options.get("base_url"))
        self._timeout_seconds = _timeout_seconds(options)
        self._headers = dict(options.get("headers") or {})
        self._client = SDKClient(connect, options.get("api_key"))
        self._set_sampling({name: value for name, value in options.items() if name in SamplingOptions.__annotations__})
        self._extra_body = dict(self.check_body(options.get("extra_body") or {}))
        if (window := options.get("window_tokens")) is not None:
            self.window_tokens = window
        if (characters := options.get("prompt_characters")) is not None:
            self.prompt_characters = characters

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model} at {self.base_url or 'the default endpoint'}>"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, once it is known, and the values of further headers."""
        return (*self._client.secrets, *(value for value in self._headers.values() if len(value) >= 8))

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._client.close()

    @property
    def _where(self) -> Any:
        """The endpoint, once it is known."""
        return self._client.base_url or self.base_url

    @contextmanager
    def _convert_errors(self, model: str) -> Iterator[None]:
        """Convert errors of the SDK to an LLMError of one line without the key."""
        sdk = importlib.import_module(self.backend)
        try:
            yield
        except Exception as error:
            if isinstance(error, TypeError) and "authentication" in str(error):
                raise LLMError(f"no API key: set {self.backend.upper()}_API_KEY, or pass api_key=") from error
            if not is_call_failure(sdk, error):
                raise
            raise make_llm_error(
                sdk, error, model=model, where=self._where, timeout_seconds=self._timeout_seconds, secrets=self.secrets
            ) from error


def client_options(options: SDKOptions) -> dict[str, Any]:
    """The options of a client of an SDK. The SDK's own retries are off: a run has its own for all backends."""
    known = {"base_url": options.get("base_url"), "default_headers": dict(options.get("headers") or {}) or None}
    given = {name: value for name, value in known.items() if value is not None}
    return {"timeout": _timeout_seconds(options), "max_retries": 0, **given}


def _checked_url(url: str | None) -> str | None:
    if url is None:
        return None
    from urllib.parse import urlsplit  # 3 ms that a model without a URL need not pay

    said = str(url)
    try:
        parts = urlsplit(said)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and said.split() == [said]
    except ValueError:  # brackets without their end, a port above 65535
        is_one = False
    if not is_one:
        raise LLMError(f"no endpoint: {one_line(said)!r}; a base URL is one such as http://127.0.0.1:8000/v1")
    return url


def _timeout_seconds(options: SDKOptions) -> float:
    return options.get("timeout_seconds") or options.get("timeout") or 600.0


def is_call_failure(sdk: ModuleType, error: Exception) -> bool:
    """Whether the error is of the SDK, or of its HTTP layer, whose exceptions come through while streaming."""
    return type(error).__module__.split(".")[0] in (sdk.__name__, *_HTTP_LAYERS)


def make_llm_error(
    sdk: ModuleType, error: Exception, *, model: str, where: object, timeout_seconds: float, secrets: tuple[str, ...]
) -> LLMError:
    """The LLMError for an error of an SDK: one line without the key."""
    message = _message(getattr(error, "body", None)) or getattr(error, "message", None) or error
    said = one_line(message)
    status = getattr(error, "status_code", None)
    is_transient = not isinstance(error, sdk.APIError) or (isinstance(status, int) and is_transient_status(status))
    if isinstance(error, sdk.AuthenticationError | sdk.PermissionDeniedError):
        line = f"{where} refuses this API key: {said}"
    elif isinstance(error, sdk.NotFoundError):
        line = f"no model {model!r} at {where}: {said}"
    elif isinstance(error, sdk.APITimeoutError):
        line, is_transient = f"{where} gave no answer within {timeout_seconds:g} seconds", True
    elif isinstance(error, sdk.APIConnectionError):
        line, is_transient = f"cannot reach {where}: {error.__cause__ or said}", True
    elif isinstance(error, sdk.RateLimitError):
        line = f"{where} is rate limited, or its quota is spent: {said}"
    else:
        line = f"model {model!r} at {where}: {said}"
    line = conceal(line, secrets)
    if isinstance(error, sdk.RateLimitError) and getattr(error, "code", None) != "insufficient_quota":
        return RateLimited(line, retry_after_seconds=retry_after_seconds(error.response.headers))
    return LLMError(line, transient=is_transient)


def _message(body: Any) -> str | None:
    """The message of an error body: OpenAI's SDK gives the object under `error`, Anthropic's the whole body."""
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    return (inner if isinstance(inner, dict) else body).get("message")


def one_line(message: object) -> str:
    """What an endpoint says, as one line of at most 300 characters."""
    return " ".join(str(message).split())[:_SAID_CHARACTERS]


def conceal(line: str, secrets: tuple[str, ...]) -> str:
    """The line without these strings."""
    for secret in secrets:
        line = line.replace(secret, "[secret]")
    return line


def is_transient_status(status: int) -> bool:
    """Whether a request that failed with this status may succeed later."""
    return status in (408, 409) or status >= 500
