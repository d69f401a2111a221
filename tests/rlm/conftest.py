"""Doubles shared by the tests of `rlm`."""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from rlm import RLM, Completion, ScriptedLM
from rlm.runners.local import LocalRunner
from rlm.subcalls import SubCalls
from rlm.usage import Usage


class LazyText:
    """A duck-typed lazy context: counts what is read of it, and refuses to become a str."""

    url = "memory://double"

    def __init__(self, text: str) -> None:
        self._text = text
        self.stats = SimpleNamespace(gets=1, bytes_fetched=100, hits=0, wait_seconds=0.5)
        self.events: list[str] = []
        self.hinted = ""

    def __len__(self) -> int:
        return len(self._text)

    def __getitem__(self, key: Any) -> str:
        self.stats.gets += 1
        self.stats.bytes_fetched += 10
        self.stats.wait_seconds += 0.25
        return self._text[key]

    @property
    def lines(self) -> list[str]:
        return self._text.splitlines(keepends=True)

    def __str__(self) -> str:
        raise MemoryError("too large: write context[a:b]")

    __format__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<LazyText {len(self)} chars>"

    def __reduce__(self) -> Any:
        raise TypeError("handed over by reference, never serialised")

    @contextmanager
    def thinking(self) -> Iterator[None]:
        self.events.append("think")
        yield
        self.events.append("thought")

    def hint(self, delta: str) -> None:
        self.events.append("hint")
        self.hinted += delta

    def repl_namespace(self) -> Any:
        lazy = self

        class Kit:
            def __init__(self) -> None:
                is_text = lambda value: value is lazy or type(value) is str  # noqa: E731 - a name for the namespace
                self.names = {"magic": 7, "open": lambda *args: "shimmed open", "is_text": is_text}

            def transform(self, tree: ast.Module) -> ast.Module:
                class IsText(ast.NodeTransformer):
                    def visit_Call(self, node: ast.Call) -> ast.AST:
                        self.generic_visit(node)
                        if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                            return ast.Call(ast.Name("is_text", ast.Load()), [node.args[0]], [])
                        return node

                return IsText().visit(tree)

        return Kit()


@pytest.fixture(autouse=True)
def _in_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of these tests that name no runner take the one in this process: doubles are handed over by reference."""
    if "sandbox" not in request.path.parts:
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
        self.keys: list[str | None] = []
        self.reply: Callable[[dict[str, Any]], str | tuple[int, str]] = lambda body: "hello"
        self.break_stream = False
        self.headers: dict[str, str] = {}
        self.code: str | None = None


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def log_message(self, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body)
        self.server.keys.append(self.headers["authorization"])
        reply = self.server.reply(body)
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        common = {"id": "1", "created": 1, "model": body["model"] + "-2026"}
        if isinstance(reply, tuple):
            self._send(reply[0], json.dumps({"error": {"message": reply[1], "code": self.server.code}}))
        elif body.get("stream"):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            chunks: list[dict[str, Any]] = [
                {"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in (reply[:3], reply[3:])
            ]
            if body.get("stream_options"):
                chunks.append({"choices": [], "usage": usage})
            for chunk in chunks:
                line = json.dumps({**common, "object": "chat.completion.chunk", **chunk})
                self.wfile.write(f"data: {line}\n\n".encode())
                if self.server.break_stream:
                    self.wfile.write(b'data: {"error": {"message": "the model fell over"}}\n\n')
                    return
            self.wfile.write(b"data: [DONE]\n\n")
        else:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
            self._send(200, json.dumps({**common, "object": "chat.completion", "choices": [choice], "usage": usage}))

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
