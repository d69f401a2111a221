"""Where reads go through boto3 by themselves: under moto, with a client of the caller's, and where asked."""

from __future__ import annotations

import boto3
import moto
import pytest
from botocore.stub import Stubber

from monocontext.stores import open_store
from monocontext.stores.s3.store import S3Store

from .object_server import ObjectServer

URL = "s3://bucket/ctx"


def open_bucket(url: str = URL, **options: object) -> S3Store:
    store = open_store(url, **options)
    assert isinstance(store, S3Store)
    return store


def test_a_mock_entered_after_the_store_was_used() -> None:
    with ObjectServer(b"from the server") as server:
        store = open_bucket(endpoint=server.endpoint)
        assert store.get("a").data == b"from the server"
        transport = store._connection.transport("bucket")
        assert transport is not None
        with moto.mock_aws(config={"core": {"mock_credentials": False}}):
            assert store._connection.transport("bucket") is None
            # moto leaves addresses alone that are not AWS's: boto3 goes there itself.
            assert store.get("a").data == b"from the server"
            assert "Boto3" in server.asked[-1].headers["user-agent"]
        assert store._connection.transport("bucket") is transport
        assert store.get("a").data == b"from the server"
        assert [item.headers["user-agent"] for item in server.asked[::2]] == ["monocontext"] * 2


def test_a_client_of_the_callers_is_used_for_reads_too() -> None:
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s")
    store = open_bucket(client=client)
    assert store._connection.transport("bucket") is None
    with Stubber(client) as stub:
        stub.add_client_error("get_object", "NoSuchKey", http_status_code=404)
        with pytest.raises(FileNotFoundError):
            store.get("a")


def test_boto3_where_it_is_asked_for() -> None:
    with ObjectServer(b"abcdef") as server:
        store = open_bucket(endpoint=server.endpoint, transport="boto3")
        assert (store.get_range("a", 1, 2).data, store.get("a").data) == (b"bc", b"abcdef")
        assert all("Boto3" in item.headers["user-agent"] for item in server.asked)
    with pytest.raises(ValueError, match="transport must be 'own' or 'boto3', not 'curl'"):
        open_store(URL, transport="curl")
