"""OpenTelemetry hears the same of a run as its trajectory holds: spans, metrics, and both over OTLP."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.trace import SpanKind, StatusCode

from monocontext import Monocontext, publish
from monocontext.options import StoreOptions
from monocontext.stores import log
from monocontext.testing import S3StandIn
from monocontext.testing.http_faults import cut, slow_down
from rlm import RLM, Completion, LLMError, RateLimited, ScriptedLM
from rlm.prompts.examples import conversation
from rlm.trajectory import telemetry

pytestmark = pytest.mark.slow  # needs packages that `make test` does not install

TURNS = 20
SECRET = "sk-what-an-endpoint-said"
CELLS = {
    3: 'print(llm_query("one"), llm_query("one"))',
    4: 'print(llm_query_batched([f"part {i}" for i in range(30)]))',
    5: 'llm_query("fail")',
    6: "1 / 0",
    7: 'print(rlm_query("child", context="some text"))',
    8: 'import sys; print("a warning", file=sys.stderr)',
    TURNS: 'answer["content"] = "done"\nanswer["ready"] = True',
}


def root(messages: Any) -> str:
    """Reads in each turn; the child of turn 7 asks once and answers."""
    if isinstance(messages, str):
        if messages == "fail":
            raise LLMError(SECRET)
        return f"reply to {messages}"
    turn = sum(message["role"] == "assistant" for message in conversation(messages)) + 1
    asked = conversation(messages)[0]["content"]
    if "child" in asked[:2000] and "some text" not in asked:
        return '```repl\nanswer["content"] = llm_query("of the child")\nanswer["ready"] = True\n```'
    code = CELLS.get(turn, f"print(context[{turn * 40_000}:{turn * 40_000 + 50}])")
    return f"```repl\n{code}\n```" if turn != 9 else "```repl\nprint(1)\n```\n```repl\nprint(2)\n```"


class Heard:
    """What the SDK recorded."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracing = TracerProvider(**options)
        self.tracing.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.metering = MeterProvider([self.reader])

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.split()[0] == name]

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        found = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return {metric.name: list(metric.data.data_points) for metric in found}


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return set_up(monkeypatch)


def set_up(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Heard:
    """Providers of this test alone: those of a process can be set once."""
    heard = Heard(**options)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: heard.tracing)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: heard.metering)
    return heard


def run(folder: Path, reply: Callable[[Any], str] = root, **options: Any) -> Completion:
    publish("".join(f"{i:09d}\n" for i in range(100_000)), folder / "text", frame_bytes=16_384)
    with Monocontext.open(folder / "text", prefetch="off", cache_bytes=1 << 20) as context:
        rlm = RLM(lm=ScriptedLM(reply, model="m"), max_depth=2, sub_cache=True, max_iterations=25, **options)
        return rlm.completion("What?", context)


def walk(lines: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a trajectory holds: its turns, cells and calls, those of child runs included."""
    for line in lines:
        yield "turn", line
        for block in line["code_blocks"]:
            yield "cell", block["result"]
            for call in block["result"]["rlm_calls"]:
                if "iterations" in call:
                    yield "child", call
                    yield from walk(call["iterations"])
                else:
                    yield "call", call


def test_spans_and_metrics_are_those_of_the_trajectory(tmp_path: Path, heard: Heard) -> None:
    completion = run(tmp_path)
    recorded = list(walk(completion.trajectory[1:]))
    assert completion.iterations == TURNS
    assert Counter(kind for kind, _ in recorded) == {"turn": 21, "cell": 22, "call": 34, "child": 1}
    whole = [span for span in heard.spans if span.parent is None]
    [top] = whole
    about = dict(top.attributes or {})
    assert top.name == "invoke_agent rlm"
    assert about["rlm.turns"] == TURNS
    assert (about["rlm.calls"], about["rlm.input_tokens"], about["rlm.output_tokens"]) == (
        completion.usage.calls, completion.usage.input_tokens, completion.usage.output_tokens,
    )  # fmt: skip
    assert completion.io is not None
    assert (about["rlm.read.gets"], about["rlm.read.bytes"]) == (completion.io["gets"], completion.io["bytes"])
    assert about["rlm.reason"] == "answer"

    def told(kind: str, *names: str) -> list[tuple[Any, ...]]:
        return sorted(tuple((span.attributes or {}).get(name) for name in names) for span in heard.named(kind))

    assert told("turn", "rlm.turn") == sorted((line["iteration"],) for kind, line in recorded if kind == "turn")
    assert len(heard.named("execute_tool")) == 22
    calls = [each for kind, each in recorded if kind in ("turn", "call")]
    assert told("chat", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens") == sorted(
        (call["prompt_tokens"], call["completion_tokens"]) for call in calls
    )
    reads = [cell["io"] for kind, cell in recorded if kind == "cell" and cell.get("io") and cell["io"]["gets"]]
    assert len(reads) >= 10
    assert told("read", "rlm.read.gets", "rlm.read.bytes") == sorted((io["gets"], io["bytes"]) for io in reads)
    assert all(span.kind is SpanKind.CLIENT for span in heard.named("chat"))

    points = heard.points()
    tokens = {point.attributes["gen_ai.token.type"]: point for point in points["gen_ai.client.token.usage"]}
    assert (tokens["input"].sum, tokens["output"].sum) == (
        completion.usage.input_tokens,
        completion.usage.output_tokens,
    )
    assert tokens["input"].count == completion.usage.calls
    assert tokens["input"].explicit_bounds[:3] == (1, 4, 16)
    durations = points["gen_ai.client.operation.duration"]
    assert sum(point.count for point in durations) == completion.usage.calls + 1, "the call that failed took time too"
    assert [point.count for point in durations if "error.type" in point.attributes] == [1]
    ahead = [line["ahead"] for kind, line in recorded if kind == "turn" and line["ahead"]]
    for name in ("bytes", "gets"):
        [point] = points[f"rlm.read.{name}"]
        assert point.value == sum(io[name] for io in [*reads, *ahead])


def test_names_are_those_of_the_conventions(tmp_path: Path, heard: Heard) -> None:
    run(tmp_path)
    used = {name for span in heard.spans for name in span.attributes or {} if name.startswith("gen_ai.")}
    used |= {
        name for points in heard.points().values() for point in points for name in point.attributes if "gen" in name
    }
    assert len(used) >= 10
    assert used - {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")} == set()
    assert {gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE, gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION} <= set(
        heard.points()
    )


def test_what_is_inside_what(tmp_path: Path, heard: Heard) -> None:
    run(tmp_path)
    by_id = {span.context.span_id: span for span in heard.spans}

    def above(span: ReadableSpan) -> list[str]:
        names = []
        while span.parent is not None:
            inside, span = span, by_id[span.parent.span_id]
            turn = (span.attributes or {}).get("rlm.turn")
            names.append(span.name if turn is None else f"{span.name} {turn}")
            assert span.start_time <= inside.start_time
            assert inside.end_time <= span.end_time
        return names

    calls = Counter(tuple(above(span)) for span in heard.named("chat"))
    cell, top = "execute_tool python", "invoke_agent rlm"
    assert calls[(cell, "turn 4", top)] == 30, "a batch"
    assert calls[(cell, "turn 3", top)] == 2
    child = (top, cell, "turn 7", top)
    assert calls[("turn 1", *child)] == 1
    assert calls[(cell, "turn 1", *child)] == 1
    assert calls[("turn 4", top)] == 1, "the root"
    assert {tuple(above(span)) for span in heard.named("read")} <= {(cell, f"turn {i}", top) for i in range(1, 21)}
    cached = [span for span in heard.named("chat") if (span.attributes or {}).get("rlm.cached")]
    assert [above(span) for span in cached] == [[cell, "turn 3", top]]


def test_errors_set_the_status_and_nothing_that_was_said_is_told(tmp_path: Path, heard: Heard) -> None:
    completion = run(tmp_path)
    failed = {
        (s.name, (s.attributes or {}).get("error.type"))
        for s in heard.spans
        if s.status.status_code is StatusCode.ERROR
    }
    assert failed == {
        ("execute_tool python", "rlm.errors.LLMError"), ("execute_tool python", "ZeroDivisionError"),
        ("execute_tool python", "_OTHER"), ("chat m", "LLMError"),
    }  # fmt: skip
    told = " ".join(span.to_json() for span in heard.spans)
    assert SECRET in str(completion.trajectory), "the record has it"
    for said in (SECRET, "division", "What?", "part 1", "reply to", "done", "print", "a warning", "some text"):
        assert said not in told


def test_a_run_that_fails(tmp_path: Path, heard: Heard) -> None:
    def reply(messages: Any) -> str:
        if len(conversation(messages)) > 1:
            raise LLMError(SECRET)
        return "```repl\n1\n```"

    with pytest.raises(LLMError):
        run(tmp_path, reply)
    [top] = [span for span in heard.spans if span.parent is None]
    assert (top.status.status_code, top.status.description) == (StatusCode.ERROR, None)
    assert dict(top.attributes or {})["error.type"] == "LLMError"
    assert len(heard.named("turn")) == 1
    assert not any(span.events for span in heard.spans)
    answered, failed = sorted(heard.named("chat"), key=lambda span: span.start_time or 0)
    assert answered.status.status_code is StatusCode.UNSET
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, None)
    assert failed.parent is not None
    assert failed.parent.span_id == top.context.span_id, "a turn that has no line has no span"
    assert top.start_time <= failed.start_time <= failed.end_time <= top.end_time
    about = dict(failed.attributes or {})
    assert (about["error.type"], about["gen_ai.request.model"]) == ("LLMError", "m")
    assert SECRET not in " ".join(span.to_json() for span in heard.spans)
    durations = heard.points()["gen_ai.client.operation.duration"]
    assert {point.attributes.get("error.type"): point.count for point in durations} == {None: 1, "LLMError": 1}


def test_a_call_that_failed_is_told_once(heard: Heard) -> None:
    """The kind of its error is told, and the next question of the session knows nothing of it."""
    replies: Iterator[Any] = iter([RateLimited(SECRET), ANSWERING])

    def reply(messages: Any) -> str:
        next_one = next(replies)
        if isinstance(next_one, Exception):
            raise next_one
        return str(next_one)

    with RLM(lm=ScriptedLM(reply), max_retries=0).session("text") as session:
        with pytest.raises(RateLimited):
            session.ask("a")
        assert session.ask("b").answer == "paid"
    kinds = [(span.attributes or {}).get("error.type") for span in heard.named("chat")]
    assert kinds == ["RateLimited", None]
    assert len({span.context.trace_id for span in heard.spans}) == 2


def test_a_run_that_is_broken_off_has_no_call_that_failed(heard: Heard) -> None:
    def reply(messages: Any) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RLM(lm=ScriptedLM(reply)).completion("What?", "text")
    assert [span.name for span in heard.spans] == ["invoke_agent rlm"]


def test_questions_of_a_session_are_runs_of_their_own(heard: Heard) -> None:
    reply = '```repl\nanswer["content"] = "x"\nanswer["ready"] = True\n```'
    with RLM(lm=ScriptedLM([reply, reply])).session("text") as session:
        session.ask("a")
        session.ask("b")
    tops = [span for span in heard.spans if span.parent is None]
    assert [dict(span.attributes or {})["rlm.turns"] for span in tops] == [1, 1]
    assert [dict(span.attributes or {})["rlm.turn"] for span in heard.named("turn")] == [1, 2]


def test_a_run_lies_in_what_its_caller_does(heard: Heard) -> None:
    """Also that of a task, which has a thread of its own; and what SDKs tell in a turn lies in the run."""

    def reply(messages: Any) -> str:
        with heard.tracing.get_tracer("sdk").start_as_current_span("http"):
            return '```repl\nanswer["content"] = "x"\nanswer["ready"] = True\n```'

    with heard.tracing.get_tracer("program").start_as_current_span("program") as program:
        asyncio.run(RLM(lm=ScriptedLM(reply)).acompletion("a", "text"))
    [top], [http] = heard.named("invoke_agent"), heard.named("http")
    assert top.parent is not None
    assert http.parent is not None
    assert top.parent.span_id == program.get_span_context().span_id
    assert http.parent.span_id == top.context.span_id


def test_a_run_that_is_not_sampled_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = set_up(monkeypatch, sampler=ALWAYS_OFF)
    completion = run(tmp_path)
    assert heard.spans == []
    tokens = heard.points()["gen_ai.client.token.usage"]
    assert sum(point.sum for point in tokens) == completion.usage.tokens


def test_without_a_provider_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turned: list[object] = []
    monkeypatch.setattr(telemetry.spans, "turn", lambda *given: turned.append(given))
    monkeypatch.setattr(telemetry.spans, "run_attributes", turned.append)
    assert run(tmp_path).answer == "done"
    assert turned == []


class Raising(SpanProcessor):
    """Raises at this method for spans whose name begins so."""

    def __init__(self, method: str, name: str) -> None:
        self.names: list[str] = []

        def fail(span: Any, *_: object, **__: object) -> None:
            self.names.append(span.name)
            if span.name.startswith(name):
                raise RuntimeError(SECRET)

        setattr(self, method, fail)


ANSWERING = '```repl\nanswer["content"] = "paid"\nanswer["ready"] = True\n```'
WARNED = ["OpenTelemetry hears no more of this run: RuntimeError"]


@pytest.mark.parametrize("name", ["", "turn", "chat", "execute_tool", "invoke_agent"])
@pytest.mark.parametrize("method", ["on_start", "on_end"])
def test_a_processor_that_raises_ends_what_is_told_and_no_run(
    method: str, name: str, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    raising = Raising(method, name)
    heard.tracing.add_span_processor(raising)
    completion = RLM(lm=ScriptedLM(["```repl\nprint(1)\n```", ANSWERING])).completion("What?", "text")
    assert (completion.answer, completion.iterations) == ("paid", 2)
    assert [line["type"] for line in completion.trajectory] == ["metadata", "iteration", "iteration"]
    assert [record.getMessage() for record in caplog.records if record.name == "rlm"] == WARNED
    assert trace.get_current_span() is trace.INVALID_SPAN
    if method == "on_end":
        assert raising.names[-1] == "invoke_agent rlm", "the span of the run ends whatever failed before"
        assert raising.names.count("turn") <= 2 * (name == "invoke_agent") + (name == "turn")


@pytest.mark.parametrize("method", ["on_start", "on_end"])
def test_beside_a_processor_that_raises_a_run_fails_as_it_would(method: str, heard: Heard) -> None:
    heard.tracing.add_span_processor(Raising(method, "invoke_agent"))
    failure = LLMError("of the model")

    def reply(messages: Any) -> str:
        raise failure

    with pytest.raises(LLMError) as caught:
        RLM(lm=ScriptedLM(reply)).completion("What?", "text")
    assert caught.value is failure


def test_an_api_that_is_too_old_hears_nothing(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class OldMeter:
        def create_histogram(self, name: str, unit: str, description: str) -> None: ...

    monkeypatch.setattr(heard.metering, "get_meter", lambda _: OldMeter())
    assert RLM(lm=ScriptedLM([ANSWERING])).completion("What?", "text").answer == "paid"
    [warned] = [record.getMessage() for record in caplog.records if record.name == "rlm"]
    assert warned.endswith(": TypeError")


def test_a_program_without_opentelemetry_does_not_import_it() -> None:
    code = (
        "import sys; from rlm import RLM, ScriptedLM; sys.modules['opentelemetry'] = None\n"
        'reply = \'```repl\\nanswer["content"] = "x"\\nanswer["ready"] = True\\n```\'\n'
        "print(RLM(lm=ScriptedLM([reply]), runner='local').completion('a', 'text').answer)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["x", "[]"], done.stderr


def test_logging_spans_and_record_of_a_bad_day_agree(
    heard: Heard, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 turns over a store and a model that fail for a while: each try is in the log, and no other."""
    monkeypatch.setattr("rlm.calls.gateway.time.sleep", lambda seconds: None)
    log.emit()  # what other tests left behind
    caplog.clear()
    caplog.set_level("DEBUG", "monocontext")
    caplog.set_level("DEBUG", "rlm")
    failures = iter([RateLimited(SECRET), LLMError(SECRET, transient=True)] * 2)

    def flaky(messages: Any) -> str:
        asked = messages if isinstance(messages, str) else ""
        if asked.startswith("part 1") or (not asked and len(conversation(messages)) == 5):
            for failure in failures:
                raise failure
        return root(messages)

    text = "".join(f"{i:09d} {i * 2_654_435_761 % 2**32:08x}\n" for i in range(100_000))
    with S3StandIn() as server:
        options: StoreOptions = {"endpoint": server.endpoint, "anonymous": True}
        publish(text, server.url("ctx"), frame_bytes=16_384, filters=False, store_options=options)
        server.reset_counts()
        server.faults.add(slow_down(), key="*segments*", times=2)
        server.faults.add(cut(at=1000), key="*segments*")
        with Monocontext.open(server.url("ctx"), prefetch="off", hedge=None, cache_bytes=1 << 20, **options) as context:
            completion = RLM(lm=ScriptedLM(flaky, model="m"), max_depth=2, max_iterations=25).completion("?", context)
            log.emit()
            stats, asked = context.stats, server.counts["GET"]
    told = [record.getMessage() for record in caplog.records if record.name == "monocontext"]
    again = [line for line in told if "; sent again in" in line or "; resumed in" in line]
    assert completion.iterations == TURNS
    assert stats.gets > len(again) == 3
    assert asked == stats.gets + len(again)
    assert sum("503 SlowDown" in line for line in again) == stats.throttled == 2
    tries = [record.getMessage() for record in caplog.records if record.name == "rlm"]
    assert len(tries) == 4
    assert SECRET not in " ".join(tries)
    assert next(failures, None) is None
    assert len(heard.named("chat")) == completion.usage.calls + 1, "the sub-call that failed for good"
    [top] = [span for span in heard.spans if span.parent is None]
    assert completion.io is not None
    assert dict(top.attributes or {})["rlm.read.gets"] == completion.io["gets"] == stats.gets - 1, "one for the root"


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    """An OTLP/HTTP collector: its address, and the messages that it decoded."""
    messages: list[Any] = []
    kinds = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/x-protobuf"
            messages.append(kinds[self.path].FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", messages
        server.shutdown()


def test_a_collector_receives_them(tmp_path: Path, heard: Heard, collector: tuple[str, list[Any]]) -> None:
    address, messages = collector
    exporter = OTLPSpanExporter(f"{address}/v1/traces", compression=Compression.NoCompression)
    heard.tracing.add_span_processor(BatchSpanProcessor(exporter))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{address}/v1/metrics"), 10**9)
    heard.metering = MeterProvider([reader])
    completion = run(tmp_path)
    heard.tracing.shutdown()
    heard.metering.shutdown()
    scopes = [
        scope for message in messages if isinstance(message, ExportTraceServiceRequest)
        for resource in message.resource_spans for scope in resource.scope_spans
    ]  # fmt: skip
    assert {scope.scope.name for scope in scopes} == {"rlm"}
    received = [span for scope in scopes for span in scope.spans]

    def plain(value: Any) -> Any:
        return getattr(value, value.WhichOneof("value"))

    assert sorted(
        (span.name, int.from_bytes(span.span_id), {each.key: plain(each.value) for each in span.attributes})
        for span in received
    ) == sorted((span.name, span.context.span_id, dict(span.attributes or {})) for span in heard.spans)
    assert len({span.trace_id for span in received}) == 1
    sums = {
        metric.name: sum(point.sum for point in metric.histogram.data_points)
        for message in messages if isinstance(message, ExportMetricsServiceRequest)
        for resource in message.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
    }  # fmt: skip
    assert sums["gen_ai.client.token.usage"] == completion.usage.tokens
