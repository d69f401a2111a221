"""`s3://bucket/prefix`: GETs by our own transport, the rest through boto3. No byte is believed before its head is.

Readers in use return zeros or other bytes without an error when a server shortens a range, ignores it, or when an
object is replaced between two requests. Here a range is pinned to its ETag, and status, Content-Range, length and ETag
must be as asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from monocontext.errors import AlreadyExists, InvalidUrl, NotFound, NotPicklable
from monocontext.store import CONTENT_TYPE, Blob, ObjectInfo
from monocontext.stores.address import Address, parse
from monocontext.stores.checks import check_end, check_range, check_version, check_write, usable_key
from monocontext.stores.s3_answers import Span, answered_at, bare_etag
from monocontext.stores.s3_client import S3Connection, S3Options, is_aws
from monocontext.stores.s3_errors import typed
from monocontext.stores.s3_multipart import THRESHOLD_BYTES, put_in_parts
from monocontext.stores.s3_reads import read_by_boto3, read_by_transport


class S3Store:
    """Objects below a prefix of one bucket. No request and no import of boto3 before the first verb.

    A conditional `put` whose reply was lost is repeated by botocore and then meets its own object: it raises
    `AlreadyExists` although it wrote. Who must know reads the object back.
    """

    def __init__(self, bucket: str, prefix: str = "", *, client: Any = None, **options: Any) -> None:
        self._options = S3Options(**options)
        if client is not None and options:
            raise TypeError(f"a ready client excludes {', '.join(options)}")
        self._address = Address("s3", bucket, prefix.strip("/"))
        self._root = self._address.path + "/" if self._address.path else ""
        self._connection = S3Connection(self._options, client)

    @property
    def url(self) -> str:
        return str(self._address)

    def __repr__(self) -> str:
        at = f" at {self._options.endpoint}" if self._options.endpoint else ""
        return f"<S3Store {self.url}{at}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._connection.given is not None:
            raise NotPicklable(f"{self.url} was opened with a ready client: open it with endpoint=, region=, profile=")
        return _reopen, (self._address.place, self._address.path, self._options)

    def sibling(self, url: str) -> S3Store:
        """The store at another `s3://` place, with the same client or options."""
        address = parse(url)
        other = S3Store(address.place, address.path)
        other._options, other._connection = self._options, self._connection
        return other

    def get(self, key: str) -> Blob:
        return self._read(key, None, None)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        check_range(start, length)
        if length == 0:
            # HTTP has no empty range.
            url, info = self._url(key), self.head(key)
            check_version(url, etag, info.etag)
            check_end(url, start, length, info.size_bytes)
            return Blob(b"", info.etag, info.size_bytes)
        return self._read(key, (start, length), etag)

    def _read(self, key: str, span: Span | None, etag: str | None) -> Blob:
        url = self._url(key)
        with typed(url, etag=etag):
            transport = self._connection.transport(self._address.place)
            if transport is None:
                connection = self._connection
                return read_by_boto3(connection.client(), self._target(key), url, span, etag, connection.refusals)
            return read_by_transport(transport, self._root + key, url, span, etag)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        check_write(if_absent, if_match)
        url, target = self._url(key), self._target(key)
        condition = {"IfNoneMatch": "*"} if if_absent else {"IfMatch": f'"{if_match}"'} if if_match is not None else {}
        try:
            with self._client(url, etag=if_match, writing=bool(condition)) as client:
                # Servers disagree about If-Match on the end of an upload in parts: there, one PUT whatever the size.
                if len(data) > THRESHOLD_BYTES and if_match is None:
                    return bare_etag(put_in_parts(client, target, data, condition), url)
                answer = client.put_object(**target, Body=data, ContentType=CONTENT_TYPE, **condition)
        except AlreadyExists:
            if if_match is not None:
                # AWS says 404 where there is no object, SeaweedFS 412: look, so that the caller can tell.
                self.head(key)
            raise
        return bare_etag(answer.get("ETag"), url)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """From AWS page by page. Other servers are asked for all pages first: SeaweedFS sends folder by folder, `a/b`
        before `a-b`, and key order is ours to keep."""
        url = f"{self.url}/{prefix}"
        with self._client(url) as client:
            ordered = is_aws(client)
            paginator = client.get_paginator("list_objects_v2")
            pages = iter(paginator.paginate(Bucket=self._address.place, Prefix=self._root + prefix))
        found = self._listed(pages, url)
        return found if ordered else iter(sorted(found, key=lambda info: info.key))

    def _listed(self, pages: Iterator[Any], url: str) -> Iterator[ObjectInfo]:
        while True:
            with typed(url):
                page = next(pages, None)
            if page is None:
                return
            now = answered_at(page)
            for each in page.get("Contents", ()):
                key = str(each["Key"]).removeprefix(self._root)
                if _is_usable(key):
                    modified = each["LastModified"].timestamp()
                    yield ObjectInfo(key, int(each["Size"]), bare_etag(each.get("ETag"), url), modified, now)

    def head(self, key: str) -> ObjectInfo:
        url = self._url(key)
        with self._client(url) as client:
            answer = client.head_object(**self._target(key))
        etag, modified = bare_etag(answer.get("ETag"), url), answer["LastModified"].timestamp()
        return ObjectInfo(key, int(answer["ContentLength"]), etag, modified, answered_at(answer))

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        url, condition = self._url(key), {} if if_match is None else {"IfMatch": f'"{if_match}"'}
        try:
            with self._client(url, etag=if_match, writing=bool(condition)) as client:
                client.delete_object(**self._target(key), **condition)
        except NotFound as error:
            if not condition or "no bucket" in str(error):
                raise
        except AlreadyExists:
            # Of an object that is gone AWS says 404, SeaweedFS 412: look, so that the caller can tell.
            try:
                self.head(key)
            except NotFound:
                return
            raise

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _client(self, url: str, *, etag: str | None = None, writing: bool = False) -> Iterator[Any]:
        with typed(url, etag=etag, writing=writing):
            yield self._connection.client()

    def _url(self, key: str) -> str:
        return f"{self.url}/{usable_key(key)}"

    def _target(self, key: str) -> dict[str, str]:
        return {"Bucket": self._address.place, "Key": self._root + key}


def _reopen(bucket: str, prefix: str, options: S3Options) -> S3Store:
    given = {name: getattr(options, name) for name in options.__slots__ if getattr(options, name) is not None}
    return S3Store(bucket, prefix, **given)


def _is_usable(key: str) -> bool:
    """Whether the other verbs could reach the key; the `folder/` markers of consoles are not objects here."""
    try:
        return bool(usable_key(key))
    except InvalidUrl:
        return False
