"""Define `SDKModel`, the base of models behind an SDK: it shares a client, drops refused fields and converts errors."""

from __future__ import annotations

import copy
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

from monocontext.stores.secrets_in_urls import without_secrets
from rlm.errors import LLMError, UnknownOption
from rlm.models.endpoint_errors import CallTarget, EndpointError, ErrorReport, make_error, one_line, read_error
from rlm.models.lm import Listener, Message, OnDelta, Reply
from rlm.models.refused_fields import FieldFilter
from rlm.models.reply_builder import ReplyBuilder
from rlm.models.sdk_options import Sampling, SamplingOptions, SDKOptions, check_body, check_url, sampling_of, timeout_of
from rlm.models.wire import as_one_line, read_body

_HTTP_LAYERS = ("httpx", "httpx2", "httpcore", "httpcore2", "ssl", "socket", "zlib")  # errors of a broken connection
_REFUSAL_STATUSES = (None, 400, 403, 404, 405, 415, 422, 500, 501)  # of refusals of a field; None in a stream


class SDKClient:
    """Creates an SDK's client at the first call, for all threads. Garbage collection also closes its connections."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        # `connect` must not refer to its owner: a reference cycle would keep the connections open when the owner goes.
        self._connect = connect
        self._lock = threading.Lock()
        self._client: Any = None

    def get(self) -> Any:
        """The client. Raises LLMError if it cannot be made, as for a missing key."""
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._connect()
                except ValueError as error:  # a variable such as HTTPS_PROXY that holds no URL
                    advice = "check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
                    raise LLMError(f"cannot make the HTTP client; {advice}: {one_line(error)}") from None
            return self._client

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client:
            client.close()

    def attribute(self, name: str) -> Any:
        """An attribute of the SDK's client; None before the first call, which makes the client."""
        return getattr(self._client, name, None)


class SDKModel(ABC):
    """A model behind an SDK. One client with its pool of connections serves all threads, until `close()`."""

    backend: str  # its name, as `registry.make_lm` takes it
    window_tokens: int  # the window of the model; not set if it is unknown
    sampling: Sampling  # the options of each request, under the names of `SamplingOptions` or of the provider
    names: ClassVar[Mapping[str, str]] = {}  # option -> the provider's name of it; a dot leads into an object
    required: frozenset[str] = frozenset()  # fields that no request may lack

    def __init__(self, model: str, connect: Callable[[], Any], **options: Unpack[SDKOptions]) -> None:
        """`connect`: makes the SDK's client. Raises UnknownOption, and LLMError for an invalid `base_url`."""
        if unknown := [name for name in options if name not in SDKOptions.__annotations__]:
            raise UnknownOption(f"no option {', '.join(unknown)}: choose from {', '.join(SDKOptions.__annotations__)}")
        self.model = model
        self.base_url = check_url(options.get("base_url"))
        self._timeout_seconds = timeout_of(options)
        self._headers = dict(options.get("headers") or {})
        self._api_key = options.get("api_key")
        self._client = SDKClient(connect)
        self.sampling = sampling_of({name: options.get(name) for name in SamplingOptions.__annotations__})
        self._refused: dict[str, dict[str, str | None]] = {}  # model -> its fields, as in `FieldFilter.refused`
        self._extra_body = check_body(options.get("extra_body") or {})
        if (window := options.get("window_tokens")) is not None:
            self.window_tokens = window

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model} at {without_secrets(self.base_url or 'the default endpoint')}>"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Strings that no record may hold: the key, once it is known, and the values of `headers`. Values of fewer than
        8 characters are left out, since other text contains them."""
        values = (self._api_key or self._client.attribute("api_key"), *self._headers.values())
        return tuple(value for value in values if isinstance(value, str) and len(value) >= 8)

    def with_sampling(self, options: Sampling) -> Self:
        """A copy with the same connections, whose requests also have these options; None removes an option."""
        other = copy.copy(self)
        other.sampling = sampling_of({**self.sampling, **options})
        return other

    def connect(self) -> None:
        """Make the client now, not at the first call. Raises LLMError, as for a missing key."""
        self._client.get()

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._client.close()

    @property
    def _endpoint(self) -> str | None:
        """The URL of the endpoint without secrets; None if only the client, which is not made yet, knows it."""
        url = self._client.attribute("base_url") or self.base_url
        return without_secrets(str(url)) if url else None

    def complete(self, messages: Sequence[Message], *, model: str | None = None, on_delta: OnDelta = None) -> Reply:
        """Make one call, streamed where the endpoint allows it. Raises LLMError, whose message is one line.

        A field that the endpoint refuses, such as `temperature`, is left out (`max_tokens` is renamed), the request is
        sent again, and the reply's `notes` say so. Later requests to the model are changed at once.
        """
        name = model or self.model
        listener = on_delta if isinstance(on_delta, Listener) else Listener(on_delta)  # a run passes one
        refused = self._refused.get(name, {})
        while True:
            optional = FieldFilter(dict(refused))
            try:
                reply = self._ask(name, messages, optional, ReplyBuilder(listener))
            except Exception as exc:
                if exc is listener.raised:
                    raise
                failed = self._read_failure(exc)
                if failed and not listener.has_heard and self._learn(name, failed, optional):
                    refused = optional.refused
                    continue
                error = self._convert_error(exc, failed, name)
                if error is exc:
                    raise
                raise error from exc
            self._refused[name] = refused
            return replace(reply, notes=(*reply.notes, *optional.notes(CallTarget(name, self._endpoint))))

    def _sampling_fields(self) -> dict[str, Any]:
        """The sampling options as fields of a request, under the provider's names."""
        fields: dict[str, Any] = {}
        for name, value in self.sampling.items():
            outer, _, inner = self.names.get(name, name).partition(".")
            fields[outer] = {**fields.get(outer, {}), inner: value} if inner else value
        return fields

    @abstractmethod
    def _ask(self, name: str, messages: Sequence[Message], optional: FieldFilter, builder: ReplyBuilder) -> Reply:
        """Make one request to the model `name`. All optional fields pass through `optional`. Whatever this raises
        becomes an LLMError."""

    def _read_response(
        self, response: Any, target: CallTarget, builder: ReplyBuilder, *,
        read_event: Callable[[object, ReplyBuilder], None],
        read_answer: Callable[[object, ReplyBuilder, CallTarget], None],
    ) -> None:  # fmt: skip
        """Read a body into `builder`, up to text that only repeats itself: events of a stream by `read_event`, a whole
        body by `read_answer`. A failure after the end is ignored."""
        try:
            for part in read_body(response.iter_bytes(), target, self._timeout_seconds):
                if part.type == "event":
                    read_event(part.value, builder)
                elif part.type == "comment":
                    builder.on_piece("")
                elif part.type == "end":
                    builder.is_whole = True
                else:
                    read_answer(part.value, builder, target)
                    builder.is_whole = True
                if builder.repeats:
                    break
        except EndpointError as failed:
            failed.headers = response.headers
            raise
        except LLMError:
            raise
        except Exception as exc:
            if not builder.is_whole or exc is builder.on_piece.raised:
                raise

    def _read_failure(self, error: Exception) -> EndpointError | None:
        """The failure that an exception of an SDK reports; None if the exception holds no answer of the endpoint."""
        if isinstance(error, EndpointError):
            return error
        response = getattr(error, "response", None)
        status = getattr(response, "status_code", None)
        if not isinstance(status, int):
            return None
        try:
            text = response.text  # type: ignore[union-attr]
        except Exception:  # the body broke off; the status still decides
            text = ""
        try:
            report = read_error(json.loads(text))
        except (ValueError, RecursionError):
            report = ErrorReport(as_one_line(text) or f"status {status} without a message")
        return EndpointError(report, status, response.headers)  # type: ignore[union-attr]

    def _learn(self, name: str, failed: EndpointError, optional: FieldFilter) -> bool:
        """Prepare another try after a failure, without the field that it refuses. Returns whether it may succeed.
        `name`: the model, about which a subclass may learn more."""
        return failed.status in _REFUSAL_STATUSES and optional.learn(failed.report, self.required)

    def _convert_error(self, error: Exception, failed: EndpointError | None, model: str) -> LLMError:
        """The LLMError for an exception inside the backend. Its message is one line, without secrets."""
        target = CallTarget(model, self._endpoint)
        if isinstance(error, LLMError):
            created = error
        elif failed:
            created = make_error(failed.report, target, status=failed.status, headers=failed.headers)
        else:
            created = self._convert_other(error, target)
        line = str(created)
        for secret in sorted(self.secrets, key=len, reverse=True):  # the longest first: one may contain another
            line = line.replace(secret, "[secret]")
        created.args = (line,)
        return created

    def _convert_other(self, error: Exception, target: CallTarget) -> LLMError:
        """Convert an error that is not an answer of the endpoint, such as a lost connection or a missing key."""
        kind, message = type(error).__name__, one_line(error)
        if isinstance(error, TypeError) and "authentication" in message:
            return LLMError(f"no API key: set {self.backend.upper()}_API_KEY, or pass api_key=")
        if "Timeout" in kind:
            silence = f"gave no answer within {self._timeout_seconds:g} seconds; raise timeout="
            return LLMError(f"{target.endpoint} {silence}", transient=True)
        if kind in ("APIConnectionError", "ConnectError"):
            cause = one_line(error.__cause__ or message)
            return LLMError(f"cannot reach {target.endpoint}; check base_url: {cause}", transient=True)
        if type(error).__module__.split(".")[0] in _HTTP_LAYERS:
            return LLMError(f"{target}: the connection broke off: {message or kind}", transient=True)
        return LLMError(f"{target}: {kind}: {message}")
