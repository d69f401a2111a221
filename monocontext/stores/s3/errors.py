"""Translate errors of boto3 and of S3 servers into errors of monocontext, in one line with the URL of the object."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from monocontext.errors import (
    AccessDenied,
    AlreadyExists,
    ContextChanged,
    DamagedData,
    InvalidUrl,
    MonocontextError,
    NotFound,
    StoreFailure,
    Unsupported,
)
from monocontext.records import dataclass
from monocontext.stores.http.connection import DEFAULT_PORTS, Endpoint
from monocontext.stores.http.error_response import OTHER_REGION, REDIRECTS, ErrorResponse, describe_error, is_throttling
from monocontext.stores.http.route import ForeignRedirect, Route, redirected
from monocontext.stores.protocol import not_found_error, one_line
from monocontext.stores.s3.settings import ConfigurationError, NoCredentials
from monocontext.stores.secrets_in_urls import without_secrets

_REFUSED_CODES = {"AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"}
_PERMANENT_STATUS = {402, 405, 411, 413, 414, 451, 501}
_PERMANENT_CODES = {
    "400", "EntityTooLarge", "InvalidArgument", "InvalidBucketName", "InvalidRequest", "KeyTooLongError",
}  # fmt: skip
"""Statuses and codes of requests that fail however often they are sent; boto3 reports the code `400` for a HEAD."""
_REGION = r"[a-z0-9-]{1,40}"  # `eu-west-1`, or any other name that may be shown
_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run `aws configure`; "
    "public buckets open with anonymous=True"
)
# Names in `botocore.exceptions`.
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError")
_NO_LOGIN = (
    "CredentialRetrievalError", "InvalidConfigError", "MetadataRetrievalError", "ProfileNotFound", "SSOError",
    "TokenRetrievalError",
)  # fmt: skip
_CUT_BODY = ("HTTPClientError", "IncompleteReadError")


class WriteConflict(AlreadyExists):
    """HTTP 409: another conditional request for the object was under way, and the outcome is open. Try again."""


@contextmanager
def translate_errors(
    url: str, *, etag: str | None = None, writing: bool = False, client: Callable[[], Any] | None = None
) -> Iterator[None]:
    """Translate the errors of a request, as `translate` does."""
    try:
        yield
    except Exception as error:
        if (translated := translate(error, url, etag, client, writing=writing)) is None:
            raise
        raise translated from error


def translate(
    error: Exception, url: str, etag: str | None, client: Callable[[], Any] | None, *, writing: bool = False
) -> MonocontextError | None:
    """The error of monocontext for an error of a request; `None` if `error` is one already, or is unknown.

    `client` returns the boto3 client that sent the request, which required the version `etag`. A failed condition is
    `AlreadyExists` while `writing`, else `ContextChanged`.
    """
    if isinstance(error, MonocontextError):
        return None
    reason = without_secrets(one_line(error))  # botocore quotes the endpoint, which may have a login
    if isinstance(error, _exception_types("ClientError")):
        response = getattr(error, "response", {})
        return _foreign_redirect(response, url, client) or _error_for_client_error(response, url, etag, writing)
    if isinstance(error, _exception_types(*_NO_CREDENTIALS)):
        return AccessDenied(f"no credentials for {url}: {_CREDENTIALS}")
    if isinstance(error, NoCredentials):
        return AccessDenied(f"no credentials for {url}: {_CREDENTIALS}; tried: {reason}")
    if isinstance(error, (ConfigurationError, *_exception_types(*_NO_LOGIN))):
        return AccessDenied(f"no credentials for {url}: {reason}")
    if isinstance(error, _exception_types("ParamValidationError")):
        return InvalidUrl(f"{url}: {reason}")
    calls = _calls_of(error)
    if "maximum recursion depth" in reason and calls.count(("botocore.utils", "redirect_from_error")) > 1:
        # botocore asks a server that redirects without a region for the region, is redirected again, and so on.
        return Unsupported(f"{url}: the server redirects in circles and names no region: open it with region=")
    if isinstance(error, (OSError, *_exception_types("BotoCoreError"))):
        return StoreFailure(f"{url}: {reason}")
    if isinstance(error, ValueError) and reason.startswith(("Invalid endpoint", "Invalid IPv6 URL", "netloc ")):
        return InvalidUrl(f"{url}: {reason}; endpoint must be a URL such as http://127.0.0.1:8333")
    # botocore raises errors of any type, such as ValueError, for a response that it cannot parse.
    is_from_parser = any(module == "botocore.parsers" for module, _ in calls)
    if is_from_parser or type(error).__module__.startswith("urllib3."):
        return StoreFailure(f"{url}: the response is damaged: {reason}")
    return None


def _foreign_redirect(response: Any, url: str, client: Callable[[], Any] | None) -> MonocontextError | None:
    """The error for a redirect to a foreign host, which boto3 did not follow; `None` for any other response."""
    metadata = response.get("ResponseMetadata", {})
    location = metadata.get("HTTPHeaders", {}).get("location")
    if location and client and metadata.get("HTTPStatusCode") in REDIRECTS:
        parts = urlsplit(client().meta.endpoint_url)
        origin = Endpoint(parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme])
        try:
            redirected(Route(origin, "/", ""), "/", location)
        except ForeignRedirect as foreign:
            return Unsupported(f"{url}: HTTP {metadata['HTTPStatusCode']}: {foreign}")
    return None


def is_cut(error: Exception) -> bool:
    """Whether the body of a response broke off, so that a retry may help."""
    return isinstance(error, (OSError, *_exception_types(*_CUT_BODY)))


def _exception_types(*names: str) -> tuple[type[Exception], ...]:
    """The exception types of botocore with these names, where they exist; empty before botocore is imported."""
    module = sys.modules.get("botocore.exceptions")  # if it is not imported, none of its errors can occur
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


def _calls_of(error: Exception) -> list[tuple[str, str]]:
    """The module and the name of each function that an error passed through."""
    calls = []
    entry = error.__traceback__
    while entry is not None:
        calls.append((entry.tb_frame.f_globals.get("__name__", ""), entry.tb_frame.f_code.co_name))
        entry = entry.tb_next
    return calls


def error_for_response(response: ErrorResponse, url: str, etag: str | None) -> MonocontextError:
    """The error for an error response to a GET of our transport. `etag`: the version that it required, or `None`."""
    if response.refused_redirect:
        return Unsupported(f"{url}: HTTP {response.status}: {response.refused_redirect}")
    return _error_for(response, url, etag, writing=False)


def _error_for_client_error(response: Any, url: str, etag: str | None, writing: bool) -> MonocontextError:
    detail, metadata = response.get("Error", {}), response.get("ResponseMetadata", {})
    failure = _FailedRequest(
        status=metadata.get("HTTPStatusCode", 0),
        code=str(detail.get("Code", "")),
        message=" ".join(str(detail.get("Message", "")).split()),
        object_bytes=detail.get("ActualObjectSize", ""),
        region=metadata.get("HTTPHeaders", {}).get("x-amz-bucket-region") or detail.get("Region", ""),
    )
    return _error_for(failure, url, etag, writing)


@dataclass(frozen=True, slots=True)
class _FailedRequest:
    """An error response as boto3 reports it, with the names of `ErrorResponse`. Fields that it lacks are empty."""

    status: int
    """The HTTP status, not 2xx."""
    code: str
    message: str
    object_bytes: str
    """The length of an object that ends before the requested range."""
    region: str
    """The region of the bucket."""


def _error_for(failure: _FailedRequest | ErrorResponse, url: str, etag: str | None, writing: bool) -> MonocontextError:
    """The error for a response other than a success; `writing` and `etag` as in `translate`."""
    status, code, region = failure.status, failure.code, failure.region
    reason = describe_error(status, code, failure.message)
    if code == "NoSuchBucket":
        return NotFound(f"no bucket {url.split('/')[2]!r}: {url}")
    if status in (401, 403) or code in _REFUSED_CODES:
        return AccessDenied(f"access to {url} was refused: {reason}")
    if status == 404 and code != "NoSuchUpload":
        return not_found_error(url)
    if status == 412 and not writing:
        return ContextChanged(f"{url} was replaced: expected ETag {etag}, found another version")
    if status in (409, 412) and writing:
        expected = "no object" if etag is None else f"ETag {etag}"
        error_type = WriteConflict if status == 409 else AlreadyExists
        return error_type(f"{url} was written by someone else: expected {expected}, found {reason}")
    if status == 416:
        size = f": it has {failure.object_bytes} bytes" if failure.object_bytes else ""
        return DamagedData(f"{url} ends before the range starts{size}")
    # The response to a HEAD has no body, so boto3 gives its status as the code.
    if status in (301, 307) or code in OTHER_REGION or (code == "400" and region):
        if re.fullmatch(_REGION, region):
            return Unsupported(f"{url} is in the region {region}: open it with region='{region}': {reason}")
        return Unsupported(f"{url} is in another region: open it with region= ({reason})")
    if status in _PERMANENT_STATUS or code in _PERMANENT_CODES:
        return Unsupported(f"{url}: {reason}")
    error = StoreFailure(f"{url}: {reason}")
    error.refusals = int(is_throttling(status, code))
    return error
