"""Define and check the options of a model behind an SDK: how to reach it, and the fields of each request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict
from urllib.parse import urlsplit

from monocontext.stores.secrets_in_urls import without_secrets
from rlm.errors import LLMError, UnknownOption
from rlm.models.endpoint_errors import one_line

Sampling = Mapping[str, Any]
"""Name -> value, as in the body of a request. The provider of the model checks the names."""


class SamplingOptions(TypedDict, total=False):
    """Sampling options that most providers know."""

    temperature: float | None
    top_p: float | None
    reasoning_effort: str | None  # how much a model thinks, such as `low`
    max_completion_tokens: int | None  # the most tokens of a reply, thinking included


class SDKOptions(SamplingOptions, total=False):
    """How to reach a model, and the options of each request."""

    base_url: str | None  # URL of the endpoint; by default the provider's own, or the SDK's from the environment
    api_key: str | None  # by default the key that the SDK finds in the environment
    timeout: float | None  # of a request, in seconds; 600 by default
    headers: Mapping[str, str] | None  # further headers of each request, whose values are secrets: no record holds them
    extra_body: Mapping[str, Any] | None  # further fields of each request, sent as they are; they override the options
    window_tokens: int | None  # the window of the model, if it differs from that of the provider's models


_FIELDS_OF_BACKENDS = frozenset(("model", "messages", "input", "stream", "system"))  # no option may set them
_TIMEOUT_SECONDS = 600.0  # of a request, unless its options say otherwise


def sampling_of(options: Sampling) -> dict[str, Any]:
    """The options that are not None. Raises UnknownOption as `check_body` does."""
    return check_body({name: value for name, value in options.items() if value is not None})


def client_options(options: SDKOptions) -> dict[str, Any]:
    """The keywords of an SDK's client. Its own retries are off, because a run retries for all backends."""
    fields = {"base_url": options.get("base_url"), "default_headers": dict(options.get("headers") or {}) or None}
    arguments = {name: value for name, value in fields.items() if value is not None}
    return {"timeout": timeout_of(options), "max_retries": 0, **arguments}


def timeout_of(options: SDKOptions) -> float:
    """The timeout of a request, in seconds."""
    timeout = options.get("timeout")
    return _TIMEOUT_SECONDS if timeout is None else timeout


def check_body(fields: Sampling) -> dict[str, Any]:
    """A copy of the fields of a request. Raises UnknownOption for a field that a run sets itself, and for a value that
    is not JSON."""
    for name, value in fields.items():
        if name in _FIELDS_OF_BACKENDS:
            raise UnknownOption(f"the run sets {name!r} itself: leave it out of the options")
        try:
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as exc:
            raise UnknownOption(f"the option {name}={value!r} is not JSON, so it cannot be sent: {exc}") from None
    return dict(fields)


def strip_url(url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(without_secrets(url))  # first, since a password with `#` or `?` would end the host
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def check_url(url: str | None) -> str | None:
    """Return `url`. Raises LLMError if no request can be sent to it."""
    text = "http://default" if url is None else str(url)
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and text.split() == [text]
    except ValueError:  # an unclosed bracket, a port above 65535
        is_valid = False
    if not is_valid:
        shown = one_line(without_secrets(text))
        raise LLMError(f"base_url must be a URL such as http://127.0.0.1:8000/v1, not {shown!r}")
    return url
