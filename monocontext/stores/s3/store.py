"""Store objects at `s3://bucket/prefix`. GETs use the HTTP client of this package, all other requests use boto3.

Common readers return wrong bytes without an error when a server shortens or ignores a range, or when an object is
replaced between two requests. This store names the ETag in each request for a range, and checks status, Content-Range,
length and ETag of each response before it uses the body.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from monocontext.errors import AlreadyExists, InvalidUrl, NotFound, NotPicklable, StoreFailure
from monocontext.records import dataclass, field
from monocontext.stores import log
from monocontext.stores.http.client import Client
from monocontext.stores.http.pool import MAX_IDLE, Pool
from monocontext.stores.protocol import (
    CONTENT_TYPE,
    Blob,
    ObjectInfo,
    StoreBase,
    check_key,
    check_part,
    check_range,
    check_write,
    uniform,
)
from monocontext.stores.s3 import client as s3_client
from monocontext.stores.s3.account import S3Origin, account_of, check_options
from monocontext.stores.s3.client import BEFORE_SEND, is_aws, new_client
from monocontext.stores.s3.errors import WriteConflict, translate, translate_errors
from monocontext.stores.s3.reads import (
    ByteSpan,
    ReadRequest,
    ThrottleCounter,
    bare_etag,
    modified_seconds,
    read_by_boto3,
    read_by_transport,
    server_clock_seconds,
)
from monocontext.stores.s3.settings import S3Options

_MOST_SINGLE_BYTES = 16 << 20  # larger objects are sent in parts
_PART_BYTES = 8 << 20  # the size of a part of a multipart upload
_MOST_PARTS = 10_000  # the most parts of a multipart upload; a limit of S3
_PARTS_AT_ONCE = 4  # how many parts of an object are uploaded at once
_CONFLICT_ATTEMPTS = 8  # how often a write is sent while the server answers 409 ConditionalRequestConflict


class S3Store(StoreBase):
    """Objects below a prefix of one bucket. The first request other than a GET imports boto3.

    botocore repeats a conditional `put` if the response was lost. The second attempt finds the object of the first, so
    `put` raises `AlreadyExists` although it wrote. `protocol.put_own` recognises its own write.
    """

    def __init__(self, bucket: str, prefix: str = "", *, client: Any = None, **options: Any) -> None:
        self._options = check_options(S3Options(**options))
        if client is not None and options:
            raise TypeError(f"client cannot be combined with {', '.join(options)}")
        self._bucket, self._prefix = bucket, prefix.strip("/")
        self._root = f"{self._prefix}/" if self._prefix else ""
        self.url = f"s3://{bucket}/{self._prefix}".removesuffix("/")
        self._connection = S3Connection(self._options, client)

    @property
    def credentials_source(self) -> str:
        return self._connection.credentials_source

    def __reduce__(self) -> tuple[Any, ...]:
        if self._connection.callers_client is not None:
            raise NotPicklable(f"{self.url} was opened with client=: open it with endpoint=, region= or profile=")
        options = {name: getattr(self._options, name) for name in S3Options.__slots__}
        arguments = {name: value for name, value in options.items() if value is not None}
        return partial(S3Store, self._bucket, self._prefix, **arguments), ()

    def sibling(self, url: str) -> S3Store:
        """The store at another `s3://` URL, with the same client or options."""
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        other = S3Store(bucket, prefix)
        other._options, other._connection = self._options, self._connection
        return other

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        try:
            return self._read(key, None, None, most_bytes)
        finally:
            if log.pending:  # only here: after ranges, the engine emits events
                log.emit()

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        check_range(start, length)
        if length:
            return self._read(key, ByteSpan(start, length), etag)
        # HTTP has no empty range.
        url, info = self._url(key), self.head(key)
        check_part(url, etag, info.etag, start, length, info.size_bytes)
        return Blob(b"", info.etag, info.size_bytes)

    def _read(self, key: str, span: ByteSpan | None, etag: str | None, most_bytes: int | None = None) -> Blob:
        url, connection = self._url(key), self._connection
        request = ReadRequest(url, span, etag, most_bytes)
        try:
            transport = connection.transport(self._bucket)
            if transport is not None:
                return read_by_transport(transport, self._root + key, request)
            return read_by_boto3(connection.client(), self._target(key), request, connection.throttles)
        except Exception as error:  # as `translate_errors` does, in fewer calls
            if (translated := translate(error, url, etag, connection.client)) is None:
                raise
            raise translated from error

    @property
    def unproven_server(self) -> str:
        """The URL of the server; empty for AWS, which is known to honour conditional writes. Imports boto3."""
        client = self._connection.client()
        return "" if is_aws(client) else str(client.meta.endpoint_url)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        for attempt in range(1, _CONFLICT_ATTEMPTS):
            try:
                return self._put(key, data, if_absent=if_absent, if_match=if_match)
            except WriteConflict:
                time.sleep(uniform(0, 0.02 * 2**attempt))
        return self._put(key, data, if_absent=if_absent, if_match=if_match)

    def _put(self, key: str, data: bytes, *, if_absent: bool, if_match: str | None) -> str:
        check_write(if_absent, if_match)
        url, target = self._url(key), self._target(key)
        condition = {"IfNoneMatch": "*"} if if_absent else {}
        if if_match is not None:
            condition = {"IfMatch": f'"{if_match}"'}
        try:
            with self._client(url, etag=if_match, writing=bool(condition)) as client:
                # Servers disagree about If-Match at the end of a multipart upload, so this is one PUT of any size.
                if len(data) > _MOST_SINGLE_BYTES and if_match is None:
                    return bare_etag(_put_in_parts(client, target, data, condition), url)
                # botocore sends `Expect: 100-continue` even for an empty body, and SeaweedFS answers that in a way that
                # breaks the connection: the next request on it times out.
                body = {"Body": data} if data else {}
                response = client.put_object(**target, **body, ContentType=CONTENT_TYPE, **condition)
        except AlreadyExists:
            if if_match is not None:
                # If there is no object, AWS answers 404 and SeaweedFS 412: `head` then raises `NotFound`.
                self.head(key)
            raise
        return bare_etag(response.get("ETag"), url)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield objects page by page. A listing of another server than AWS is read whole first, to sort it (SeaweedFS
        lists `a/b` before `a-b`) and to yield each object once (a proxy may repeat a page)."""
        return self.list_usable([], prefix)

    def list_usable(self, left_out: builtins.list[str], prefix: str = "") -> Iterator[ObjectInfo]:
        url = f"{self.url}/{prefix}"
        with self._client(url) as client:
            is_sorted = is_aws(client)
            paginator = client.get_paginator("list_objects_v2")
            pages = iter(paginator.paginate(Bucket=self._bucket, Prefix=self._root + prefix))
        result = self._read_pages(pages, url, left_out)
        if is_sorted:
            return result
        by_key = {info.key: info for info in result}
        return iter([by_key[key] for key in sorted(by_key)])

    def _read_pages(self, pages: Iterator[Any], url: str, left_out: builtins.list[str]) -> Iterator[ObjectInfo]:
        while True:
            with translate_errors(url, client=self._connection.client):
                page = next(pages, None)
            if page is None:
                return
            _check_page(page, url)
            now = server_clock_seconds(page)
            for item in page.get("Contents", ()):
                key = str(item["Key"]).removeprefix(self._root)
                try:
                    check_key(key)
                except InvalidUrl:  # other verbs cannot reach it
                    left_out.append(key)
                    continue
                modified = modified_seconds(item, f"{url}{key}")
                yield ObjectInfo(key, int(item["Size"]), bare_etag(item.get("ETag"), url), modified, now)

    def head(self, key: str) -> ObjectInfo:
        url = self._url(key)
        with self._client(url) as client:
            response = client.head_object(**self._target(key))
        etag, modified = bare_etag(response.get("ETag"), url), modified_seconds(response, url)
        return ObjectInfo(key, int(response["ContentLength"]), etag, modified, server_clock_seconds(response))

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        url = self._url(key)
        condition = {} if if_match is None else {"IfMatch": f'"{if_match}"'}
        try:
            with self._client(url, etag=if_match, writing=bool(condition)) as client:
                client.delete_object(**self._target(key), **condition)
        except NotFound as error:
            if not condition or "no bucket" in str(error):
                raise
        except AlreadyExists:
            # If there is no object, AWS answers 404 and SeaweedFS 412: only another version is an error.
            try:
                self.head(key)
            except NotFound:
                return
            raise

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _client(self, url: str, *, etag: str | None = None, writing: bool = False) -> Iterator[Any]:
        with translate_errors(url, etag=etag, writing=writing, client=self._connection.client):
            yield self._connection.client()

    def _url(self, key: str) -> str:
        """The URL of an object for error messages, in one line. Raises `InvalidUrl` for an invalid key."""
        return self._display_url(check_key(key))

    def _target(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._root + key}


def _put_in_parts(client: Any, target: dict[str, str], data: bytes, condition: dict[str, str]) -> str:
    """Upload `data` in parts, several at once, and return its ETag (2 requests, and 1 per part of at least 8 MiB).

    The last request has the condition. boto3's transfer manager neither returns the ETag nor supports conditions.
    """
    from concurrent.futures import ThreadPoolExecutor  # 3 ms that readers need not pay

    part_bytes = max(_PART_BYTES, -(-len(data) // _MOST_PARTS))
    upload = {**target, "UploadId": client.create_multipart_upload(**target, ContentType=CONTENT_TYPE)["UploadId"]}

    def send(number: int) -> dict[str, Any]:
        start = (number - 1) * part_bytes
        response = client.upload_part(**upload, PartNumber=number, Body=data[start : start + part_bytes])
        return {"PartNumber": number, "ETag": response["ETag"]}

    try:
        with ThreadPoolExecutor(_PARTS_AT_ONCE, thread_name_prefix="monocontext-put") as workers:
            parts = list(workers.map(send, range(1, -(-len(data) // part_bytes) + 1)))
        response = client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, **condition)
    except BaseException:
        with suppress(Exception):
            client.abort_multipart_upload(**upload)
        raise
    return str(response["ETag"])


def _check_page(page: Any, url: str) -> None:
    """Raise `StoreFailure` for a damaged page of a listing: `gc` and `sync --delete` would treat objects as removed."""
    if "IsTruncated" not in page:
        content_type = page.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("content-type", "no content type")
        raise StoreFailure(f"{url}: expected the listing of an S3 server, found {content_type}: is there a proxy?")
    if page["IsTruncated"] and not page.get("NextContinuationToken"):
        raise StoreFailure(f"{url}: the listing is incomplete: expected a continuation token, found none")


@dataclass(slots=True)
class _ProcessState:
    """The clients of one process, and the lock under which they are made.

    Two processes that read from one inherited socket receive each other's objects without an error (reproduced with
    boto3 over plain HTTP), so each process makes its own clients after a fork.
    """

    handlers: list[Any] | None
    """Handlers that may respond instead of the network, as those of moto do; `None` if they are unknown."""
    process: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    client: Any = None
    pool: Pool | None = None
    transports: dict[str, Client | None] = field(default_factory=dict)
    """Our transports by bucket; `None` for a bucket that only boto3 can read."""


class S3Connection:
    """The boto3 client of this process, and our transport to each bucket, all made on first use."""

    def __init__(self, options: S3Options, client: Any = None) -> None:
        self.options = options
        self.callers_client = client
        """The client that the caller opened the store with, and closes; it is not replaced after a fork."""
        self.throttles = ThrottleCounter()
        if client is not None:
            self.throttles.register(client)
        self.credentials_source = ""
        """The source of the credentials that sign reads, in words; empty before the first read."""
        self._process_state = _ProcessState(find_handlers())

    def client(self) -> Any:
        """The boto3 client; the first call costs 0.3 s, most of it the import."""
        if self.callers_client is not None:
            return self.callers_client
        state = self._state()
        if state.client is None:
            with state.lock:
                if state.client is None:
                    account_of(self.options.profile)  # boto3 raises its own ValueError for a line break in a key
                    client = new_client(self.options)
                    self.throttles.register(client)
                    state.handlers = find_handlers(client)
                    state.client = client
        return state.client

    def transport(self, bucket: str) -> Client | None:
        """Our transport to a bucket; `None` if boto3 must read: an option says so, or ours cannot reach the bucket."""
        if self.callers_client is not None or self.options.transport == "boto3":
            return None
        state = self._state()
        if state.handlers is None or any(getattr(handler, "enabled", True) for handler in state.handlers):
            return None  # moto and its like intercept only requests of boto3
        if bucket not in state.transports:
            with state.lock:
                if bucket not in state.transports:
                    state.transports[bucket] = self._open(state, bucket)
        return state.transports[bucket]

    def _state(self) -> _ProcessState:
        """The state of this process; a new one after a fork."""
        state = self._process_state
        if state.process != os.getpid():
            # With a new lock: a thread that did not survive the fork may have held it.
            inherited, state = state, _ProcessState(find_handlers())
            self._process_state = state
            if inherited.pool is not None:
                inherited.pool.close()  # closes our copies of the parent's sockets
        return state

    def _open(self, state: _ProcessState, bucket: str) -> Client | None:
        """A transport to a bucket, under the lock of `state`."""
        account = account_of(self.options.profile)
        plan = account.plan(self.options, bucket)
        if plan is None:
            log.note(log.INFO, "boto3 reads from %s, not our own transport", bucket)
            self.credentials_source = "boto3, which reads from this bucket"
            return None
        self.credentials_source = plan.identity.source + (f", because {plan.reason}" if plan.reason else "")
        origin = S3Origin(self.options, bucket, account, plan)
        if state.pool is None:
            state.pool = Pool(account.tls, MAX_IDLE if self.options.keep_alive else 0)
        attempts, silence_seconds = s3_client.S3_ATTEMPTS, s3_client.READ_TIMEOUT_SECONDS
        return Client(origin, state.pool, attempts=attempts, silence_seconds=silence_seconds)

    def close(self) -> None:
        """Close the connections; later requests open new ones. The client of the caller stays open."""
        state, self._process_state = self._process_state, _ProcessState(find_handlers())
        if state.pool is not None:
            state.pool.close()
        if state.client is not None and state.process == os.getpid():
            state.client.close()


def find_handlers(client: Any = None) -> list[Any] | None:
    """The handlers of a client, by default of a new one, that may respond instead of the network, as those of moto do.
    `None` if botocore does not let us find them; empty before botocore is imported."""
    try:
        if client is not None:
            return list(client.meta.events._emitter._handlers.prefix_search(BEFORE_SEND))
        module = sys.modules.get("botocore.handlers")
        return [item[1] for item in module.BUILTIN_HANDLERS if item[0].startswith("before-send")] if module else []
    except AttributeError:
        return None
