"""The four routes, who may call them, and what they refuse."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from monocontext.errors import AccessDenied
from monocontext.memory import Memory
from monocontext.memory.grants import Grant, Granted, read_grants
from monocontext.memory.server import MemoryServer


@contextmanager
def serving(**options: Any) -> Iterator[MemoryServer]:
    memory = Memory.open("memory://served")
    memory.clear()
    with MemoryServer(memory, **options) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(
    server: MemoryServer, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, data, given)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[MemoryServer]:
    with serving(token="secret", max_body_bytes=10_000) as found:
        yield found


def test_the_routes_of_both_clients(server: MemoryServer) -> None:
    call = {"tool": "memory", "parameters": {"command": "P doc_name Important_Report 3600"}}
    done = {"success": True, "output": {"status": "OK"}, "error": None, "metadata": {}}
    assert ask(server, "POST", "/tools/execute", call, token="secret") == (200, {"result": done})
    assert ask(server, "POST", "/execute", call, token="secret") == (200, done)
    status, listed = ask(server, "POST", "/tools/list", {}, token="secret")
    assert (status, list(listed)) == (200, ["tools"])
    assert ask(server, "GET", "/tools", token="secret") == (200, listed["tools"])
    (tool,) = listed["tools"]
    assert set(tool) == {"name", "description", "parameters", "protocol_metadata"}
    fields = {"name", "type", "description", "required", "default", "items", "properties"}
    assert all(set(parameter) == fields for parameter in tool["parameters"])
    assert [(p["name"], p["type"]) for p in tool["parameters"] if p["required"]] == [("command", "string")]
    missing = {"tool": "memory", "parameters": {"command": "G none"}}
    reply = {"success": False, "output": None, "error": "ERR:NOT_FOUND", "metadata": {}}
    assert ask(server, "POST", "/execute", missing, token="secret") == (200, reply)


@pytest.mark.parametrize("body", [{"tool": "other", "parameters": {"command": "L"}}, {"tool": "memory"}, {}])
@pytest.mark.parametrize("path", ["/tools/execute", "/execute"])
def test_an_error_of_the_tool_is_400(server: MemoryServer, path: str, body: Any) -> None:
    status, reply = ask(server, "POST", path, body, token="secret")
    assert status == 400
    assert reply["error"].startswith(("Tool not found: ", "Invalid parameters: "))


@pytest.mark.parametrize("token", [None, "", "Secret", "secret ", "secre", "secrets", "é"])
def test_without_the_token_nothing_is_told(server: MemoryServer, token: str | None) -> None:
    if token == "secret ":
        token = "secret x"
    for method, path in (("GET", "/tools"), ("POST", "/execute"), ("GET", "/nowhere")):
        status, reply = ask(server, method, path, {} if method == "POST" else None, token=token)
        assert status == 401
        assert list(reply) == ["error"]


def test_what_is_refused(server: MemoryServer) -> None:
    def post(body: Any, path: str = "/execute", **headers: str) -> int:
        return ask(server, "POST", path, body, token="secret", **headers)[0]

    assert post(b"x" * 10_001) == 413
    assert post(b"", Content_Length="9" * 40) == 413
    assert post(b"", Content_Length="-1") == 411
    assert post(b"not json") == 400
    assert post(b"[" * 9000) == 400
    assert post(b"[1]") == 400
    assert post(b"\xff\xfe") == 400
    assert post({}, "/nowhere") == 404
    assert ask(server, "GET", "/execute", token="secret")[0] == 405
    assert ask(server, "POST", "/tools", {}, token="secret")[0] == 405
    assert post({"tool": "memory", "parameters": {"command": "L"}}) == 200


def test_without_a_token_only_programs_here() -> None:
    with pytest.raises(AccessDenied, match="without a token"):
        MemoryServer(Memory.open("memory://served"), "0.0.0.0", token="")
    with serving(token="") as server:
        assert ask(server, "GET", "/tools")[0] == 200
        assert ask(server, "GET", "/tools", Origin="http://evil.example")[0] == 403
        assert ask(server, "GET", "/tools", Host="evil.example:80")[0] == 403
        assert ask(server, "GET", "/tools", Host="localhost:80")[0] == 200


def test_a_token_is_made_up() -> None:
    with serving() as server:
        assert len(server.token) > 20
        assert server.url == f"http://127.0.0.1:{server.server_address[1]}"
        assert ask(server, "GET", "/tools", token=server.token)[0] == 200
        assert ask(server, "GET", "/tools", token="guess")[0] == 401


def test_several_agents_at_once(server: MemoryServer) -> None:
    barrier = threading.Barrier(8)
    found: list[Any] = []

    def agent(number: int) -> None:
        barrier.wait()
        call = {"tool": "memory", "parameters": {"command": f"P claimed {number}", "if_absent": True}}
        found.append(ask(server, "POST", "/execute", call, token="secret")[1]["error"])

    threads = [threading.Thread(target=agent, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == ["ERR:EXISTS"] * 7 + ["None"]


def test_a_client_that_goes_in_the_middle_does_nothing_and_says_nothing(
    server: MemoryServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """What came of its request is not carried out, even where it reads as a whole one."""
    body = json.dumps({"tool": "memory", "parameters": {"command": "P cut_short here"}}).encode()
    head = f"POST /execute HTTP/1.1\r\nAuthorization: Bearer secret\r\nContent-Length: {len(body) + 9}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        assert b"the body ended after" in connection.makefile("rb").read()
    assert "cut_short" not in [entry.key for entry in server.tool.memory.entries()]
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
            connection.sendall(head.encode() + body)
    assert ask(server, "GET", "/tools", token="secret")[0] == 200
    while [thread for thread in threading.enumerate() if "process_request" in thread.name]:
        time.sleep(0.01)
    assert capfd.readouterr().err == ""


# -- grants ------------------------------------------------------------------------------------------------------------


def namespace(name: str) -> Memory:
    memory = Memory.open(f"memory://served/{name}")
    memory.clear()
    return memory


def run(server: MemoryServer, token: str, command: str) -> Any:
    status, reply = ask(server, "POST", "/execute", {"tool": "memory", "parameters": {"command": command}}, token=token)
    return reply["output"] or reply["error"] if status == 200 else status


def test_each_token_has_its_namespace_and_rights() -> None:
    granted = Granted(
        [Grant("aw", "team-a", "write"), Grant("ar", "team-a", "read"), Grant("b", "team-b", "write")], namespace
    )
    with serving(token="all", granted=granted) as server:
        assert run(server, "aw", "P plan first") == {"status": "OK"}
        assert run(server, "ar", "G plan") == {"value": "first"}
        assert run(server, "ar", "L") == {"keys": ["plan"]}
        assert run(server, "ar", "T A")["total_bytes"] == 9
        for command in ("P plan second", "D plan", "C"):
            assert run(server, "ar", command) == "ERR:READ_ONLY"
        assert run(server, "b", "L") == {"keys": []}
        assert run(server, "b", "C") == {"status": "OK"}
        assert run(server, "all", "L") == {"keys": []}
        assert run(server, "all", "P plan ours") == {"status": "OK"}
        assert run(server, "aw", "G plan") == {"value": "first"}
        for wrong in ("", "a", "awx", "team-a"):
            assert run(server, wrong, "L") == 401
        assert ask(server, "POST", "/tools/list", {}, token="ar")[0] == 200


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("{", "not JSON"),
        ("{}", "expected a list of objects"),
        ('[{"namespace": "a"}]', "grant 0: expected texts under token, namespace and rights, found 'namespace'"),
        ('[{"token": "t", "right": "read"}]', "found 'token', 'right'"),
        ('[{"token": 5}]', "expected texts"),
        ('[{"token": "t"}, {"token": ""}]', "grant 1: a token must be printable ASCII, and not empty"),
        ('[{"token": "t", "rights": "all"}]', "rights must be 'read' or 'write', not 'all'"),
        ('[{"token": "t", "namespace": "../b"}]', "a namespace must be of letters"),
        ('[{"token": "t", "namespace": "entries"}]', "but not 'entries'"),
    ],
)
def test_what_is_no_grant_is_refused_in_one_line(tmp_path: Any, rows: str, words: str) -> None:
    (tmp_path / "grants.json").write_text(rows)
    with pytest.raises(AccessDenied, match=words) as refused:
        read_grants(tmp_path / "grants.json")
    assert "\n" not in str(refused.value)


def test_grants_are_by_token() -> None:
    one = Grant("t", "", "read")
    with pytest.raises(AccessDenied, match="two grants have the same token"):
        Granted([one, one], namespace)
    with (
        pytest.raises(AccessDenied, match="a server that asks for none"),
        serving(token="", granted=Granted([one], namespace)),
    ):
        pass
