"""What the SDKs of OpenAI and Anthropic have in common: a client with its pool, and errors of the same names."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlm.errors import LLMError, RateLimited
from rlm.retry_after import retry_after_seconds

_HTTP_LAYERS = ("httpx", "httpx2", "httpcore", "httpcore2", "json")
_SAID_CHARACTERS = 300


class SDKClient:
    """The client of one model: made at the first call, serves all threads, closed with its owner or by `close`."""

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
                self._client = self._connect()
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
        """Where it asks; None until the first call."""
        return getattr(self._client, "base_url", None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, once it is known."""
        key = self._api_key or getattr(self._client, "api_key", None)
        return (key,) if isinstance(key, str) and len(key) >= 8 else ()


def is_of(sdk: ModuleType, error: Exception) -> bool:
    """Whether it means that the model gave no answer: while streaming, exceptions of the HTTP layer come through."""
    return type(error).__module__.split(".")[0] in (sdk.__name__, *_HTTP_LAYERS)


def llm_error(
    sdk: ModuleType, error: Exception, *, model: str, where: object, timeout_seconds: float, secrets: tuple[str, ...]
) -> LLMError:
    """What an SDK raised, in one line that holds no key."""
    message = _message(getattr(error, "body", None)) or getattr(error, "message", None) or error
    said = " ".join(str(message).split())[:_SAID_CHARACTERS]
    status = getattr(error, "status_code", None)
    is_transient = not isinstance(error, sdk.APIError) or (isinstance(status, int) and _may_pass(status))
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
    for secret in secrets:
        line = line.replace(secret, "[secret]")
    if isinstance(error, sdk.RateLimitError) and getattr(error, "code", None) != "insufficient_quota":
        return RateLimited(line, retry_after_seconds=retry_after_seconds(error.response.headers))
    return LLMError(line, transient=is_transient)


def _message(body: Any) -> str | None:
    """OpenAI's SDK hands over what stands under `error`, Anthropic's all of it."""
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    return (inner if isinstance(inner, dict) else body).get("message")


def _may_pass(status: int) -> bool:
    return status in (408, 409) or status >= 500
