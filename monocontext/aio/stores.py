"""Stores for the asynchronous engine: each verb hands its request to the event loop and waits in its greenlet.

S3 is read through aioboto3, whose client looks here like a boto3 client to the synchronous `S3Store`. So requests,
checks and errors are the same. Other stores run in a few threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

from monocontext.aio.greenlets import GreenletWorkers
from monocontext.errors import AccessDenied
from monocontext.stores.protocol import Blob, ObjectInfo, Store
from monocontext.stores.s3.account import account_of
from monocontext.stores.s3.client import is_aws, region_of, settings
from monocontext.stores.s3.errors import translate_errors
from monocontext.stores.s3.headers import Span
from monocontext.stores.s3.identity.reasons import NoIdentity
from monocontext.stores.s3.options import S3Options
from monocontext.stores.s3.reads import read_by_boto3
from monocontext.stores.s3.store import S3Store

T = TypeVar("T")

FILE_THREADS = 8
"""Threads for all other stores (directories, memory, those of the caller), however many tasks read."""


class AsyncS3Store(S3Store):
    """An `S3Store` whose requests are made by an aioboto3 client."""

    def __init__(self, bucket: str, prefix: str, workers: GreenletWorkers, client: Any, options: S3Options) -> None:
        super().__init__(bucket, prefix, client=_Client(workers, client))
        self._options = options
        self._workers = workers

    def sibling(self, url: str) -> AsyncS3Store:
        at = super().sibling(url)
        shim: _Client = self._connection.given
        return AsyncS3Store(at._address.place, at._address.path, self._workers, shim.client, self._options)

    def _read(self, key: str, span: Span | None, etag: str | None, most_bytes: int | None = None) -> Blob:
        url, connection = self._url(key), self._connection
        with translate_errors(url, etag=etag, client=connection.client):
            return read_by_boto3(
                connection.client(), self._target(key), url, span, etag, connection.throttles, most_bytes,
                self._workers.pause,
            )  # fmt: skip


class _Client:
    """The part of a boto3 client that `S3Store` uses, over an aioboto3 client."""

    def __init__(self, workers: GreenletWorkers, client: Any) -> None:
        self.client = client
        self._wait_for: Callable[[Any], Any] = workers.wait_for
        self.meta = client.meta

    def get_object(self, **arguments: Any) -> Any:
        answer = self._wait_for(self.client.get_object(**arguments))
        return answer | {"Body": _Body(self._wait_for, answer["Body"])}

    def head_object(self, **arguments: Any) -> Any:
        return self._wait_for(self.client.head_object(**arguments))

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
        except cut as error:  # aiobotocore does not turn all errors of aiohttp into those of botocore
            raise ConnectionError(str(error) or type(error).__name__) from error
        return data

    def close(self) -> None:
        self._body.close()


class _Paginator:
    def __init__(self, wait_for: Callable[[Any], Any], paginator: Any) -> None:
        self._wait_for = wait_for
        self._paginator = paginator

    def paginate(self, **arguments: Any) -> Iterator[Any]:
        pages = aiter(self._paginator.paginate(**arguments))
        while (page := self._wait_for(anext(pages, None))) is not None:
            yield page


async def connect(options: S3Options) -> tuple[Any, Any]:
    """An aioboto3 client with the credential chain and configuration of the boto3 one, and its context manager."""
    try:
        session = import_module("aioboto3").Session(profile_name=options.profile)
    except ModuleNotFoundError as error:
        if error.name != "aioboto3":
            raise
        raise ModuleNotFoundError(
            "s3:// here needs aioboto3: pip install 'monocontext[async]'", name="aioboto3"
        ) from None
    try:
        account_of(options.profile)
    except NoIdentity as error:
        raise AccessDenied(f"no credentials: {error}") from None
    make_config = import_module("aiobotocore.config").AioConfig
    http_session = _session_without_redirects()

    async def make(style: str) -> tuple[Any, Any]:
        config = make_config(http_session_cls=http_session, **settings(options, style))
        region = region_of(options, session)
        manager = session.client("s3", region_name=region, endpoint_url=options.endpoint, config=config)
        return await manager.__aenter__(), manager

    if options.path_style is not None:
        return await make("path" if options.path_style else "virtual")
    if options.endpoint:
        return await make("path")
    client, manager = await make("auto")
    if is_aws(client):
        return client, manager
    await manager.__aexit__(None, None, None)
    return await make("path")


def _session_without_redirects() -> Any:
    """The HTTP session of aiobotocore, but it follows no redirect: aiohttp would take the session token along to any
    host. botocore sees the answer, and asks again in another region where that is what it means."""
    base: Any = import_module("aiobotocore.httpsession").AIOHTTPSession

    class Session(base):  # type: ignore[misc]
        async def _get_session(self, proxy_url: str | None) -> Any:
            inner = await super()._get_session(proxy_url)
            return SimpleNamespace(request=partial(inner.request, allow_redirects=False))

    return Session


class ThreadedStore:
    """Any other store, run in a small pool of threads while the loop goes on. Has only the verbs that reading needs."""

    def __init__(self, store: Store, workers: GreenletWorkers) -> None:
        self.store = store
        self.is_near: bool = getattr(store, "is_near", False)
        self._workers = workers
        self._pool = ThreadPoolExecutor(FILE_THREADS, "monocontext-aio-store")

    @property
    def url(self) -> str:
        return self.store.url

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._run_in_thread(lambda: self.store.get(key, most_bytes=most_bytes))

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._run_in_thread(lambda: self.store.get_range(key, start, length, etag=etag))

    def head(self, key: str) -> ObjectInfo:
        return self._run_in_thread(lambda: self.store.head(key))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return iter(self._run_in_thread(lambda: list(self.store.list(prefix))))

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        return self._run_in_thread(lambda: self.store.put(key, data, if_absent=if_absent, if_match=if_match))

    def delete(self, key: str) -> None:
        self._run_in_thread(lambda: self.store.delete(key))

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        self.store.close()

    def _run_in_thread(self, work: Callable[[], T]) -> T:
        import asyncio

        return self._workers.wait_for(asyncio.get_running_loop().run_in_executor(self._pool, work))
