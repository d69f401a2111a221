"""Read an object by our transport or by boto3, with the same results and the same errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import SystemRandom
from typing import Any

from monocontext.errors import DamagedData, StoreFailure
from monocontext.stores import log
from monocontext.stores.checks import check_size, check_version
from monocontext.stores.http.client import Client
from monocontext.stores.http.responses import ErrorResponse
from monocontext.stores.protocol import Blob
from monocontext.stores.s3.download import Download
from monocontext.stores.s3.errors import error_for_response, is_cut
from monocontext.stores.s3.headers import Span, bare_etag, check_response, response_seconds
from monocontext.stores.s3.throttling import ThrottleCounter

# botocore repeats a request that failed before its body; we repeat it when the body breaks off.
_BODY_ATTEMPTS = 4
_PAUSE_SECONDS = 0.05
# A generator of our own: reads do not disturb the sequence of code that seeds the module `random`.
_chance = SystemRandom()


def read_by_transport(
    client: Client, key: str, url: str, span: Span | None, etag: str | None, most_bytes: int | None = None
) -> Blob:
    """Read `span` of an object, or the whole (1 GET; after a fault 1 more for what is missing)."""
    download = Download(url, span, etag, most_bytes)
    try:
        client.get(key, download, span[1] if span else 0)
    except ErrorResponse as refused:
        error = error_for_response(refused, url, download.etag)
        if isinstance(error, StoreFailure):
            error.refusals = download.refusals
        raise error from refused
    return download.blob()


def read_by_boto3(
    client: Any,
    target: dict[str, str],
    url: str,
    span: Span | None,
    etag: str | None,
    throttles: ThrottleCounter,
    most_bytes: int | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Blob:
    """Read by boto3 (1 GET; after a cut body the whole is read again, after a `pause` of some seconds)."""
    request = dict(target)
    if span is not None:
        request["Range"] = f"bytes={span[0]}-{span[0] + span[1] - 1}"
    if etag is not None:
        request["IfMatch"] = f'"{etag}"'
    throttles.take()  # drop those of earlier reads of this thread
    answer, total_bytes, data = _whole_body(client, request, url, span, most_bytes, pause)
    found = bare_etag(answer.get("ETag"), url)
    check_version(url, etag, found)  # some servers ignore If-Match
    expected = span[1] if span else answer.get("ContentLength")
    if len(data) != expected:
        raise DamagedData(f"{url}: expected {expected} bytes, found {len(data):,}")
    modified = answer["LastModified"].timestamp() if answer.get("LastModified") else 0.0
    now, whole = response_seconds(answer), len(data) if total_bytes is None else total_bytes
    return Blob(data, found, whole, refusals=throttles.take(), modified_seconds=modified, now_seconds=now)


def _whole_body(
    client: Any,
    request: dict[str, str],
    url: str,
    span: Span | None,
    most_bytes: int | None,
    pause: Callable[[float], None],
) -> tuple[Any, int | None, bytes]:
    """Request a body until it arrives whole; the head of each response is checked before its body is read."""
    for attempt in range(1, _BODY_ATTEMPTS + 1):
        answer = client.get_object(**request)
        body = answer["Body"]
        try:
            status, length = answer["ResponseMetadata"]["HTTPStatusCode"], answer.get("ContentLength")
            total_bytes = check_response(url, span, status, answer.get("ContentRange"), length)
            check_size(url, most_bytes, length if span is None else None)
            return answer, total_bytes, body.read()
        except BaseException as error:
            # A connection whose body was not read to the end cannot be used again; nor after a cancelled task.
            body.close()
            if not isinstance(error, Exception) or not is_cut(error):
                raise
            if attempt == _BODY_ATTEMPTS:
                reason = " ".join(str(error).split())
                raise StoreFailure(f"{url}: the body was cut {attempt} times, last by {reason}") from error
            log.note(log.INFO, "%s: the body was cut; boto3 reads it again", url)
        pause(_chance.uniform(0, _PAUSE_SECONDS * 2**attempt))
    raise AssertionError("unreachable")
