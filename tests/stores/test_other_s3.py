"""The suite of every store over one more server of S3's protocol, which runs already.

`MONOCONTEXT_S3` is its endpoint, with a bucket that its keys may write to as the first folder: http://127.0.0.1:9000/bucket.
Addressed by path, by the name of the bucket in the host where `bucket.localhost` is the server, and through obstore.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator

import pytest

from monocontext.errors import AccessDenied
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from tests.stores import test_conformance

SERVER, _, BUCKET = os.environ.get("MONOCONTEXT_S3", "").rpartition("/")
pytestmark = pytest.mark.skipif(not SERVER, reason="no other S3 server: MONOCONTEXT_S3 names one")
WAYS = ["path", "virtual"]

globals().update({name: item for name, item in vars(test_conformance).items() if name.startswith("test_")})


@pytest.fixture(params=WAYS)
def any_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    if request.param not in WAYS:
        pytest.skip("another suite has these")
    store = open_in(request.param, monkeypatch)
    yield store
    store.close()


def open_in(way: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", os.environ.get("MONOCONTEXT_S3_KEY", "devaccess"))
    url = f"s3://{BUCKET}/test-{uuid.uuid4().hex[:12]}"
    if way == "virtual":
        resolve = socket.getaddrinfo
        here = {f"{BUCKET}.localhost", f"{BUCKET}.localhost".encode(), "localhost"}
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda host, *rest, **named: resolve("127.0.0.1" if host in here else host, *rest, **named),
        )
        return open_store(url, endpoint=SERVER.replace("127.0.0.1", "localhost"), path_style=False)
    return open_store(url, endpoint=SERVER)


def test_wrong_keys_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = open_in("path", monkeypatch)
    with pytest.raises(AccessDenied):
        store.put("a", b"x")
