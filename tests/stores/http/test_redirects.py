"""Credentials follow a redirect within the endpoint's own domain, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from monocontext.errors import Unsupported
from monocontext.stores import open_store
from monocontext.stores.http.connection import DEFAULT_PORTS, Endpoint
from monocontext.stores.http.route import ForeignRedirect, Route, redirected

from .object_server import ObjectServer, Turn

DATA = bytes(range(256)) * 100
TOKEN = "THE-SESSION-TOKEN"
STATUS = (301, 302, 303, 307, 308)


def route_to(url: str, domain: str = "", signed: bool = True) -> Route:
    scheme, _, rest = url.partition("://")
    host, _, port = rest.partition(":")
    known = "https" if scheme == "https" else "http"
    return Route(
        Endpoint(known, host, int(port or DEFAULT_PORTS[known])), "/", "us-east-1", signed=signed, domain=domain
    )


AWS, SERVER = "https://b.s3.us-east-1.amazonaws.com", "https://store.example.com"
FOLLOWED: dict[str, list[str]] = {
    AWS: [
        *("https://b.s3.eu-west-1.amazonaws.com/k", "https://b.s3-us-west-2.amazonaws.com/k"),
        *("https://s3.amazonaws.com/b/k", "https://B.S3.Dualstack.us-gov-west-1.amazonaws.com./k"),
        "https://s3.amazonaws.com:443/b/k",
    ],
    "https://s3.cn-north-1.amazonaws.com.cn": ["https://b.s3.cn-northwest-1.amazonaws.com.cn/k"],
    SERVER: [
        *("/k", "//store.example.com/k", "https:///k", "https://STORE.example.com./k"),
        *("https://eu.store.example.com/k", "https://somebody@store.example.com/k"),
    ],
    "http://10.0.0.1:9000": ["http://10.0.0.1:9000/k"],
}
REFUSED: dict[str, list[str]] = {
    AWS: [
        *("https://evil.example.com/k", "https://s3.amazonaws.com@evil.example.com/k"),
        *("https://s3.amazonaws.com.evil.example.com/k", "https://evils3.amazonaws.com/k"),
        *("https://ec2-1-2-3-4.compute-1.amazonaws.com/k", "https://b.s3-website-us-east-1.amazonaws.com/k"),
        *("https://s3.abc.execute-api.us-east-1.amazonaws.com/k", "https://amazonaws.com/k"),
        *("https://s3.cn-north-1.amazonaws.com.cn/k", "https://s3.amazonaws.com:8443/k"),
        *("http://b.s3.eu-west-1.amazonaws.com/k", "https://52.216.1.1/k", "https://[::1]/k"),
    ],
    SERVER: [
        *("https://example.com/k", "https://other.example.com/k", "https://notstore.example.com/k"),
        *("https://store.example.com.evil.com/k", "https://store.example.com..evil.com/k"),
        *("https://evil.com#@store.example.com/k", "https://evil.com\\@store.example.com:8443/k"),
        *("https://store.example.com:9000/k", "https://store.example.com:notaport/k"),
        *("https://store.example.com:99999/k", "https://ѕtore.example.com/k"),
        *("https://evil.com%2fstore.example.com/k", "http://store.example.com/k", "ftp://store.example.com/k"),
        *("file:///etc/passwd", "https://[::1/k", f"ftp://me:{'PASSWORD' * 40}@host/k", "https://me:PASSWORD@[::1/k"),
    ],
    "http://10.0.0.1:9000": [
        *("http://1.10.0.0.1:9000/k", "http://10.0.0.1:9001/k", "http://10.0.0.2:9000/k", "https://10.0.0.1:9000/k"),
    ],
}


@pytest.mark.parametrize(("here", "location"), [(here, url) for here in FOLLOWED for url in FOLLOWED[here]])
def test_within_the_domain(here: str, location: str) -> None:
    route, target = redirected(route_to(here), "/old", location)
    assert target.endswith("/k")
    was = route_to(here).endpoint
    assert (route.endpoint.scheme, route.endpoint.port) == (was.scheme, was.port)
    assert route.endpoint.host == route.endpoint.host.lower().rstrip(".")


@pytest.mark.parametrize(("here", "location"), [(here, url) for here in REFUSED for url in REFUSED[here]])
def test_out_of_the_domain(here: str, location: str) -> None:
    with pytest.raises(ForeignRedirect) as raised:
        redirected(route_to(here), "/old", location)
    assert str(route_to(here).endpoint) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "PASSWORD" not in str(raised.value)


def test_a_bucket_in_front_of_the_host_is_not_its_domain() -> None:
    route = route_to("https://bucket.store.example.com", "store.example.com")
    for there in ("store.example.com", "other.store.example.com"):
        assert redirected(route, "/k", f"https://{there}/k")[0].endpoint.host == there
    with pytest.raises(ForeignRedirect):
        redirected(route, "/k", "https://example.com/k")


def test_what_is_not_signed_follows_to_other_hosts() -> None:
    route, _ = redirected(route_to(SERVER, signed=False), "/k", "https://mirror.example.org:8443/k")
    assert str(route.endpoint) == "https://mirror.example.org:8443"
    with pytest.raises(ForeignRedirect):
        redirected(route_to(SERVER, signed=False), "/k", "http://store.example.com/k")


# -- by each way of reading and writing --------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)


@contextmanager
def leading(status: int) -> Iterator[tuple[ObjectServer, ObjectServer]]:
    """A server that leads elsewhere, always, and the one there."""
    with ObjectServer(DATA) as there:
        away = Turn(status, b"-", {"Location": f"{there.endpoint}/bucket/ctx/a", "ETag": ""}, close=True)
        with ObjectServer(DATA, *[away] * 50) as here:
            yield here, there


READS: dict[str, Callable[[Any], object]] = {
    "get": lambda store: store.get("a"),
    "get_range": lambda store: store.get_range("a", 10, 100),
}
WRITES: dict[str, Callable[[Any], object]] = {
    "head": lambda store: store.head("a"),
    "list": lambda store: list(store.list()),
    "put": lambda store: store.put("a", b"x"),
    "delete": lambda store: store.delete("a"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "status", "transport"),
    [*product(READS, STATUS, ["own"]), *product(WRITES, [307], ["own"]), *product(READS, [302], ["boto3"])],
)
def test_nothing_goes_to_another_server(verb: str, status: int, transport: str) -> None:
    with leading(status) as (here, there):
        store = open_store("s3://bucket/ctx", endpoint=here.endpoint, transport=transport)
        with pytest.raises(Unsupported) as raised:
            (READS | WRITES)[verb](store)
        store.close()
        assert here.asked[0].headers["x-amz-security-token"] == TOKEN
        assert there.connections == 0
        assert "\n" not in str(raised.value)
        assert f"http://127.0.0.1:{here.port} redirects to http://127.0.0.1:{there.port}: no cred" in str(raised.value)
