"""Ways to the server: TLS and its authorities, proxies, styles, regions, several addresses. As boto3 would go."""

from __future__ import annotations

import random
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from monocontext.errors import InvalidUrl, StoreFailure
from monocontext.stores import open_store
from monocontext.stores.http.connection import Proxy
from monocontext.stores.http.pool import SocketAddress, order_addresses
from monocontext.stores.http.route import Route
from monocontext.stores.s3.store import S3Store

from .certificates import make_authority
from .object_server import GOOD, ObjectServer, Turn

DATA = random.Random(2).randbytes(300_000)
URL = "s3://bucket/ctx"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def route_of(url: str = URL, **options: Any) -> Route | None:
    store = open_store(url, **options)
    assert isinstance(store, S3Store)
    transport = store._connection.transport(store._bucket)
    return transport._origin.route if transport else None


def test_what_our_transport_does_not_do_goes_through_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    assert route_of("s3://express--use1-az4--x-s3/p", region="us-east-1") is None
    monkeypatch.setenv("HTTPS_PROXY", "https://proxy.example:3128")
    assert route_of(region="eu-central-1") is None
    for url in ("http://h:99999", "http://h:abc", "http://[::1"):
        monkeypatch.setenv("HTTPS_PROXY", url)
        with pytest.raises(InvalidUrl, match=r"^https_proxy must be a URL such as http:"):
            route_of(region="eu-central-1")


def test_options_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", "true")
    route = route_of(region="eu-central-1")
    assert route is not None
    assert route.endpoint.host == "bucket.s3.dualstack.eu-central-1.amazonaws.com"


@pytest.mark.slow
def test_tls_with_an_authority_of_ones_own(
    authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, context = authority
    cut = Turn(cut_at=100_000)
    with ObjectServer(DATA, GOOD, cut, Turn(stall_at=50_000), Turn(chunk_bytes=999), tls=context) as server:
        with pytest.raises(StoreFailure, match=f"{URL}/a: .*certificate verify failed"):
            open_store(URL, endpoint=server.endpoint).get("a")
        assert server.connections == 1
        monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
        store = open_store(URL, endpoint=server.endpoint)
        assert store.get_range("a", 5, 200_000).data == DATA[5:200_005]
        assert store.get_range("a", 5, 200_000).data == DATA[5:200_005]
        assert [item.headers.get("range") for item in server.asked] == [
            "bytes=5-200004",
            "bytes=5-200004",
            "bytes=100005-200004",
            "bytes=150005-200004",
        ]
        assert store.get("a").data == DATA
        server.hang_up()
        assert store.get("a").data == DATA


def test_a_certificate_for_another_name(
    authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, context = authority
    monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
    with ObjectServer(DATA, tls=context, address="127.0.0.2") as server:
        endpoint = server.endpoint.replace("127.0.0.1", "127.0.0.2")
        with pytest.raises(StoreFailure, match=r"certificate is not valid for '127\.0\.0\.2'"):
            open_store(URL, endpoint=endpoint).get("a")


def test_a_proxy_for_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    with ObjectServer(DATA) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://us%40er:pass@127.0.0.1:{proxy.port}")
        assert open_store(URL, endpoint="http://store.example:8333").get_range("a", 5, 5).data == DATA[5:10]
        (asked,) = proxy.asked
        assert asked.target == "http://store.example:8333/bucket/ctx/a"
        assert asked.headers["host"] == "store.example:8333"
        assert asked.headers["proxy-authorization"] == "Basic dXNAZXI6cGFzcw=="
        monkeypatch.setenv("NO_PROXY", "store.example")
        route = route_of(endpoint="http://store.example:8333")
        assert route is not None
        assert route.endpoint.proxy is None


def test_a_tunnel_through_a_proxy(authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch) -> None:
    trusted, context = authority
    monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
    with ObjectServer(DATA, tls=context) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass@127.0.0.1:{proxy.port}")
        store = open_store(URL, endpoint="https://localhost:9999")
        for _ in range(2):
            assert store.get_range("a", 5, 5).data == DATA[5:10]
        assert proxy.tunnels == ["localhost:9999"]
        tunnel, asked, _ = proxy.asked
        assert tunnel.headers["proxy-authorization"] == "Basic dXNlcjpwYXNz"
        assert "proxy-authorization" not in asked.headers
        assert asked.headers["host"] == "localhost:9999"
    assert "pass" not in repr(Proxy("h", 1, "Basic pass"))


def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listener.getsockname()[1]}")
        listener.close()
        with pytest.raises(StoreFailure, match=r"cannot connect to the proxy 127\.0\.0\.1:\d+: Connection refused"):
            open_store(URL, endpoint="https://localhost:9999").get("a")


def test_all_addresses_of_a_name_are_used() -> None:
    four, six = socket.AF_INET, socket.AF_INET6
    a, d = (SocketAddress(six, (host, 80, 0, 0)) for host in ("::1", "::2"))
    b, c = (SocketAddress(four, (host, 80)) for host in ("1.1.1.1", "2.2.2.2"))
    result: list[Any] = [a, b, c, d]
    orders = [order_addresses(result, None) for _ in range(200)]
    assert {tuple(map(result.index, order)) for order in orders} == {
        (0, 3, 1, 2), (0, 3, 2, 1), (3, 0, 1, 2), (3, 0, 2, 1),
    }  # fmt: skip
    assert order_addresses(result, ("::2", 80))[-1] == d
    assert order_addresses([], None) == []
