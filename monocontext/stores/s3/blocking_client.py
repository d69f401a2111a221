"""Call an aioboto3 client from other threads, through the methods of a boto3 client that `S3Store` reads with."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import wait
from threading import get_ident
from types import SimpleNamespace
from typing import Any

_CHECK_SECONDS = 0.25  # the interval at which a waiting thread checks whether the event loop was closed
_CLOSED = "the event loop of the client is closed: create the client in the running event loop"
_BLOCKED = "a synchronous read blocks the event loop of its client: use the asynchronous methods, and await them"


class BlockingClient:
    """An aioboto3 client that other threads call like a boto3 client. Create it in the running event loop."""

    def __init__(self, client: Any) -> None:
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()
        self._client, self.meta = client, client.meta

    def get_object(self, **arguments: Any) -> Any:
        answer = self._wait(self._client.get_object(**arguments))
        body = answer["Body"]
        return answer | {"Body": SimpleNamespace(read=lambda: self._read(body), close=body.close)}

    def get_paginator(self, name: str) -> Any:
        async def paginate(**arguments: Any) -> list[Any]:
            return [page async for page in self._client.get_paginator(name).paginate(**arguments)]

        return SimpleNamespace(paginate=lambda **arguments: self._wait(paginate(**arguments)))

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the loop of the client, and wait for it in this thread."""
        if get_ident() == self._thread and not self._loop.is_closed():
            work.close()
            raise ConnectionError(_BLOCKED)
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise ConnectionError(_CLOSED) from error
        while not wait([future], _CHECK_SECONDS).done:
            if self._loop.is_closed():
                raise ConnectionError(_CLOSED)
        return future.result()

    def _read(self, body: Any) -> Any:
        from aiohttp import ClientError  # aiobotocore, which made the body, needs it too

        try:
            return self._wait(body.read())
        except ClientError as error:  # aiobotocore does not translate all errors of aiohttp
            raise ConnectionError(str(error) or type(error).__name__) from error
