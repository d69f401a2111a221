"""Doubles shared by the tests of `rlm`."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rlm import RLM, Completion, ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners.confine import bubblewrap
from rlm.runners.local import LocalRunner
from tests.rlm.rlm_replies import LazyText


@pytest.fixture(scope="session", autouse=True)
def _one_bubblewrap() -> Iterator[None]:
    """The program `bwrap` of the start of the session: one that is installed meanwhile is not half used."""
    found = bubblewrap.find()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bubblewrap, "find", lambda: found)
        yield


@pytest.fixture(autouse=True)
def _in_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of these tests that name no runner take the one in this process: doubles are handed over by reference."""
    if "confine" not in request.path.relative_to(Path(__file__).parent).parts:
        monkeypatch.setattr("rlm.rlm.DEFAULT_RUNNER", "local")


@pytest.fixture
def lazy() -> LazyText:
    return LazyText("".join(f"line {i}\n" for i in range(1000)))


@pytest.fixture
def runner_of() -> Iterator[Callable[..., LocalRunner]]:
    """Makes local runners, and closes them."""
    made: list[LocalRunner] = []

    def make(context: object = "the context", script: Any = str.upper, **options: Any) -> LocalRunner:
        made.append(LocalRunner(context, SubCalls(ScriptedLM(script), Usage()), **options))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


@pytest.fixture
def complete() -> Callable[..., Completion]:
    """Runs a scripted root over a context."""

    def run(replies: Any, context: object = "the context", **options: Any) -> Completion:
        options.setdefault("sub_lm", ScriptedLM(str.upper))
        return RLM(lm=ScriptedLM(replies), **options).completion("What is it?", context=context)

    return run


class Endpoint(ThreadingHTTPServer):
    """A stand-in for an OpenAI-compatible endpoint, on this machine."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.seen: list[dict[str, str]] = []
        """The headers of each request."""
        self.extra: dict[str, Any] = {}
        """Further fields of each answer."""
        self.keys: list[str | None] = []
        self.reply: Callable[[dict[str, Any]], str | tuple[int, str]] = lambda body: "hello"
        self.headers: dict[str, str] = {}
        self.usage: Any = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the middle of an answer is no error of this server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def log_message(self, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body)
        self.server.paths.append(self.path)
        self.server.seen.append({name.lower(): value for name, value in self.headers.items()})
        self.server.keys.append(self.headers["authorization"])
        reply = self.server.reply(body)
        usage = self.server.usage
        common = {"id": "1", "created": 1, "model": body["model"] + "-2026", **self.server.extra}
        if isinstance(reply, tuple):
            self._send(reply[0], json.dumps({"error": {"message": reply[1], "code": None}}))
        elif self.path.endswith("/responses"):
            self._respond(body, reply)
        elif body.get("stream"):
            self._begin()
            chunks: list[dict[str, Any]] = [
                {"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in (reply[:3], reply[3:])
            ]
            if body.get("stream_options"):
                chunks.append({"choices": [], "usage": usage})
            for chunk in chunks:
                line = json.dumps({**common, "object": "chat.completion.chunk", **chunk})
                self.wfile.write(f"data: {line}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")
        else:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
            self._send(200, json.dumps({**common, "object": "chat.completion", "choices": [choice], "usage": usage}))

    def _respond(self, body: dict[str, Any], reply: str) -> None:
        part = {"type": "output_text", "text": reply, "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
        answer = {
            "id": "r", "object": "response", "created_at": 1, "model": body["model"], "status": "completed",
            "output": [message], "usage": self.server.usage, "parallel_tool_calls": False, "tool_choice": "auto",
            "tools": [], **self.server.extra,
        }  # fmt: skip
        if not body.get("stream"):
            self._send(200, json.dumps(answer))
            return
        self._begin()
        events: list[dict[str, Any]] = [
            {"type": "response.output_text.delta", "delta": piece, "item_id": "m", "output_index": 0,
             "content_index": 0, "sequence_number": i, "logprobs": []}
            for i, piece in enumerate((reply[:3], reply[3:]))
        ]  # fmt: skip
        for event in [*events, {"type": "response.completed", "response": answer, "sequence_number": 9}]:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving(Endpoint()) as server:
        yield server


class _Messages(BaseHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers["x-api-key"] or self.headers["authorization"]  # the SDK moved it in version 2
        server.requests.append((self.path, key, body))
        server.seen.append({name.lower(): value for name, value in self.headers.items()})
        reply = server.reply(body)
        self.send_response(reply[0] if isinstance(reply, tuple) else 200)
        if isinstance(reply, tuple):
            self.send_header("retry-after", "4")
            self.send_header("content-type", "application/json")
            self.end_headers()
            error = {"type": "error", "error": {"type": "some_error", "message": reply[1]}}
            self.wfile.write(json.dumps(error).encode())
            return
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        usage = server.usage
        message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": body["model"],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
              for piece in (reply[:3], reply[3:])),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": server.written}},
            {"type": "message_stop"},
        ]  # fmt: skip
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


@pytest.fixture
def anthropic_endpoint() -> Iterator[Any]:
    pytest.importorskip("anthropic")
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Messages)
    server.daemon_threads = True
    server.requests, server.seen, server.reply = [], [], lambda body: "hello"
    server.usage = {
        "input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0,
    }  # fmt: skip
    server.written = 7
    server.url = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield server
