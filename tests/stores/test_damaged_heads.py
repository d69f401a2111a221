"""A response whose head is damaged is a failure of the store, by way of boto3 too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monocontext.errors import StoreFailure
from monocontext.stores import open_store
from monocontext.testing import HttpFault, S3StandIn
from monocontext.testing.http_faults import HttpReply


def _spoil_the_date(reply: HttpReply) -> HttpReply:
    return replace(reply, headers={**reply.headers, "Last-Modified": "W?d, 25 Nov 2026 06:41:50 GMT"})


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")


def test_a_date_that_is_none() -> None:
    with S3StandIn({"ctx/key": b"hello"}) as server:
        store = open_store(server.url("ctx"), endpoint=server.endpoint, transport="boto3")
        server.faults.add(HttpFault("no date", change=_spoil_the_date), verb="*", times=None)
        for ask in (store.head, store.get):
            with pytest.raises(StoreFailure, match="ctx/key: the response is damaged: Invalid timestamp"):
                ask("key")


def _without_date(reply: HttpReply) -> HttpReply:
    return replace(reply, headers={name: value for name, value in reply.headers.items() if name != "Last-Modified"})


def test_a_date_that_is_missing() -> None:
    with S3StandIn({"ctx/key": b"hello"}) as server:
        store = open_store(server.url("ctx"), endpoint=server.endpoint, transport="boto3")
        server.faults.add(HttpFault("no date", change=_without_date), verb="*", times=None)
        with pytest.raises(StoreFailure, match="ctx/key: the response is damaged: it has no Last-Modified"):
            store.head("key")
