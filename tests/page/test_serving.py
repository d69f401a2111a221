"""The server of all pages: who gets an answer, and what else is none."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator

import pytest

from monocontext.page.assembly import WebPage
from monocontext.page.serving import PageServer

PAGE = WebPage("<!--POLICY-->/*STYLE*/<!--DATA-->/*SCRIPT*/", "a {}", "let a;")


def fail(_: object) -> None:
    raise OSError("the store is away")


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with PageServer(PAGE, {"/double": lambda asked: 2 * asked.number("n"), "/fail": fail}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server: PageServer, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    link.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = link.getresponse()
    body = reply.read().decode()
    link.close()
    return reply.status, reply.headers, body


def test_answers_and_failures(server: PageServer) -> None:
    assert ask(server, "/double?n=21")[::2] == (200, "42")
    assert ask(server, "/double?n=-1")[0] == ask(server, "/double")[0] == 400
    assert ask(server, "/nothing")[0] == 404
    status, _, body = ask(server, "/fail")
    assert (status, json.loads(body)) == (500, {"error": "the store is away"})


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "X"])
def test_only_get(server: PageServer, method: str) -> None:
    status, headers, body = ask(server, "/double?n=1", method)
    assert status == 501
    assert headers["content-type"] == "application/json"
    assert headers["content-security-policy"] == PAGE.policy(served=True)
    assert "allow-origin" not in str(headers).lower()
    assert body in ("", '{"error":"Not Implemented"}')


def test_a_page_of_another_site_starts_no_work(server: PageServer) -> None:
    """A link to the page from elsewhere opens it; its data is for the page itself."""
    for site in ("cross-site", "same-site"):
        assert ask(server, "/double?n=1", sec_fetch_site=site)[0] == 403
        assert ask(server, "/", sec_fetch_site=site)[0] == 200
    for site in ("same-origin", "none"):
        assert ask(server, "/double?n=1", sec_fetch_site=site)[0] == 200


def test_a_host_of_another_name_gets_nothing(server: PageServer) -> None:
    for path in ("/", "/double?n=1"):
        assert ask(server, path, host="evil.example")[0] == 403
