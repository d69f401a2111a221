"""One GET by either way, with the same answers and the same errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import SystemRandom
from typing import Any

from monocontext.errors import DamagedData, StoreFailure
from monocontext.store import Blob
from monocontext.stores.checks import check_version
from monocontext.stores.s3_answers import Span, answered_at, bare_etag, check_answer
from monocontext.stores.s3_download import Download
from monocontext.stores.s3_errors import is_cut, refusal
from monocontext.stores.s3_refusals import Refusals
from monocontext.transport import Client, Refused

# botocore repeats a request that failed before its body; a body that is cut on the way is ours to ask for again.
_BODY_ATTEMPTS = 4
_PAUSE_SECONDS = 0.05
# A generator of its own: code that seeds that of the module `random` finds its own sequence, whatever is read.
_chance = SystemRandom()


def read_by_transport(client: Client, key: str, url: str, span: Span | None, etag: str | None) -> Blob:
    """Read `span` of an object, or the whole (1 GET; what is missing after a fault is asked for by another)."""
    download = Download(url, span, etag)
    try:
        client.get(key, download, span[1] if span else 0)
    except Refused as refused:
        error = refusal(refused, url, download.etag)
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
    refusals: Refusals,
    pause: Callable[[float], None] = time.sleep,
) -> Blob:
    """The same through boto3 (1 GET; all is asked for again after a body was cut, and a `pause` of some seconds)."""
    request = dict(target)
    if span is not None:
        request["Range"] = f"bytes={span[0]}-{span[0] + span[1] - 1}"
    if etag is not None:
        request["IfMatch"] = f'"{etag}"'
    refusals.take()  # of whatever this thread did before
    answer, total_bytes, data = _whole_body(client, request, url, span, pause)
    found = bare_etag(answer.get("ETag"), url)
    check_version(url, etag, found)  # some servers ignore If-Match
    expected = span[1] if span else answer.get("ContentLength")
    if len(data) != expected:
        raise DamagedData(f"{url}: expected {expected} bytes, found {len(data):,}")
    modified = answer["LastModified"].timestamp() if answer.get("LastModified") else 0.0
    now, whole = answered_at(answer), len(data) if total_bytes is None else total_bytes
    return Blob(data, found, whole, refusals=refusals.take(), modified_seconds=modified, now_seconds=now)


def _whole_body(
    client: Any, request: dict[str, str], url: str, span: Span | None, pause: Callable[[float], None]
) -> tuple[Any, int | None, bytes]:
    """Ask until a body arrives whole; the head of each answer is checked before its body is read."""
    for attempt in range(1, _BODY_ATTEMPTS + 1):
        answer = client.get_object(**request)
        body = answer["Body"]
        try:
            status, length = answer["ResponseMetadata"]["HTTPStatusCode"], answer.get("ContentLength")
            total_bytes = check_answer(url, span, status, answer.get("ContentRange"), length)
            return answer, total_bytes, body.read()
        except Exception as error:
            # Not read to its end, the connection is of no further use.
            body.close()
            if not is_cut(error):
                raise
            if attempt == _BODY_ATTEMPTS:
                said = " ".join(str(error).split())
                raise StoreFailure(f"{url}: the body was cut {attempt} times, last by {said}") from error
        pause(_chance.uniform(0, _PAUSE_SECONDS * 2**attempt))
    raise AssertionError("unreachable")
