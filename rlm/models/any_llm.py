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
        headers = options.get("headers")
        client_options = {"default_headers": dict(headers)} if headers else {}
        connect = partial(_connect, provider, options.get("api_key"), options.get("base_url"), client_options)
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
        provider, target = self._client.get().provider, CallTarget(name, self.provider)
        controls = optional.accept({"stream": True, "stream_options": {"include_usage": True}})
        if "stream" in controls:
            for chunk in provider.completion(**request, **controls):
                chat.read_event(_plain(chunk), builder)
                if builder.repeats:
                    break
        else:
            chat.read_answer(_plain(provider.completion(**request)), builder, target)
        builder.is_whole = True  # the library hides the mark of the end of a stream
        return builder.build(target, chat.count_usage(builder.usage, builder.tier, self.provider))

    @property
    def _endpoint(self) -> str:
        """The provider's name, since only the library knows the URL."""
        return self.provider

    def _convert_other(self, error: Exception, target: CallTarget) -> LLMError:
        if isinstance(error, ImportError):
            return _missing_packages(self.provider, error)
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
        class_name = re.sub("(?<=[a-z])(?=[A-Z])", "_", type(error).__name__)  # "Rate_Limit_Error"
        codes = [str(code).lower() for code in (error.code, error.error_type, class_name) if code]
        param = error.param or getattr(error, "parameter_name", None) or ""
        report = ErrorReport(one_line(error.message), " ".join(codes), status, str(param))
        retry_after = getattr(error, "retry_after", None)
        return EndpointError(report, status, {} if retry_after is None else {"retry-after": str(retry_after)})


def knows(provider: str) -> bool:
    """Whether any-llm is installed and has this provider. Looks at its files, without importing it."""
    spec = find_spec("any_llm")
    folders = spec.submodule_search_locations or () if spec else ()
    return any((Path(folder) / "providers" / provider).is_dir() for folder in folders)


def _connect(provider: str, api_key: str | None, base_url: str | None, options: Mapping[str, Any]) -> SimpleNamespace:
    """The library's `provider`, with what `SDKModel` needs of a client; the library closes its own connections."""
    try:
        import any_llm
        from any_llm.exceptions import UnsupportedParameterError
    except ImportError as error:
        raise _missing_packages(provider, error) from None
    make = partial(any_llm.AnyLLM.create, provider, api_key, base_url, unified_exceptions=True, **options)
    try:
        asked = make(max_retries=0)
    except UnsupportedParameterError:  # its SDK does not retry on its own
        asked = make()
    return SimpleNamespace(provider=asked, api_key=api_key, base_url=base_url, close=lambda: None)


def install_command(provider: str) -> str:
    """The command that installs the packages of a provider."""
    return f"pip install 'any-llm-sdk[{provider}]'"


def _missing_packages(provider: str, error: ImportError) -> LLMError:
    """The error for missing packages of a provider, with the command that installs them."""
    match = re.search(r"No module named '([^']+)'", str(error))
    package = error.name or (match[1] if match else one_line(error))
    return LLMError(f"{provider} needs packages that are missing ({package}): {install_command(provider)}")


def _plain(answer: Any) -> Any:
    """An answer of the library as plain dicts and lists."""
    dump = getattr(answer, "model_dump", None)
    return dump(mode="json", warnings=False) if callable(dump) else answer
