"""Give a client of aioboto3 the methods of a boto3 client that `S3Store` calls to read."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import wait
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from monocontext.engine.fetch.workers import LOOK_SECONDS


class BlockingClient:
    """Lets other threads call an aioboto3 client as they call boto3's. Made in the running event loop of the client."""

    def __init__(self, client: Any) -> None:
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()
        self._client, self.meta = client, client.meta

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        while not wait([future], LOOK_SECONDS).done:
            if self._loop.is_closed() or get_ident() == self._thread:  # it carries nothing out any longer
                raise ConnectionError("the event loop of the client is closed, or this call blocks it: await reads")
        return future.result()

    def get_object(self, **arguments: Any) -> Any:
        answer = self._wait(self._client.get_object(**arguments))
        body = answer["Body"]
        return answer | {"Body": SimpleNamespace(read=lambda: self._read(body), close=body.close)}

    def _read(self, body: Any) -> Any:
        from aiohttp import ClientError  # aiobotocore, which made the body, needs it too

        try:
            return self._wait(body.read())
        except ClientError as error:  # aiobotocore does not translate all errors of aiohttp
            raise ConnectionError(str(error) or type(error).__name__) from error

    def head_object(self, **arguments: Any) -> Any:
        return self._wait(self._client.head_object(**arguments))

    def get_paginator(self, name: str) -> Any:
        async def paginate(**arguments: Any) -> list[Any]:
            return [page async for page in self._client.get_paginator(name).paginate(**arguments)]

        return SimpleNamespace(paginate=lambda **arguments: self._wait(paginate(**arguments)))
