"""What any client can rely on, asked over a real connection: python tests/mcp/script.py"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from monocontext import publish

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
TEXT = "".join(f"line {n} of the log, with some words\n" for n in range(60_000)) + "the NEEDLE, ein Wörtchen\n"
TOOLS = ["context_list", "context_info", "context_slice", "context_search", "context_documents", "context_outline",
         "memory"]  # fmt: skip


class Client:
    """A session with a server."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.fields: Any = None
        """The structured content of the last reply."""

    async def call(self, tool: str, **arguments: Any) -> str:
        failed, text = await self.call_tool(tool, **arguments)
        assert not failed, text
        return text

    async def call_tool(self, tool: str, **arguments: Any) -> tuple[bool, str]:
        reply = await self.session.call_tool(tool, arguments)
        assert len(reply.content) == 1
        self.fields = reply.structured_content  # checked by the SDK, by the schema
        text = reply.content[0].text
        assert len(text.encode()) <= 20_000, len(text)
        assert reply.is_error == (self.fields is None), self.fields
        return bool(reply.is_error), text

    async def resource(self, uri: str) -> str:
        text = (await self.session.read_resource(uri)).contents[0].text
        assert isinstance(text, str)
        return text


@asynccontextmanager
async def stdio(*arguments: str | Path, package: str = "monocontext") -> AsyncIterator[Client]:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", package, "mcp", *map(str, arguments)], env=ENVIRONMENT
    )
    async with stdio_client(command) as (reading, writing), ClientSession(reading, writing) as session:
        reply = await session.initialize()
        assert (reply.server_info.name, reply.server_info.version) == (package, import_module(package).__version__)
        yield Client(session)


async def resources(client: Client) -> None:
    listed = {str(each.uri) for each in (await client.session.list_resources()).resources}
    assert listed == {"monocontext://all", "monocontext://logs", "monocontext://memory"}
    head = await client.resource("monocontext://logs")
    assert head.startswith(TEXT[:10_000])
    assert "next range: start=" in head
    assert await client.resource("monocontext://logs/100/150") == TEXT[100:150]
    assert await client.resource("monocontext://all%2Fdeep%2Ftiny/0/4") == "tiny"
    for uri, why in (("nope/0/1", "no context 'nope' is served here"), ("logs/soon/1", "a range must be START/STOP")):
        try:
            told = await client.resource(f"monocontext://{uri}")
        except MCPError as error:
            told = str(error)
        assert why in told


@contextmanager
def model(reply: str, asked: list[float], seconds: float = 0.0) -> Iterator[str]:
    """An endpoint that speaks OpenAI's protocol, whose model gives one reply, with the count of its calls for COUNT."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert json.loads(self.rfile.read(int(self.headers["content-length"])))["stream"]
            asked.append(time.monotonic())
            time.sleep(seconds)
            delta = {"content": reply.replace("COUNT", str(len(asked)))}
            choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


async def answers(place: Path) -> None:
    """`rlm mcp`: the same tools, and a model that is asked."""
    with model("```repl\nFINAL(f'at {context.find(\"NEEDLE\")} of {len(context)}')\n```", []) as url:
        ENVIRONMENT["OPENAI_API_KEY"] = "none"
        async with stdio(place / "logs", "--base-url", url, "--runner", "local", package="rlm") as client:
            said = f"at {TEXT.index('NEEDLE')} of {len(TEXT)}"
            answer = await client.call("ask", query="Where is the needle?")
            assert answer == said, answer
            assert await client.call("chat_rlm_query", query="Where is the needle?", chat_file="logs") == said
            assert await client.call_tool("ask", query=" ") == (True, "the query is empty: ask a question")


def cancelled_questions(place: Path) -> None:
    """A question that is cancelled calls its model no more, and reports progress until then."""
    asked: list[float] = []
    with model("```repl\nprint(COUNT)\n```", asked, seconds=0.4) as url:
        raw = Raw(place / "logs", "--base-url", url, "--runner", "local", "--max-iterations", "50", package="rlm")
        raw.ask(1, "tools/call", {"name": "ask", "arguments": {"query": "?"}, "_meta": {"progressToken": "p"}})
        progress = raw.reply()
        assert (progress["method"], progress["params"]["progressToken"]) == ("notifications/progress", "p")
        assert progress["params"]["progress"] > 0
        while len(asked) < 4:
            time.sleep(0.1)
        raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        time.sleep(2)
        count = len(asked)
        time.sleep(3)
        assert len(asked) == count < 40
        assert raw.leave() < 2


@contextmanager
def listening(*arguments: str | Path) -> Iterator[tuple[str, str]]:
    """A server over HTTP: where, and its token."""
    command = [sys.executable, "-m", "monocontext", "mcp", *map(str, arguments), "--http", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stderr is not None
    try:
        url, token = "", ""
        while not token:  # other packages may warn of something first
            line = process.stderr.readline()
            assert line, "the server ended"
            url = line.split()[-1] if line.startswith("MCP at ") else url
            token = line.split()[-1] if line.startswith("Authorization: Bearer ") else ""
        yield url, token
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


async def over_http(place: Path) -> None:
    with listening(place / "logs") as (url, token):
        for headers, code in (({}, 401), ({"Authorization": "Bearer wrong"}, 401)):
            async with create_mcp_http_client(headers=headers) as http:
                assert (await http.post(url, json={})).status_code == code
        async with _http_client(url, token) as client:
            assert await client.call("context_slice", start=3, stop=30) == TEXT[3:30]


@asynccontextmanager
async def _http_client(url: str, token: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
        streams = await stack.enter_async_context(streamable_http_client(url, http_client=http))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        yield Client(session)


class Raw:
    """A server whose lines are written and read as they are."""

    def __init__(self, *arguments: str | Path, package: str = "monocontext") -> None:
        command = [sys.executable, "-m", package, "mcp", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        self.ask(0, "initialize", about)
        assert self.reply()["id"] == 0
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, identity: int, method: str, params: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})

    def call(self, identity: int, tool: str, **arguments: Any) -> None:
        self.ask(identity, "tools/call", {"name": tool, "arguments": arguments})

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode())

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def reply(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def leave(self) -> float:
        """Close the pipes as a client does that ends; the seconds until the server ends."""
        assert self.process.stdin
        assert self.process.stdout
        began = time.monotonic()
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()
        return time.monotonic() - began


def half_a_pair(place: Path) -> None:
    """Each of these requests got no reply, or was answered as if it were another."""
    raw = Raw(place / "logs")
    raw.call(1, "context_search", pattern="\ud83e half")
    raw.write(b'{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"\xed\xa0\xbe","arguments":{}}}')
    raw.call(3, "context_slice", start=0, stop=4)
    replies = [raw.reply() for _ in range(3)]
    assert [each["id"] for each in replies] == [1, "two", 3], replies
    assert ["error" in each for each in replies] == [True, True, False]
    assert "half a surrogate pair" in replies[0]["error"]["message"]
    assert raw.leave() < 2


def leaving(place: Path) -> None:
    """The server answers what it soon can, and ends within 2 s of its client, whatever is under way."""
    raw = Raw(place / "logs")
    raw.call(1, "context_slice", context="logs", start=0, stop=4)
    assert raw.process.stdin
    raw.process.stdin.close()
    assert "result" in raw.reply()
    assert raw.process.wait(30) == 0
    publish("a" * 60 + "b\n", place / "hard")
    for is_cancelled in (False, True):
        raw = Raw(place / "hard")
        raw.call(1, "context_search", pattern="(a+)+$")
        raw.call(2, "context_list")
        assert raw.reply()["id"] == 2  # the other call is under way, or about to be
        if is_cancelled:
            raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        seconds = raw.leave()
        assert seconds < 2, seconds


async def tools(client: Client) -> None:
    """Their schemas, a reply with its fields, and a refusal in one line. tests/mcp/test_mcp_tools.py has the rest."""
    listed = {tool.name: tool for tool in (await client.session.list_tools()).tools}
    assert list(listed) == TOOLS
    assert [name for name, tool in listed.items() if not tool.annotations.read_only_hint] == ["memory"]
    for tool in listed.values():
        assert tool.title
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
    assert await client.call("context_list") == "all/deep/tiny\nall/logs\nlogs\nmemory"
    assert client.fields == {"rows": ["all/deep/tiny", "all/logs", "logs", "memory"], "after": None}
    assert await client.call("context_slice", context="logs", start="70", stop=200.0) == TEXT[70:200]
    assert client.fields == {"text": TEXT[70:200], "start": 70, "stop": 200, "characters": len(TEXT), "next": None}
    for pattern in ("NEEDLE", "NEED[L]E"):  # the second in a process of its own
        reply = await client.call("context_search", context="logs", pattern=pattern)
        assert reply.startswith(f"{TEXT.index('NEEDLE')}:60001:the NEEDLE, ein Wörtchen\n[1 line matches;")
        assert (client.fields["hits"][0]["line"], client.fields["next"]) == (60_001, None)
    assert json.loads(await client.call("memory", command="P note to be kept 60"))["success"]
    assert client.fields["success"]
    for tool, given, words in (
        ("context_slice", {"contxt": "logs"}, "no argument 'contxt': did you mean context?"),
        ("context_slices", {}, "Unknown tool: context_slices: did you mean context_slice?"),
        ("x" * 100_000, {}, "characters ...]"),
    ):
        failed, text = await client.call_tool(tool, **given)
        assert failed, text
        assert words in text
        assert "\n" not in text


async def script(place: Path) -> None:
    publish(TEXT, place / "logs")
    publish("tiny", place / "deep" / "tiny")
    async with stdio(f"all={place}", place / "logs", "--memory", f"{place.parent}/memory") as client:
        await tools(client)
        await resources(client)
    await answers(place)
    cancelled_questions(place)
    await over_http(place)
    half_a_pair(place)
    leaving(place)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(script(Path(folder) / "contexts"))
    print("fine")
