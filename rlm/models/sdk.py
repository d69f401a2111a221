"""The base of the backends that use a vendor's SDK: the client, the options of requests, and the errors."""

from __future__ import annotations

import copy
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self, TypedDict, Unpack
from urllib.parse import urlsplit

from monocontext.stores.address import without_secrets
from rlm.errors import LLMError, UnknownOption
from rlm.models.endpoint_errors import CallTarget, EndpointError, ErrorReport, make_error, one_line, read_error
from rlm.models.lm import Listener, Message, Reply
from rlm.models.refused import RENAMED, find_refused
from rlm.models.reply_builder import ReplyBuilder
from rlm.models.wire import read_body, read_text

Sampling = Mapping[str, Any]
"""Name -> value, as in the body of a request. The provider of the model knows the names: it refuses unknown ones."""


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
    extra_body: Mapping[str, Any] | None  # further fields of each request, sent as they are; they go before all others
    window_tokens: int | None  # the window of the model, if it differs from that of the provider's models
    prompt_characters: int | None  # the most that one prompt of a sub-call may hold


Accepted = Callable[[Mapping[str, Any]], dict[str, Any]]  # fields of a request -> those that the endpoint accepts

_OURS = frozenset(("model", "messages", "input", "stream", "system"))  # fields of a request that the backend writes
_HTTP_LAYERS = ("httpx", "httpx2", "httpcore", "httpcore2", "ssl", "socket", "zlib")  # errors of a broken connection
_TIMEOUT_SECONDS = 600.0  # of a request, unless its options say otherwise


class SDKClient:
    """The client of an SDK, made at the first call and shared by all threads. The SDK closes one that is collected."""

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

    def known(self, name: str) -> Any:
        """An attribute of the SDK's client, without making one: None before the first call."""
        return getattr(self._client, name, None)


class SDKModel(ABC):
    """A model behind an SDK. One client with its pool of connections serves all threads; `close()` frees it."""

    backend: str  # the name of the backend: of the SDK's module, or of a provider of any-llm
    window_tokens: int  # the window of the model, where it is known
    prompt_characters: int  # the most that one prompt may hold, where it is known
    sampling: Sampling  # the options of each request, by the names of `SamplingOptions` or of the provider
    names: ClassVar[Mapping[str, str]] = {}  # the provider's names of options; a dot leads into an object
    required: frozenset[str] = frozenset()  # fields that no request may lack

    def __init__(self, model: str, connect: Callable[[], Any], **options: Unpack[SDKOptions]) -> None:
        if unknown := [name for name in options if name not in SDKOptions.__annotations__]:
            raise UnknownOption(f"no option {', '.join(unknown)}: choose from {', '.join(SDKOptions.__annotations__)}")
        self.model = model
        self.base_url = _check_url(options.get("base_url"))
        self._timeout_seconds = _timeout_of(options)
        self._headers = dict(options.get("headers") or {})
        self._api_key = options.get("api_key")
        self._client = SDKClient(connect)
        known = {name: options.get(name) for name in SamplingOptions.__annotations__}
        self.sampling = check_body({name: value for name, value in known.items() if value is not None})
        self._refused: dict[str, dict[str, str | None]] = {}  # model -> refused field -> the name sent instead
        self._extra_body = check_body(options.get("extra_body") or {})
        if (window := options.get("window_tokens")) is not None:
            self.window_tokens = window
        if (characters := options.get("prompt_characters")) is not None:
            self.prompt_characters = characters

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model} at {without_secrets(self.base_url or 'the default endpoint')}>"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Strings that no record may hold: the key, once it is known, and the values of `headers`."""
        values = (self._api_key or self._client.known("api_key"), *self._headers.values())
        return tuple(value for value in values if isinstance(value, str) and len(value) >= 8)

    def with_sampling(self, options: Sampling) -> Self:
        """This model, with the same connections, whose requests have these options in addition; None removes one."""
        other = copy.copy(self)
        sampling = {**self.sampling, **options}
        other.sampling = check_body({name: value for name, value in sampling.items() if value is not None})
        return other

    def connect(self) -> None:
        """Make the client, which the first call does otherwise. Raises LLMError, as for a missing key."""
        self._client.get()

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._client.close()

    @property
    def _where(self) -> str | None:
        """The endpoint, once it is known, without a key that stands in its query."""
        url = self._client.known("base_url") or self.base_url
        return without_secrets(str(url)) if url else None

    def complete(
        self, messages: Sequence[Message], *, model: str | None = None, on_delta: Callable[[str], object] | None = None
    ) -> Reply:
        """Make one call, streamed where the endpoint allows it. Raises LLMError, whose message is one line.

        A field that the endpoint refuses, such as `temperature`, is left out (`max_tokens` is renamed), the request is
        sent again, and the reply's `notes` say so. What then worked is remembered for the model.
        """
        name = model or self.model
        listener = on_delta if isinstance(on_delta, Listener) else Listener(on_delta)  # a run passes one
        refused = dict(self._refused.get(name, {}))
        while True:
            sent: set[str] = set()
            try:
                reply = self._ask(name, messages, partial(_accepted, refused, sent), ReplyBuilder(listener))
            except Exception as exc:
                if exc is listener.raised:
                    raise
                failed = self._read_failure(exc)
                if failed and not listener.has_heard and self._learn(name, failed, refused, sent):
                    continue
                error = self._convert_error(exc, failed, name)
                raise error from (exc if error is not exc else exc.__cause__)
            self._refused[name] = refused
            target = CallTarget(name, self._where)
            changes = {field: f"sent as {other}" if other else "left out" for field, other in refused.items()}
            notes = [f"{target} refuses {field}: {change}" for field, change in changes.items()]
            return replace(reply, notes=(*reply.notes, *notes))

    def _fields(self) -> dict[str, Any]:
        """The options as fields of a request."""
        fields: dict[str, Any] = {}
        for name, value in self.sampling.items():
            outer, _, inner = self.names.get(name, name).partition(".")
            fields[outer] = {**fields.get(outer, {}), inner: value} if inner else value
        return fields

    @abstractmethod
    def _ask(self, name: str, messages: Sequence[Message], accepted: Accepted, builder: ReplyBuilder) -> Reply:
        """Make one request; `accepted` filters its optional fields. Whatever this raises becomes an LLMError."""

    def _read_response(
        self, response: Any, target: CallTarget, builder: ReplyBuilder,
        read_event: Callable[[object, ReplyBuilder], None],
        read_answer: Callable[[object, ReplyBuilder, CallTarget], None],
    ) -> None:  # fmt: skip
        """Read a body into `builder`, up to text that only repeats itself. A break after the end is not an error."""
        try:
            for part in read_body(response.iter_bytes(), target, self._timeout_seconds):
                if part.is_done:
                    builder.is_whole = True
                elif not part.is_event:
                    read_answer(part.value, builder, target)
                    builder.is_whole = True
                elif part.value is not None:
                    read_event(part.value, builder)
                else:
                    builder.on_piece("")
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
        """The failure that the endpoint reported; None for any other error."""
        return read_failure(error)

    def _learn(self, name: str, failed: EndpointError, refused: dict[str, str | None], sent: set[str]) -> bool:
        """Find the option that the endpoint refuses and add it to `refused`. Returns whether there is one."""
        if failed.status not in (None, 400, 403, 404, 405, 415, 422, 500, 501):
            return False
        field = find_refused(failed.report, sent)
        if field is None or field in self.required:
            return False
        other = RENAMED.get(field)
        refused[field] = other if other not in refused and other not in sent else None
        return True

    def _convert_error(self, error: Exception, failed: EndpointError | None, model: str) -> LLMError:
        """The LLMError for an exception inside the backend: one line without the key."""
        target = CallTarget(model, self._where)
        if isinstance(error, LLMError):
            created = error
        elif failed:
            created = make_error(failed.report, target, status=failed.status, headers=failed.headers)
        else:
            created = self._convert_other(error, target)
        line = str(created)
        for secret in self.secrets:
            line = line.replace(secret, "[secret]")
        created.args = (line,)
        return created

    def _convert_other(self, error: Exception, target: CallTarget) -> LLMError:
        """Convert an error that is not an answer: a connection, a missing key, a local fault."""
        kind, message = type(error).__name__, one_line(error)
        if isinstance(error, TypeError) and "authentication" in message:
            return LLMError(f"no API key: set {self.backend.upper()}_API_KEY, or pass api_key=")
        if "Timeout" in kind:
            silence = f"gave no answer within {self._timeout_seconds:g} seconds; raise timeout="
            return LLMError(f"{target.where} {silence}", transient=True)
        if kind in ("APIConnectionError", "ConnectError"):
            cause = one_line(error.__cause__ or message)
            return LLMError(f"cannot reach {target.where}; check base_url: {cause}", transient=True)
        if type(error).__module__.split(".")[0] in _HTTP_LAYERS:
            return LLMError(f"{target}: the connection broke off: {message or kind}", transient=True)
        return LLMError(f"{target}: {kind}: {message}")


def read_failure(error: Exception) -> EndpointError | None:
    """The failure in an exception of an SDK; None if the exception holds no answer of the endpoint."""
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
        report = ErrorReport(read_text(text) or f"status {status} without words")
    return EndpointError(report, status, response.headers)  # type: ignore[union-attr]


def client_options(options: SDKOptions) -> dict[str, Any]:
    """The keywords of an SDK's client. Its own retries are off, because a run retries for all backends."""
    fields = {"base_url": options.get("base_url"), "default_headers": dict(options.get("headers") or {}) or None}
    arguments = {name: value for name, value in fields.items() if value is not None}
    return {"timeout": _timeout_of(options), "max_retries": 0, **arguments}


def _timeout_of(options: SDKOptions) -> float:
    """The timeout of a request, in seconds."""
    timeout = options.get("timeout")
    return _TIMEOUT_SECONDS if timeout is None else timeout


def _accepted(refused: Mapping[str, str | None], sent: set[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The `fields` that may be sent, renamed where the endpoint wants another name; `sent` receives their names."""
    accepted: dict[str, Any] = {}
    for name, value in fields.items():
        sent_name: str | None = name
        while sent_name is not None and sent_name in refused:
            sent_name = refused[sent_name]
        if sent_name is not None:
            accepted.setdefault(sent_name, value)
    sent.update(accepted)
    return accepted


def check_body(options: Sampling) -> dict[str, Any]:
    """A copy of the options. Raises UnknownOption for a field that the run sets itself, or a value that is not JSON."""
    for name, value in options.items():
        if name in _OURS:
            raise UnknownOption(f"the run sets {name!r} itself: leave it out of the sampling options")
        try:
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as exc:
            raise UnknownOption(f"the option {name}={value!r} is not JSON, so it cannot be sent: {exc}") from None
    return dict(options)


def _check_url(url: str | None) -> str | None:
    """The URL itself. Raises LLMError for one that no request can go to."""
    if url is None:
        return None
    text = str(url)
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and text.split() == [text]
    except ValueError:  # an unclosed bracket, a port above 65535
        is_valid = False
    if not is_valid:
        shown = one_line(without_secrets(text))
        raise LLMError(f"base_url must be a URL such as http://127.0.0.1:8000/v1, not {shown!r}")
    return url
