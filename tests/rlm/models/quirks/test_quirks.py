"""The table of quirks, sent by a server of this machine to the SDKs of today."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from quirks import ROWS, STOP, Answer, Row, delta, events
from rlm_replies import ASK, serving

from rlm import AnthropicLM, Budget, BudgetSpent, LLMError, OpenAILM, Usage
from rlm.calls.gateway import Gateway
from rlm.models.endpoint_errors import CallTarget
from rlm.models.wire import read_body

PIECES = (1, 3, 0)
"""Bytes of a piece; 0 for all at once."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.sent: Any = None
        self.piece = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        sent = self.server.sent
        answer: Answer = sent(request) if callable(sent) else sent
        self.send_response(answer.status)
        for name, value in {"content-type": answer.kind, "transfer-encoding": "chunked", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        size = self.server.piece or len(answer.body) or 1
        pieces = [answer.body[at : at + size] for at in range(0, len(answer.body), size)]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        self.wfile.write(chunks + (b"" if answer.torn else b"0\r\n\r\n"))
        self.close_connection = answer.torn


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(Server()) as server:
        yield server


@pytest.fixture(scope="module")
def models(server: Server) -> Iterator[dict[str, Any]]:
    made = {
        "chat": OpenAILM("m", base_url=f"{server.url}/v1", api_key="k"),
        "responses": OpenAILM("m", base_url=f"{server.url}/v1", api_key="k", api="responses"),
        "anthropic": AnthropicLM("m", base_url=server.url, api_key="k"),
    }
    yield made
    for lm in made.values():
        lm.close()


def check(lm: Any, row: Row, streamed: bool) -> None:
    pieces: list[str] = []
    ask = partial(
        lm.with_sampling(row.options).complete, ASK, model=row.name, on_delta=pieces.append if streamed else None
    )
    out = row.out
    if out.error:
        with pytest.raises(out.error) as caught:
            ask()
        assert type(caught.value) is out.error
        assert out.words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.transient == out.again
        assert {name: getattr(caught.value, name) for name in out.more} == out.more
        return
    reply = ask()
    assert (reply.text, reply.thinking, reply.cut, reply.called) == (out.text, out.thinking, out.cut, out.called)
    assert reply.call_arguments == out.arguments
    assert [words in note for words, note in zip(out.notes, reply.notes, strict=True)] == [True] * len(out.notes)
    if streamed:
        assert "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16") == reply.text
        assert all(pieces)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.api}: {row.name}")
def test_what_comes_out(server: Server, models: dict[str, Any], row: Row) -> None:
    for piece in PIECES:
        for sent, streamed in ((row.streamed, True), (row.whole, False)):
            if sent is not None:
                server.sent, server.piece = sent, piece
                check(models[row.api], row, streamed)


def test_nothing_but_signs_of_life_is_a_timeout() -> None:
    pieces = [b": ping\n\n" * 3, b"data: [DONE]\n\n"]
    with pytest.raises(LLMError, match="sent no part of its reply for 1e-09 seconds") as caught:
        list(read_body(pieces, CallTarget("m", "http://x/v1"), timeout_seconds=1e-9))
    assert caught.value.transient
    assert len(list(read_body(pieces, CallTarget("m", "http://x/v1"), timeout_seconds=60))) == 4


@pytest.mark.parametrize("sign", [delta(reasoning_content="hm"), ": ping"])
def test_a_run_out_of_time_ends_a_call_that_only_thinks(server: Server, models: dict[str, Any], sign: Any) -> None:
    server.piece = 0
    gate = Gateway(Usage(), Budget(iterations=None, seconds=60))

    def answer(request: dict[str, Any]) -> Answer:
        gate.began -= 61  # the time runs out while the model thinks
        return events(sign, sign, STOP)

    server.sent = answer
    with pytest.raises(BudgetSpent, match="cancelled: max_seconds"):
        gate.ask(models["chat"], ASK)


@pytest.mark.parametrize("begin", [b'{"a": "', b"data: "])
def test_a_body_without_an_end_is_one_line(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.models.wire._MOST_BYTES", 1 << 20)
    pieces = (begin if number == 0 else b"x" * 1000 for number in range(10_000))
    with pytest.raises(LLMError, match="the answer has more than 1 MiB"):
        list(read_body(pieces, CallTarget("m", "http://x/v1"), timeout_seconds=60))
    assert next(pieces, None), "the body was read to its end"
