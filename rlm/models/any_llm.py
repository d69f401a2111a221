"""Ask models of providers with APIs of their own through the library any-llm: Azure, Bedrock, Vertex AI and others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Unpack

from rlm.errors import LLMError
from rlm.models import chat
from rlm.models.endpoint_errors import CallTarget, EndpointError, ErrorReport, one_line
from rlm.models.lm import Message, Reply
from rlm.models.refused_fields import FieldFilter
from rlm.models.reply_builder import ReplyBuilder
from rlm.models.sdk import SDKModel
from rlm.models.sdk_options import SDKOptions


class AnyLM(SDKModel):
    """A model of a provider that any-llm knows. The library is imported at the first call. Without `api_key` any-llm
    reads the provider's usual environment variable. An option that the provider's SDK does not take, such as `headers`,
    makes the first call fail."""

    def __init__(self, provider: str, model: str, **options: Unpack[SDKOptions]) -> None:
        sent = options.get("headers")
        headers = {"default_headers": dict(sent)} if sent else {}
        connect = partial(_connect, provider, options.get("api_key"), options.get("base_url"), headers)
        super().__init__(model, connect, **options)
        self.backend = self.provider = provider

    def _ask(self, name: str, messages: Sequence[Message], optional: FieldFilter, builder: ReplyBuilder) -> Reply:
        body = optional.accept(self._sampling_fields())
        request: dict[str, Any] = {
            "model": name, "messages": [dict(message) for message in messages],
            "timeout": self._timeout_seconds, **body,
        }  # fmt: skip
        if extra := optional.accept(self._extra_body):
            request["extra_body"] = extra
        client, target = self._client.get().ask, CallTarget(name, self.provider)
        controls = optional.accept({"stream": True, "stream_options": {"include_usage": True}})
        if "stream" in controls:
            for chunk in client.completion(**request, **controls):
                chat.read_event(_plain(chunk), builder)
                if builder.repeats:
                    break
        else:
            chat.read_answer(_plain(client.completion(**request)), builder, target)
        builder.is_whole = True  # the library hides the mark of the end of a stream
        return builder.build(target, chat.count_usage(builder.usage, builder.tier, self.provider))

    @property
    def _endpoint(self) -> Any:
        return self.provider

    def _convert_other(self, error: Exception, target: CallTarget) -> LLMError:
        if isinstance(error, ImportError):
            return _missing(self.provider, error)
        if type(error).__name__ == "MissingApiKeyError":
            return LLMError(f"no API key for {self.provider}: {one_line(error)}")
        return super()._convert_other(error, target)

    def _read_failure(self, error: Exception) -> EndpointError | None:
        try:
            from any_llm.exceptions import AnyLLMError, MissingApiKeyError, ProviderError, RateLimitError
        except ImportError:  # the caller reports `error`, which names what is missing
            return None
        if not isinstance(error, AnyLLMError) or isinstance(error, MissingApiKeyError):
            return super()._read_failure(error)
        if error.original_exception and (known := super()._read_failure(error.original_exception)):
            return known
        status = error.status_code or (429 if isinstance(error, RateLimitError) else None)
        if status is None and type(error) is ProviderError:
            status = 500
        codes = (error.code, error.error_type, re.sub("(?<=[a-z])(?=[A-Z])", "_", type(error).__name__))
        param = error.param or getattr(error, "parameter_name", None) or ""
        report = ErrorReport(
            one_line(error.message), " ".join(str(code).lower() for code in codes if code), status, str(param)
        )
        wait = getattr(error, "retry_after", None)
        return EndpointError(report, status, {} if wait is None else {"retry-after": str(wait)})


def knows(provider: str) -> bool:
    """Whether any-llm is installed and has this provider. Looks at its files, without importing it."""
    spec = find_spec("any_llm")
    return spec is not None and any(
        (Path(location) / "providers" / provider).is_dir() for location in spec.submodule_search_locations or ()
    )


def _connect(provider: str, api_key: str | None, base_url: str | None, options: Mapping[str, Any]) -> SimpleNamespace:
    """The client of a provider, in the form that `SDKClient` needs; the library closes its own connections."""
    try:
        import any_llm
        from any_llm.exceptions import UnsupportedParameterError
    except ImportError as error:
        raise _missing(provider, error) from None
    make = partial(any_llm.AnyLLM.create, provider, api_key, base_url, unified_exceptions=True, **options)
    try:
        ask = make(max_retries=0)
    except UnsupportedParameterError:  # its SDK has no retries that could be counted twice
        ask = make()
    return SimpleNamespace(ask=ask, api_key=api_key, base_url=base_url, close=lambda: None)


def install_command(provider: str) -> str:
    """The command that installs the packages of a provider."""
    return f"pip install 'any-llm-sdk[{provider}]'"


def _missing(provider: str, error: ImportError) -> LLMError:
    """The error for missing packages of a provider, with the command that installs them."""
    match = re.search(r"No module named '([^']+)'", str(error))
    package = error.name or (match[1] if match else one_line(error))
    return LLMError(f"{provider} needs packages that are missing ({package}): {install_command(provider)}")


def _plain(answer: Any) -> Any:
    """An answer of the library as plain dicts and lists."""
    dump = getattr(answer, "model_dump", None)
    return dump(mode="json", warnings=False) if callable(dump) else answer
