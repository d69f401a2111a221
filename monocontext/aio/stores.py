"""Stores for the asynchronous engine.

Their methods look synchronous: each is called in a greenlet, which is suspended until its request ends, while the event
loop runs.

`ThreadedStore` runs any synchronous store in a pool of threads. `AsyncS3Store` uses an aioboto3 client of the caller,
wrapped as a boto3 client, so the requests, checks and errors are those of `S3Store`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, TypeVar

from monocontext.aio.greenlets import GreenletWorkers
from monocontext.stores.protocol import Blob, ObjectInfo, Store, StoreWrapper
from monocontext.stores.s3.errors import translate_errors
from monocontext.stores.s3.options import S3Options
from monocontext.stores.s3.reads import Span, read_by_boto3
from monocontext.stores.s3.store import S3Store

T = TypeVar("T")

NEAR_THREADS = 8
"""Threads for a store in memory or on this machine (`is_near`); other stores get one for each request that may run."""


class AsyncS3Store(S3Store):
    """An `S3Store` that sends its requests with an aioboto3 client, which the caller closes.

    `options`: those of stores made by `sibling`.
    """

    def __init__(self, bucket: str, prefix: str, workers: GreenletWorkers, client: Any, options: S3Options) -> None:
        super().__init__(bucket, prefix, client=_Client(workers, client))
        self._options = options
        self._workers = workers

    def sibling(self, url: str) -> AsyncS3Store:
        offset = super().sibling(url)
        shim: _Client = self._connection.given
        return AsyncS3Store(offset._bucket, offset._prefix, self._workers, shim.client, self._options)

    def _read(self, key: str, span: Span | None, etag: str | None, most_bytes: int | None = None) -> Blob:
        url, connection = self._url(key, span), self._connection
        with translate_errors(url, etag=etag, client=connection.client):
            return read_by_boto3(
                connection.client(), self._target(key), url, span, etag, connection.throttles, most_bytes,
                self._workers.pause,
            )  # fmt: skip


class _Client:
    """An aioboto3 client with the methods of a boto3 client that `S3Store` calls."""

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
    """The body of an answer. `read` raises `ConnectionError` if the connection breaks."""

    def __init__(self, wait_for: Callable[[Any], Any], body: Any) -> None:
        self._wait_for = wait_for
        self._body = body

    def read(self) -> bytes:
        cut: type[Exception] = import_module("aiohttp").ClientError
        try:
            data: bytes = self._wait_for(self._body.read())
        except cut as error:  # aiobotocore does not translate all errors of aiohttp
            raise ConnectionError(str(error) or type(error).__name__) from error
        return data

    def close(self) -> None:
        self._body.close()


class _Paginator:
    """A paginator whose pages are awaited one by one."""

    def __init__(self, wait_for: Callable[[Any], Any], paginator: Any) -> None:
        self._wait_for = wait_for
        self._paginator = paginator

    def paginate(self, **arguments: Any) -> Iterator[Any]:
        pages = aiter(self._paginator.paginate(**arguments))
        while (page := self._wait_for(anext(pages, None))) is not None:
            yield page


class ThreadedStore(StoreWrapper):
    """A synchronous store whose methods run in a pool of threads while the event loop runs.

    A request that is abandoned before a thread takes it is never sent. A running one ends by itself, and its bytes are
    dropped.
    """

    def __init__(self, store: Store, workers: GreenletWorkers) -> None:
        super().__init__(store)
        self._workers = workers
        threads = NEAR_THREADS if self.is_near else workers.max_running
        self._pool = ThreadPoolExecutor(threads, "monocontext-aio-store")

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        return self._run_in_thread(lambda: self.store.get(key, most_bytes=most_bytes))

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._run_in_thread(lambda: self.store.get_range(key, start, length, etag=etag))

    def head(self, key: str) -> ObjectInfo:
        return self._run_in_thread(lambda: self.store.head(key))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects at once: the whole listing is read before the first is returned."""
        return iter(self._run_in_thread(lambda: list(self.store.list(prefix))))

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        return self._run_in_thread(lambda: self.store.put(key, data, if_absent=if_absent, if_match=if_match))

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        self._run_in_thread(lambda: super(ThreadedStore, self).delete(key, if_match=if_match))

    def close(self) -> None:
        """Drop requests that have not started, wait for none, and close the store."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.store.close()

    def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in the pool, and suspend this greenlet until it ends. Raises what `work` raises."""
        import asyncio

        return self._workers.wait_for(asyncio.get_running_loop().run_in_executor(self._pool, work))
