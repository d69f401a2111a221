"""Stores for the asynchronous engine: the same verbs, each of them awaited by the crew.

S3 is asked through aioboto3, whose client has a face here that the store of the synchronous path takes for boto3's. So
what is asked, what is believed of an answer, and what an error becomes are the same. Other stores run in a few threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, TypeVar

from monocontext.aio.crew import Crew
from monocontext.store import Blob, ObjectInfo, Store
from monocontext.stores.s3 import S3Store
from monocontext.stores.s3_answers import Span
from monocontext.stores.s3_client import S3Options, is_aws, region_of, settings
from monocontext.stores.s3_errors import typed
from monocontext.stores.s3_reads import read_by_boto3

T = TypeVar("T")

FILE_THREADS = 8
"""For stores that can only be waited for in a thread: directories, memory, those of the caller. However many read."""


class AsyncS3Store(S3Store):
    """An `S3Store` whose requests are made by an aioboto3 client."""

    def __init__(self, bucket: str, prefix: str, crew: Crew, client: Any, options: S3Options) -> None:
        super().__init__(bucket, prefix, client=_Client(crew, client))
        self._options = options
        self._crew = crew

    def sibling(self, url: str) -> AsyncS3Store:
        at = super().sibling(url)
        face: _Client = self._connection.given
        return AsyncS3Store(at._address.place, at._address.path, self._crew, face.client, self._options)

    def _read(self, key: str, span: Span | None, etag: str | None) -> Blob:
        url, connection = self._url(key), self._connection
        with typed(url, etag=etag):
            return read_by_boto3(
                connection.client(), self._target(key), url, span, etag, connection.refusals, self._crew.pause
            )


class _Client:
    """What `S3Store` asks of a boto3 client, answered by an aioboto3 one."""

    def __init__(self, crew: Crew, client: Any) -> None:
        self.client = client
        self._wait_for: Callable[[Any], Any] = crew.wait_for
        self.meta = client.meta

    def get_object(self, **asked: Any) -> Any:
        answer = self._wait_for(self.client.get_object(**asked))
        return answer | {"Body": _Body(self._wait_for, answer["Body"])}

    def head_object(self, **asked: Any) -> Any:
        return self._wait_for(self.client.head_object(**asked))

    def get_paginator(self, name: str) -> _Paginator:
        return _Paginator(self._wait_for, self.client.get_paginator(name))


class _Body:
    def __init__(self, wait_for: Callable[[Any], Any], body: Any) -> None:
        self._wait_for = wait_for
        self._body = body

    def read(self) -> bytes:
        cut: type[Exception] = import_module("aiohttp").ClientError
        try:
            data: bytes = self._wait_for(self._body.read())
        except cut as error:  # not all of aiohttp's errors are made those of botocore
            raise ConnectionError(str(error) or type(error).__name__) from error
        return data

    def close(self) -> None:
        self._body.close()


class _Paginator:
    def __init__(self, wait_for: Callable[[Any], Any], paginator: Any) -> None:
        self._wait_for = wait_for
        self._paginator = paginator

    def paginate(self, **asked: Any) -> Iterator[Any]:
        pages = aiter(self._paginator.paginate(**asked))
        while (page := self._wait_for(anext(pages, None))) is not None:
            yield page


async def connect(options: S3Options) -> tuple[Any, Any]:
    """An aioboto3 client with the credential chain and configuration of the boto3 one, and what to leave it by."""
    session = import_module("aioboto3").Session(profile_name=options.profile)
    make_config = import_module("aiobotocore.config").AioConfig

    async def make(style: str) -> tuple[Any, Any]:
        config = make_config(**settings(options, style))
        region = region_of(options, session)
        held = session.client("s3", region_name=region, endpoint_url=options.endpoint, config=config)
        return await held.__aenter__(), held

    if options.path_style is not None:
        return await make("path" if options.path_style else "virtual")
    if options.endpoint:
        return await make("path")
    client, held = await make("auto")
    if is_aws(client):
        return client, held
    await held.__aexit__(None, None, None)
    return await make("path")


class AsideStore:
    """Any other store, asked in a thread of a small pool while the loop goes on. Only the verbs that reading takes."""

    def __init__(self, store: Store, crew: Crew) -> None:
        self.store = store
        self.is_near: bool = getattr(store, "is_near", False)
        self._crew = crew
        self._pool = ThreadPoolExecutor(FILE_THREADS, "monocontext-aio-store")

    @property
    def url(self) -> str:
        return self.store.url

    def get(self, key: str) -> Blob:
        return self._aside(lambda: self.store.get(key))

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._aside(lambda: self.store.get_range(key, start, length, etag=etag))

    def head(self, key: str) -> ObjectInfo:
        return self._aside(lambda: self.store.head(key))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return iter(self._aside(lambda: list(self.store.list(prefix))))

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        return self._aside(lambda: self.store.put(key, data, if_absent=if_absent, if_match=if_match))

    def delete(self, key: str) -> None:
        self._aside(lambda: self.store.delete(key))

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        self.store.close()

    def _aside(self, work: Callable[[], T]) -> T:
        import asyncio

        return self._crew.wait_for(asyncio.get_running_loop().run_in_executor(self._pool, work))
