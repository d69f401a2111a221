"""Give a client of aioboto3 the methods of a boto3 client that `S3Store` calls.

A thread that calls one waits while the event loop of the client carries the request out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from monocontext.engine.fetch.workers import LOOK_SECONDS

Wait = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine on the event loop, and waits for its result in another thread."""


class BlockingClient:
    """An aioboto3 client for other threads than that of its event loop, which must be running now."""

    def __init__(self, client: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = client
        self.meta = client.meta

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        while True:
            try:
                return future.result(LOOK_SECONDS)
            except TimeoutError:
                if future.done():
                    return future.result()
                if self._loop.is_closed():  # it carries nothing out any longer
                    raise ConnectionError("the event loop of the client is closed") from None

    def get_object(self, **arguments: Any) -> Any:
        answer = self._wait(self._client.get_object(**arguments))
        return answer | {"Body": _Body(self._wait, answer["Body"])}

    def head_object(self, **arguments: Any) -> Any:
        return self._wait(self._client.head_object(**arguments))

    def get_paginator(self, name: str) -> _Paginator:
        return _Paginator(self._wait, self._client.get_paginator(name))


class _Body:
    """The body of an answer. `read` raises `ConnectionError` if the connection breaks."""

    def __init__(self, wait: Wait, body: Any) -> None:
        self._wait, self._body = wait, body

    def read(self) -> bytes:
        from aiohttp import ClientError  # aiobotocore, which made the body, needs it too

        try:
            data: bytes = self._wait(self._body.read())
        except ClientError as error:  # aiobotocore does not translate all errors of aiohttp
            raise ConnectionError(str(error) or type(error).__name__) from error
        return data

    def close(self) -> None:
        self._body.close()


class _Paginator:
    """A paginator whose pages are awaited one by one."""

    def __init__(self, wait: Wait, paginator: Any) -> None:
        self._wait, self._paginator = wait, paginator

    def paginate(self, **arguments: Any) -> Iterator[Any]:
        pages = aiter(self._paginator.paginate(**arguments))

        async def following() -> Any:
            return await anext(pages, None)

        while (page := self._wait(following())) is not None:
            yield page
