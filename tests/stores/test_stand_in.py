"""The stand-in is S3 enough for boto3 and for us, errs as told, and waits as its profile says."""

from __future__ import annotations

import socket
import statistics
from contextlib import suppress
from random import Random
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from monocontext.testing import PROFILES, S3StandIn, http_faults, profile
from monocontext.testing.http_faults import HttpFault

DATA = Random(7).randbytes(100_000)


def boto3_client(server: S3StandIn, read_timeout: float = 5) -> Any:
    config = Config(retries={"total_max_attempts": 1}, read_timeout=read_timeout, s3={"addressing_style": "path"})
    return boto3.client("s3", endpoint_url=server.endpoint, region_name="us-east-1", config=config)


def ask(server: S3StandIn, head: str, seconds: float = 20) -> bytes:
    """What comes back for a request, to the end of the connection or until nothing more comes."""
    with socket.create_connection(("127.0.0.1", int(server.endpoint.rpartition(":")[2]))) as sock:
        sock.settimeout(seconds)
        said = b""
        with suppress(TimeoutError, ConnectionError):
            sock.sendall((head + "\r\nConnection: close\r\n\r\n").encode())
            while piece := sock.recv(65536):
                said += piece
        return said


def test_boto3_finds_a_bucket() -> None:
    with S3StandIn({"a/x": b"0123456789", "a/y/1": b"", "b": DATA}) as server:
        client = boto3_client(server)
        whole = client.get_object(Bucket="bucket", Key="b")
        assert (whole["Body"].read(), whole["ContentLength"]) == (DATA, len(DATA))
        part = client.get_object(
            Bucket="bucket",
            Key="a/x",
            Range="bytes=2-4",
            IfMatch=client.head_object(Bucket="bucket", Key="a/x")["ETag"],
        )
        assert (part["Body"].read(), part["ContentRange"]) == (b"234", "bytes 2-4/10")
        assert client.get_object(Bucket="bucket", Key="a/x", Range="bytes=-3")["Body"].read() == b"789"
        assert client.get_object(Bucket="bucket", Key="a/x", Range="bytes=7-99")["Body"].read() == b"789"
        for key, changes, code in (
            ("a/x", {"Range": "bytes=10-"}, "InvalidRange"),
            ("a/x", {"IfMatch": '"other"'}, "PreconditionFailed"),
            ("none", {}, "NoSuchKey"),
        ):
            with pytest.raises(ClientError, match=code):
                client.get_object(Bucket="bucket", Key=key, **changes)
        with pytest.raises(ClientError, match="NoSuchBucket"):
            client.get_object(Bucket="another", Key="b")
        pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket", PaginationConfig={"PageSize": 1})
        assert [[item["Key"] for item in page["Contents"]] for page in pages] == [["a/x"], ["a/y/1"], ["b"]]
        assert server.counts == {"GET": 8, "HEAD": 1, "LIST": 3}
        assert server.bytes_sent > len(DATA)


def test_a_chunked_body_is_refused_and_not_stored_empty() -> None:
    with S3StandIn({"a": b"old"}) as server:
        head = "PUT /bucket/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
        assert ask(server, head).startswith(b"HTTP/1.1 501")
        assert boto3_client(server).get_object(Bucket="bucket", Key="a")["Body"].read() == b"old"


def test_boto3_writes_to_a_bucket() -> None:
    with S3StandIn() as server:
        client = boto3_client(server)
        etag = client.put_object(Bucket="bucket", Key="é b&<c>+", Body=DATA, IfNoneMatch="*")["ETag"]
        for condition in ({"IfNoneMatch": "*"}, {"IfMatch": '"other"'}):
            with pytest.raises(ClientError, match="PreconditionFailed"):
                client.put_object(Bucket="bucket", Key="é b&<c>+", Body=b"", **condition)
        assert client.put_object(Bucket="bucket", Key="é b&<c>+", Body=b"new", IfMatch=etag)["ETag"] != etag
        assert [item["Key"] for item in client.list_objects_v2(Bucket="bucket")["Contents"]] == ["é b&<c>+"]
        client.delete_object(Bucket="bucket", Key="é b&<c>+")
        assert "Contents" not in client.list_objects_v2(Bucket="bucket")


FAULTS: list[tuple[HttpFault, int | None, bytes]] = [
    (http_faults.cut(5), 206, b"23456"),
    (http_faults.cut_head(), None, b""),
    (http_faults.lost(), None, b""),
    (http_faults.reset(), None, b""),
    (http_faults.reset(3), 206, b"234"),
    (http_faults.stall(3), 206, b"234"),
    (http_faults.stall_before_head(), None, b""),
    (http_faults.stall_in_head(), None, b""),
    (http_faults.drip(100), 206, b"2345678"),
    (http_faults.short(2), 206, b"23456"),
    (http_faults.shifted(2), 206, b"4567823"),
    (http_faults.flipped(-1), 206, b"234567\xc7"),
    (http_faults.wrong_range(), 206, b"2345678"),
    (http_faults.other_etag(), 206, b"2345678"),
    (http_faults.whole(), 200, b"0123456789"),
    (http_faults.replaced(lambda data: data[::-1]), 206, b"7654321"),
    (http_faults.slow_down(7), 503, http_faults.slow_down().instead.body),  # type: ignore[union-attr]
    (http_faults.internal_error(), 500, http_faults.internal_error().instead.body),  # type: ignore[union-attr]
    (http_faults.expired(403), 403, http_faults.expired().instead.body),  # type: ignore[union-attr]
    (http_faults.error_in_200("SlowDown"), 200, http_faults.error_in_200("SlowDown").instead.body),  # type: ignore[union-attr]
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "status", "body"), FAULTS, ids=lambda item: getattr(item, "name", ""))
def test_each_fault_is_what_it_says(fault: HttpFault, status: int | None, body: bytes) -> None:
    with S3StandIn({"a": b"0123456789"}) as server:
        rule = server.faults.add(fault, key="a")
        question = "GET /bucket/a HTTP/1.1\r\nRange: bytes=2-8"
        head, _, said = ask(server, question, 0.2).partition(b"\r\n\r\n")
        assert said == body
        assert head.startswith(b"HTTP/1.1 %d " % status) if status else len(head) <= 20
        expected = {"wrong Content-Range": b"bytes 3-9/11", "short range": b"bytes 2-6/10", "wrong ETag": b'"another-'}
        assert expected.get(fault.name, b"") in head
        assert (b"Retry-After: 7" in head) == (fault.name == "503 SlowDown")
        assert rule.struck == 1
        after = ask(server, question)
        assert after.endswith(b"7654321" if fault.rewrite else b"2345678")


def test_rules_choose_by_verb_key_number_and_chance() -> None:
    with S3StandIn({"a": b"", "b/c": b""}) as server:
        first = server.faults.add(http_faults.slow_down(), key="b/*", skip=1, times=2)
        second = server.faults.add(http_faults.internal_error(), verb="HEAD", times=None)
        third = server.faults.add(http_faults.refuse(418, "Teapot"), key="a", times=None, share=0.3)
        codes = [ask(server, f"GET /bucket/{key} HTTP/1.1")[9:12] for key in ["b/c", "a", "b/c", "b/c", "b/c"]]
        assert codes in ([b"200", b"200", b"503", b"503", b"200"], [b"200", b"418", b"503", b"503", b"200"])
        assert ask(server, "HEAD /bucket/a HTTP/1.1")[9:12] == b"500"
        for _ in range(100):
            ask(server, "GET /bucket/a HTTP/1.1")
        assert (first.struck, second.struck) == (2, 1)
        assert 15 < third.struck < 50
        assert server.faults.struck == 3 + third.struck
        server.faults.clear()
        assert ask(server, "HEAD /bucket/a HTTP/1.1")[9:12] == b"200"


# -- profiles and links ----------------------------------------------------------------------------------

PERCENTILES_MS = {  # p50, p90, p99, mean
    "s3_standard_hot": (22, 39, 130, 28),
    "s3_standard_cold": (56, 106, 272, 69),
    "far_150": (151, 185, 366, 158),
    "const_150": (150, 150, 150, 150),
    "s3_express": (2.2, 3.3, 7.4, 2.5),
    "zero": (0, 0, 0, 0),
}


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_the_documented_ones(name: str) -> None:
    random = Random(1)
    drawn = sorted(1000 * profile(name).seconds(random) for _ in range(100_000))
    p50, p90, p99, mean = PERCENTILES_MS[name]
    assert drawn[50_000] == pytest.approx(p50, rel=0.03, abs=0.05)
    assert drawn[90_000] == pytest.approx(p90, rel=0.03, abs=0.05)
    assert drawn[99_000] == pytest.approx(p99, rel=0.08, abs=0.05)
    assert statistics.fmean(drawn) == pytest.approx(mean, rel=0.04, abs=0.05)
    assert [profile(name).seconds(Random(5)) for _ in range(3)] == [profile(name).seconds(Random(5))] * 3
