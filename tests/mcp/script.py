"""What any client can rely on, asked over a real connection. Run as a program:

python tests/mcp/script.py
"""

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

from monocontext import publish
from monocontext.memory import Memory

TEXT = "".join(f"line {n} of the log, with some words\n" for n in range(60_000)) + "the NEEDLE, ein Wörtchen\n"
TOOLS = ["context_list", "context_info", "context_slice", "context_search", "context_documents", "context_outline",
         "memory"]  # fmt: skip


class Client:
    """A session with a server."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.fields: Any = None
        """The structured content of the last reply."""

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self.session.list_tools()).tools}

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

    async def expect_refusal(self, tool: str, *words: str, **arguments: Any) -> None:
        failed, text = await self.call_tool(tool, **arguments)
        assert failed, text
        assert all(each in text for each in words), text
        assert "\n" not in text, text

    async def resource(self, uri: str) -> str:
        text = (await self.session.read_resource(uri)).contents[0].text
        assert isinstance(text, str)
        return text

    async def no_resource(self, uri: str) -> str:
        """Why there is none."""
        try:
            found = await self.resource(uri)
        except Exception as error:
            return str(error)
        raise AssertionError(found)


@asynccontextmanager
async def stdio(*arguments: str | Path, package: str = "monocontext") -> AsyncIterator[Client]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", package, "mcp", *map(str, arguments)], env=environment
    )
    async with stdio_client(command) as (reading, writing), ClientSession(reading, writing) as session:
        reply = await session.initialize()
        assert (reply.server_info.name, reply.server_info.version) == (package, import_module(package).__version__)
        yield Client(session)


async def texts(client: Client) -> None:
    """Lists, descriptions, slices that are put together again, searches."""
    assert (await client.call("context_list")).split("\n") == ["all/deep/tiny", "all/logs", "logs", "memory"]
    assert client.fields == {"names": ["all/deep/tiny", "all/logs", "logs", "memory"], "after": None}
    facts = json.loads(await client.call("context_info", context="logs"))
    assert (facts["characters"], facts["lines"]) == (len(TEXT), 60_001)
    assert (facts["head"], facts["tail"]) == (TEXT[:500], TEXT[-500:])

    assert await client.call("context_slice", context="logs", start=70, stop=200) == TEXT[70:200]
    assert client.fields == {"text": TEXT[70:200], "start": 70, "stop": 200, "characters": len(TEXT), "next": None}
    assert await client.call("context_slice", context="logs", start="70", stop=200.0) == TEXT[70:200]
    assert await client.call("context_slice", context="logs", start=-8) == TEXT[-8:]
    assert await client.call("context_slice", context="logs", start=9, stop=11, unit="lines") == "".join(
        TEXT.splitlines(keepends=True)[9:11]
    )
    start, stop, pieces = 0, 50_000, []
    while True:
        reply = await client.call("context_slice", context="logs", start=start, stop=stop)
        piece, cut, note = reply.rpartition("\n[cut: ")
        pieces.append(piece if cut else reply)
        assert client.fields["text"] == pieces[-1]
        if not cut:
            break
        start, stop = (int(note.split(f"{name}=")[1].split()[0].rstrip("]")) for name in ("start", "stop"))
    assert "".join(pieces) == TEXT[:50_000]
    assert len(pieces) == 3

    reply = await client.call("context_search", context="logs", pattern="needle", ignore_case=True)
    assert reply.startswith(f"{TEXT.index('NEEDLE')}:60001:the NEEDLE, ein Wörtchen\n[1 line matches;")
    hit = {"document": None, "line": 60_001, "offset": TEXT.index("NEEDLE"), "text": "the NEEDLE, ein Wörtchen"}
    assert (client.fields["hits"], client.fields["next"]) == ([hit], None)
    reply = await client.call("context_search", context="logs", pattern=r"line \d+7 ", max_hits=3)
    assert [each["line"] for each in client.fields["hits"]] == [18, 28, 38]
    assert client.fields["next"] == {"start": TEXT.index("line 37 ") + 1, "stop": len(TEXT)}
    assert reply.split("\n")[0] == f"{TEXT.index('line 17 ')}:18:line 17 of the log, with some words"
    start = TEXT.index("line 37 ") + 1
    assert f"next range: start={start} stop={len(TEXT)}]" in reply
    reply = await client.call("context_search", context="logs", pattern=r"line \d+7 ", max_hits=1, start=start)
    assert reply.startswith(f"{TEXT.index('line 47 ')}:")
    assert "no lines match" in await client.call("context_search", context="logs", pattern=".*", fixed=True)
    assert "next range: start=" in await client.call("context_search", context="logs", pattern="words", max_hits=1000)


async def refusals(client: Client) -> None:
    await client.expect_refusal("context_slice", "no context 'nope' is served here", context="nope")
    await client.expect_refusal("context_slice", "no context", context="all/../../etc")
    await client.expect_refusal("context_slice", "name a context")
    await client.expect_refusal("context_slice", "no argument 'contxt': did you mean context?", contxt="logs")
    await client.expect_refusal("context_slices", "Unknown tool: context_slices: did you mean context_slice?")
    await client.expect_refusal("context_list", "after='none' is not in the list", after="none")
    for pattern in ("(", "a{99999999999}", "(" * 3000):
        await client.expect_refusal("context_search", "not a regular expression", context="logs", pattern=pattern)
    await client.expect_refusal("context_search", "max_hits must be 1 to 1000", context="logs", pattern="x", max_hits=0)
    await client.expect_refusal("context_slice", "unit must be", context="logs", unit="pages")
    long = "x" * 100_000  # which no reply quotes whole
    await client.expect_refusal("context_search", "at most 10,000 characters", context="logs", pattern=long)
    await client.expect_refusal("context_slice", "no context 'xxx", "characters ...]", context=long)
    await client.expect_refusal("context_slice", "unit must be", context="logs", unit=long)
    await client.expect_refusal(
        "context_slice", "start must be an integer, not", "characters ...]", context="logs", start=long
    )
    await client.expect_refusal(long, "Unknown tool: xxx", "characters ...]")
    await client.expect_refusal("context_slice", "no argument 'xxx", "characters ...]", **{long: 1})
    reply = await client.call("context_slice", context="logs", start=10**12, stop=10**13)
    assert reply.startswith("[nothing there"), reply


async def memories(client: Client, memory: Memory) -> None:
    assert json.loads(await client.call("memory", command="P note to be kept 60"))["success"]
    assert memory["note"] == "to be kept"
    assert json.loads(await client.call("memory", command="G none"))["error"] == "ERR:NOT_FOUND"
    memory.put("long", "ä" * 50_000)
    reply = json.loads(await client.call("memory", command="G long"))
    value, goes_on = reply["output"]["value"], reply["metadata"]["next"]
    assert (goes_on["tool"], goes_on["start"], goes_on["stop"]) == ("context_slice", len(value), 50_000)
    piece = await client.call("context_slice", context=goes_on["context"], start=49_990)
    assert piece == "ä" * 10
    memory.put("abs", "another")
    memory.put("/abs/", "ö" * 50_000)
    reply = json.loads(await client.call("memory", command="G /abs/"))
    assert await client.call("context_slice", context=reply["metadata"]["next"]["context"], start=49_990) == "ö" * 10
    memory.delete("abs")
    memory.delete("/abs/")
    assert "to be kept" in await client.call("context_search", context="memory", pattern="kept")
    assert "to be kept" in await client.call("context_search", context="memory", pattern="kept", words=True)


async def resources(client: Client) -> None:
    listed = {str(each.uri) for each in (await client.session.list_resources()).resources}
    assert listed == {"monocontext://all", "monocontext://logs", "monocontext://memory"}
    head = await client.resource("monocontext://logs")
    assert head.startswith(TEXT[:10_000])
    assert "next range: start=" in head
    assert await client.resource("monocontext://logs/100/150") == TEXT[100:150]
    assert await client.resource("monocontext://all%2Fdeep%2Ftiny/0/4") == "tiny"
    for uri, why in (("nope/0/1", "no context 'nope' is served here"), ("logs/soon/1", "a range is START/STOP")):
        assert why in await client.no_resource(f"monocontext://{uri}")


@contextmanager
def model(reply: str, asked: list[float], seconds: float = 0.0) -> Iterator[str]:
    """An endpoint that speaks OpenAI's protocol, whose model gives one reply, with the count of its calls for COUNT."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert json.loads(self.rfile.read(int(self.headers["content-length"])))["stream"]
            asked.append(time.monotonic())
            time.sleep(seconds)
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
            chunk |= {
                "choices": [
                    {"index": 0, "delta": {"content": reply.replace("COUNT", str(len(asked)))}, "finish_reason": "stop"}
                ]
            }
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
        os.environ["OPENAI_API_KEY"] = "none"
        async with stdio(place / "logs", "--base-url", url, "--runner", "local", package="rlm") as client:
            assert list(await client.tools()) == [*TOOLS[:-1], "ask", "chat_rlm_query"]
            said = f"at {TEXT.index('NEEDLE')} of {len(TEXT)}"
            answer = await client.call("ask", query="Where is the needle?")
            assert answer == said, answer
            assert await client.call("chat_rlm_query", query="Where is the needle?", chat_file="logs") == said
            await client.expect_refusal("ask", "the query is empty", query=" ")


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
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "monocontext", "mcp", *map(str, arguments), "--http", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
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
        for given, code in ((None, 401), ("wrong", 401), (token, 200)):
            assert await asyncio.to_thread(_post_status, url, given) == code
        async with _http_client(url, token) as client:
            assert list(await client.tools()) == TOOLS[:-1]
            assert await client.call("context_slice", start=3, stop=30) == TEXT[3:30]


def _post_status(url: str, token: str | None) -> int:
    """The status of a first request."""
    import urllib.error
    import urllib.request

    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "script", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


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
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
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


async def documents(place: Path) -> None:
    """Places that an editor opens; the lines between documents are in none of them."""
    files = place.parent / "files"
    files.mkdir()
    for name, text in {"a.txt": "x\nFILE one\n", "b.txt": "y\nz FILE"}.items():
        (files / name).write_text(text)
    command = [sys.executable, "-m", "monocontext", "upload", files, place / "folder"]
    subprocess.run(command, check=True, capture_output=True)
    hits = [
        {"document": "a.txt", "line": 2, "offset": 22, "text": "FILE one"},
        {"document": "b.txt", "line": 2, "offset": 55, "text": "z FILE"},
    ]
    async with stdio(place / "folder") as client:
        for pattern in ("FILE", "FIL[E]"):  # the second in a process of its own
            reply = await client.call("context_search", pattern=pattern)
            assert reply.startswith("a.txt:2:22:FILE one\nb.txt:2:55:z FILE\n[2 lines match;"), reply
            assert client.fields["hits"] == hits
        reply = await client.call("context_search", pattern="file", words=True)
        assert reply.startswith(("[a.txt:1, characters 20 to", "[b.txt:1, characters 51 to")), reply
        assert {(hit["document"], hit["line"]) for hit in client.fields["hits"]} == {("a.txt", 1), ("b.txt", 1)}


async def script(place: Path) -> None:
    publish(TEXT, place / "logs")
    publish("tiny", place / "deep" / "tiny")
    memory = Memory.open(place.parent / "memory")
    memory.put("first", "one")
    served = (f"all={place}", place / "logs", "--memory", memory.url)
    async with stdio(*served) as client:
        tools = await client.tools()
        assert list(tools) == TOOLS
        assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["memory"]
        for tool in tools.values():
            assert tool.title
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema["type"] == "object"
        await texts(client)
        await refusals(client)
        await memories(client, memory)
        await resources(client)
    await answers(place)
    cancelled_questions(place)
    await over_http(place)
    half_a_pair(place)
    leaving(place)
    await documents(place)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(script(Path(folder) / "contexts"))
    print("fine")
