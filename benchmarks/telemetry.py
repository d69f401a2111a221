"""Measure what OpenTelemetry adds to a run: `python -m benchmarks.telemetry [turns]`.

A run over a text in files, a cell and four sub-calls of 20,000 characters a turn, through the SDK of OpenAI to a
stand-in of a model, which is another process and answers at once: its processor time without a provider. Then the lines
of its trajectory are told as the run tells them: read as spans, which is our own part; recorded as spans and metrics by
the SDK of OpenTelemetry; and sent as OTLP to a collector in that other process. The least of the rounds counts, all
threads of this process included; compare the ratios.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from benchmarks.logs import Logs
from benchmarks.machine import describe_machine
from monocontext import Monocontext, publish
from rlm import RLM, Completion, OpenAILM
from rlm.prompts.examples import conversation
from rlm.trajectory import spans
from rlm.trajectory.telemetry import of_run

ROUNDS = 7
SIZE_BYTES = 32 << 20
_CELL = """Let me look.
```repl
at = {turn} * len(context) // 25
lines = context[at : at + 200_000].splitlines()
errors = [line for line in lines if "ERROR" in line or "timeout" in line]
said = llm_query_batched([context[at + i * 20_000 : at + (i + 1) * 20_000] for i in range(4)])
print(len(lines), len(errors), said)
```"""
_ANSWER = '```repl\nanswer["content"] = "done"\nanswer["ready"] = True\n```'


class _Server(BaseHTTPRequestHandler):
    """A model that follows a script, and a collector that drops what it gets."""

    protocol_version = "HTTP/1.1"
    turns = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        reply = self._answer(json.loads(body)) if self.path.endswith("/chat/completions") else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def _answer(self, request: dict[str, Any]) -> bytes:
        messages = request["messages"]
        turn = sum(message["role"] == "assistant" for message in conversation(messages)) + 1
        text = _ANSWER if turn == self.turns else _CELL.format(turn=turn)
        text = "a few words" if len(messages) == 1 else text
        about = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
        usage = {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}
        if not request.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            return json.dumps(about | {"object": "chat.completion", "choices": [choice], "usage": usage}).encode()
        pieces = [text[i : i + 12] for i in range(0, len(text), 12)]
        chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        lines = [f"data: {json.dumps(about | chunk)}\n\n" for chunk in (*chunks, {"choices": [], "usage": usage})]
        return ("".join(lines) + "data: [DONE]\n\n").encode()

    def log_message(self, *_: object) -> None: ...


def _serve(port: Any, turns: int) -> None:
    _Server.turns = turns
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        port.send(server.server_port)
        server.serve_forever()


@contextmanager
def _server(turns: int) -> Iterator[str]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, turns), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{ours.recv()}/v1"
    process.terminate()


@contextmanager
def _providers(exporter: OTLPSpanExporter | None) -> Iterator[None]:
    tracing, metering = TracerProvider(), MeterProvider([InMemoryMetricReader()])
    if exporter:
        tracing.add_span_processor(BatchSpanProcessor(exporter))
    with (
        mock.patch.object(trace, "get_tracer_provider", return_value=tracing),
        mock.patch.object(metrics, "get_meter_provider", return_value=metering),
    ):
        yield
        tracing.shutdown()  # sends what is left
        metering.shutdown()


def main(turns: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder, _server(turns) as address:
        publish((piece.decode() for piece in Logs(SIZE_BYTES, 64)), Path(folder) / "text")

        rlm = RLM(lm=OpenAILM("m", base_url=address, api_key="none"), runner="local", max_iterations=turns)

        runs: list[float] = []
        for _ in range(ROUNDS):
            with Monocontext.open(Path(folder) / "text") as context:
                began = time.process_time()
                completion = rlm.completion("?", context)
                runs.append(time.process_time() - began)
        seconds = {
            "read": min(_read(completion) for _ in range(ROUNDS)),
            "recorded": min(_tell(completion, None) for _ in range(ROUNDS)),
            "sent": min(_tell(completion, OTLPSpanExporter(f"{address}/traces")) for _ in range(ROUNDS)),
        }
    return {
        "machine": describe_machine(),
        "turns": completion.iterations,
        "calls": completion.usage.calls,
        "run_cpu_seconds": round(min(runs), 4),
        "telemetry_cpu_seconds": {name: round(each, 4) for name, each in seconds.items()},
        "overhead_percent": {name: round(100 * each / min(runs), 2) for name, each in seconds.items()},
    }


def _read(completion: Completion) -> float:
    """Processor seconds of reading the lines of a run as spans."""
    metadata, *lines = completion.trajectory
    began = time.process_time()
    for line in lines:
        spans.turn(line, metadata)
    return time.process_time() - began


def _tell(completion: Completion, exporter: OTLPSpanExporter | None) -> float:
    """Processor seconds of telling a run."""
    metadata, *lines = completion.trajectory
    with _providers(exporter):
        began = time.process_time()
        with of_run(metadata, 0.0) as told:
            for line in lines:
                told.line(line)
            told.end(lines[-1], completion.iterations, completion.io)
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20), indent=2))
