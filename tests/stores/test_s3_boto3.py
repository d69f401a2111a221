"""What boto3 leaves behind, and what is taken care of: sockets that stay open, models read again, refusals unsaid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from monocontext.errors import MonocontextError, StoreFailure
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.stores.s3 import client as s3_client
from monocontext.stores.s3.reads import ReadRequest, ThrottleCounter, read_by_boto3
from monocontext.testing import HttpFault, S3StandIn
from monocontext.testing.http_faults import HttpReply, refuse, slow_down


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3StandIn]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_EC2_METADATA_DISABLED": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with S3StandIn({"a": b"0123456789" * 1000}) as result:
        yield result


def by_boto3(server: S3StandIn) -> Store:
    return open_store(server.url(), endpoint=server.endpoint, transport="boto3")


class Interrupted(BaseException):
    """As `KeyboardInterrupt` and `CancelledError` are: no `Exception`."""


class BreakingBody:
    is_closed = False

    def read(self) -> bytes:
        raise Interrupted

    def close(self) -> None:
        self.is_closed = True


class BreakingClient:
    def __init__(self) -> None:
        self.body = BreakingBody()

    def get_object(self, **_: str) -> dict[str, object]:
        return {"Body": self.body, "ResponseMetadata": {"HTTPStatusCode": 200}, "ContentLength": 10, "ETag": '"e"'}


def test_an_interrupt_closes_the_body() -> None:
    """What aiohttp finds unclosed it tells the loop's handler of, and the socket lives as long as what was told."""
    client = BreakingClient()
    with pytest.raises(Interrupted):
        read_by_boto3(client, {"Bucket": "b", "Key": "a"}, ReadRequest("s3://b/a"), ThrottleCounter())
    assert client.body.is_closed


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["own", "boto3"])
def test_refusals_that_retries_outlast_are_told(server: S3StandIn, transport: str) -> None:
    store = open_store(server.url(), endpoint=server.endpoint, transport=transport)
    assert store.get_range("a", 0, 10).refusals == 0
    server.faults.add(slow_down(), times=2)
    assert store.get_range("a", 0, 10).refusals == 2
    server.faults.add(refuse(500, "InternalError"))
    assert store.get_range("a", 0, 10).refusals == 0
    server.faults.add(refuse(429, "TooManyRequests"), times=1)
    if transport == "own":  # botocore's standard mode goes by the code here, and gives up
        assert store.get_range("a", 0, 10).refusals == 1


@pytest.mark.parametrize("transport", ["own", "boto3"])
def test_refusals_that_last_are_told_by_the_error(
    server: S3StandIn, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "S3_ATTEMPTS", 2)
    server.faults.add(slow_down(), times=None)
    with pytest.raises(MonocontextError, match="SlowDown") as caught:
        open_store(server.url(), endpoint=server.endpoint, transport=transport).get_range("a", 0, 10)
    assert getattr(caught.value, "refusals") == (2 if transport == "own" else 1)  # noqa: B009


@pytest.mark.parametrize(
    ("date", "said"), [("W?d, 25 Nov 2026 06:41:50 GMT", "Invalid timestamp"), ("", "it has no Last-Modified")]
)
def test_a_response_whose_head_is_damaged_is_a_failure_of_the_store(server: S3StandIn, date: str, said: str) -> None:
    def spoil(reply: HttpReply) -> HttpReply:
        headers = {name: value for name, value in reply.headers.items() if name != "Last-Modified"}
        return replace(reply, headers=headers | ({"Last-Modified": date} if date else {}))

    store = by_boto3(server)
    server.faults.add(HttpFault("no date", change=spoil), verb="*", times=None)
    for ask in (store.head, store.get) if date else (store.head,):
        with pytest.raises(MonocontextError, match=f"/a: the response is damaged: {said}") as caught:
            ask("a")
        assert isinstance(caught.value, StoreFailure)
