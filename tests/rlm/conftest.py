"""Doubles shared by the tests of `rlm`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rlm import RLM, Completion, ScriptedLM
from rlm.runners.confine import bubblewrap
from rlm.runners.local import LocalRunner
from tests.rlm.rlm_replies import LazyText, calls, serving


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
        made.append(LocalRunner(context, calls(script), **options))
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
    """A stand-in for an endpoint that is compatible with OpenAI or Anthropic, on this machine."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.seen: list[dict[str, str]] = []
        """The headers of each request."""
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
        self.server.keys.append(self.headers["authorization"] or self.headers["x-api-key"])
        reply = self.server.reply(body)
        if isinstance(reply, tuple):
            error = {"type": "error"} if self.path.endswith("/messages") else {}
            self._send(reply[0], {**error, "error": {"message": reply[1], "code": None}})
        elif self.path.endswith("/messages"):
            self._message(body, reply)
        elif self.path.endswith("/responses"):
            self._respond(body, reply)
        else:
            self._chat(body, reply)

    def _chat(self, body: dict[str, Any], reply: str) -> None:
        common = {"id": "1", "created": 1, "model": body["model"] + "-2026"}
        usage = self.server.usage
        if not body.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
            self._send(200, {**common, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in (reply[:3], reply[3:])
        ]
        if body.get("stream_options"):
            chunks.append({"choices": [], "usage": usage})
        self._stream([{**common, "object": "chat.completion.chunk", **chunk} for chunk in chunks], "data: [DONE]\n\n")

    def _respond(self, body: dict[str, Any], reply: str) -> None:
        part = {"type": "output_text", "text": reply, "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
        answer = {
            "id": "r", "object": "response", "created_at": 1, "model": body["model"], "status": "completed",
            "output": [message], "usage": self.server.usage, "parallel_tool_calls": False, "tool_choice": "auto",
            "tools": [],
        }  # fmt: skip
        if not body.get("stream"):
            self._send(200, answer)
            return
        events: list[dict[str, Any]] = [
            {"type": "response.output_text.delta", "delta": piece, "item_id": "m", "output_index": 0,
             "content_index": 0, "sequence_number": i, "logprobs": []}
            for i, piece in enumerate((reply[:3], reply[3:]))
        ]  # fmt: skip
        self._stream([*events, {"type": "response.completed", "response": answer, "sequence_number": 9}])

    def _message(self, body: dict[str, Any], reply: str) -> None:
        message = {"type": "message", "id": "m", "role": "assistant", "content": [], "model": body["model"],
                   "stop_reason": None, "stop_sequence": None, "usage": self.server.usage}  # fmt: skip
        self._stream([
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
              for piece in (reply[:3], reply[3:])),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        ])  # fmt: skip

    def _stream(self, events: list[dict[str, Any]], end: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(end.encode())

    def _send(self, status: int, value: dict[str, Any]) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        for name, text in self.server.headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving(Endpoint()) as server:
        yield server


@pytest.fixture
def anthropic_endpoint() -> Iterator[Endpoint]:
    pytest.importorskip("anthropic")
    with serving(Endpoint()) as server:
        server.url = server.url.removesuffix("/v1")
        server.usage = {
            "input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0,
        }  # fmt: skip
        yield server
