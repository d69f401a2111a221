"""What boto3 and the server say when something fails, as our errors: one line, with the URL of the object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from monocontext.errors import (
    AccessDenied,
    AlreadyExists,
    ContextChanged,
    DamagedData,
    InvalidUrl,
    MonocontextError,
    NotFound,
    StoreFailure,
)
from monocontext.stores.checks import absent
from monocontext.transport import Refused, is_throttling

_REFUSED = {"AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"}
_ELSEWHERE = {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run `aws configure`; "
    "public buckets open with anonymous=True"
)
# Of botocore.exceptions, by name: a version that lacks one is no reason to fail.
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError")
_NO_LOGIN = (
    "CredentialRetrievalError",
    "InvalidConfigError",
    "MetadataRetrievalError",
    "ProfileNotFound",
    "SSOError",
    "TokenRetrievalError",
)
_CUT = ("HTTPClientError", "IncompleteReadError")


@contextmanager
def typed(url: str, *, etag: str | None = None, writing: bool = False) -> Iterator[None]:
    """Turn what a request raises into our errors.

    `etag` is the version that the request insists on. A failed condition is `AlreadyExists` while `writing`, else
    `ContextChanged`.
    """
    try:
        yield
    except MonocontextError:
        raise
    except Exception as error:
        answer = _translate(error, url, etag, writing)
        if answer is None:
            raise
        raise answer from error


def is_cut(error: Exception) -> bool:
    """Whether the body stopped arriving: asking once more may help."""
    return isinstance(error, (OSError, *_kinds(_CUT)))


def _kinds(names: tuple[str, ...]) -> tuple[type[Exception], ...]:
    module = import_module("botocore.exceptions")
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


def _translate(error: Exception, url: str, etag: str | None, writing: bool) -> MonocontextError | None:
    said = " ".join(str(error).split())
    if isinstance(error, _kinds(("ClientError",))):
        return _of_client_error(getattr(error, "response", {}), url, etag, writing)
    if isinstance(error, _kinds(_NO_CREDENTIALS)):
        return AccessDenied(f"no credentials for {url}: {_CREDENTIALS}")
    if isinstance(error, _kinds(_NO_LOGIN)):
        return AccessDenied(f"no credentials for {url}: {said}")
    if isinstance(error, _kinds(("ParamValidationError",))):
        return InvalidUrl(f"{url}: {said}")
    if isinstance(error, (OSError, *_kinds(("BotoCoreError",)))):
        return StoreFailure(f"{url}: {said}")
    if isinstance(error, ValueError) and said.startswith("Invalid endpoint"):
        return InvalidUrl(f"{url}: {said}; an endpoint is a URL such as http://127.0.0.1:8333")
    return None


def refusal(refused: Refused, url: str, etag: str | None) -> MonocontextError:
    """The error for a GET that the server answered with something other than the object."""
    return _refusal(refused.status, refused.code, refused.message, refused.object_bytes, url, etag)


def _of_client_error(response: Any, url: str, etag: str | None, writing: bool) -> MonocontextError:
    detail = response.get("Error", {})
    code, message = str(detail.get("Code", "")), " ".join(str(detail.get("Message", "")).split())
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return _refusal(status, code, message, detail.get("ActualObjectSize", ""), url, etag, writing)


def _refusal(
    status: int, code: str, message: str, object_bytes: str, url: str, etag: str | None, writing: bool = False
) -> MonocontextError:
    """The error for an answer that is not 2xx."""
    said = f"HTTP {status} {code}: {message}"
    if code == "NoSuchBucket":
        return NotFound(f"no bucket {url.split('/')[2]!r}, asked for {url}")
    if status in (401, 403) or code in _REFUSED:
        return AccessDenied(f"access to {url} refused: {said}")
    if status == 404 and code != "NoSuchUpload":
        return absent(url)
    if status == 412 and not writing:
        return ContextChanged(f"{url} was replaced: expected ETag {etag}, found another")
    if status in (409, 412) and writing:
        expected = "no object" if etag is None else f"ETag {etag}"
        return AlreadyExists(f"{url} was written by someone else: expected {expected}, found {said}")
    if status == 416:
        return DamagedData(f"{url} ends before the range starts: found {object_bytes or 'fewer'} bytes in all")
    if status in (301, 307) or code in _ELSEWHERE:
        return StoreFailure(f"{url} lies in another region, give region=: {said}")
    failure = StoreFailure(f"{url}: {said}")
    failure.refusals = int(is_throttling(status, code))
    return failure
