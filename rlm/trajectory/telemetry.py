"""Report runs to OpenTelemetry: each line of a trajectory becomes spans and metrics as soon as it is written.

A program without a provider of OpenTelemetry pays one look into `sys.modules` for each question. This module needs only
the API (`opentelemetry-api`, extra `otel`): the program chooses where spans go.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rlm.models.log import WARNING, log
from rlm.trajectory import spans
from rlm.trajectory.spans import Line, SpanRecord

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

P = ParamSpec("P")
T = TypeVar("T")

_SCOPE = "rlm"
_TOKEN_BOUNDS = tuple(float(4**i) for i in range(14))
"""Bounds from the convention: 1 to 67,108,864."""
_SECONDS_BOUNDS = tuple(0.01 * 2**i for i in range(14))
"""Bounds from the convention: 0.01 to 81.92."""
_READ_COUNTS = {
    "rlm.read.bytes": ("rlm.read.bytes", "rlm.read_ahead.bytes"),
    "rlm.read.gets": ("rlm.read.gets", "rlm.read_ahead.gets"),
}
"""Counter -> the attributes of spans that it sums."""
_LABELS = tuple(f"gen_ai.{name}" for name in ("operation.name", "provider.name", "request.model", "response.model"))
"""Attributes of calls that separate measurements."""
_TOKENS = {kind: f"gen_ai.usage.{kind}_tokens" for kind in ("input", "output")}


class Telemetry:
    """Receives the lines of one run; this class ignores them."""

    def line(self, line: Line) -> None:
        """A turn has ended."""

    def failed_call(self, call: Line) -> None:
        """A call of the root has failed, which ends the run."""

    def end(self, line: Line, turns: int, io: Mapping[str, float] | None) -> None:
        """End the run with this line, after this many turns and these reads."""


_SILENT = Telemetry()


@contextmanager
def of_run(metadata: Line, elapsed_seconds: float) -> Iterator[Telemetry]:
    """Report the run inside the block; its clock shows `elapsed_seconds`.

    Its span is the current one inside, so that spans of HTTP clients and SDKs in this thread are its children. An
    exception sets its status, without the message. An exception of providers and processors ends the reports, never the
    run.
    """
    if "opentelemetry.trace" not in sys.modules and "opentelemetry.metrics" not in sys.modules:
        yield _SILENT
        return
    telemetry = _GuardedTelemetry(metadata, elapsed_seconds)
    error = None
    try:
        yield telemetry
    except BaseException as exc:
        error = type(exc).__name__
        raise
    finally:
        telemetry.stop(error)


class _GuardedTelemetry(Telemetry):
    """Passes on reports until something raises."""

    def __init__(self, metadata: Line, elapsed_seconds: float) -> None:
        self._failed = False
        self._failed_call: Line | None = None
        self._spans = self._try(_begin, metadata, elapsed_seconds)

    def line(self, line: Line) -> None:
        if self._spans and not self._failed:
            self._try(self._spans.line, line)

    def failed_call(self, call: Line) -> None:
        self._failed_call = call  # reported by `stop`, which knows the kind of error

    def end(self, line: Line, turns: int, io: Mapping[str, float] | None) -> None:
        if self._spans and not self._failed:
            self._try(self._spans.end, line, turns, io)

    def stop(self, error: str | None) -> None:
        """End the span of the run, whatever failed before. `error`: the name of the exception that ended the run."""
        if self._spans:
            if error and self._failed_call and not self._failed:
                self._try(self._spans.add_failed_call, self._failed_call, error)
            self._try(self._spans.leave)
            if error:
                self._try(_set_error, self._spans.span, error)
            self._try(self._spans.span.end, max(time.time_ns(), self._spans.latest_ns))

    def _try(self, act: Callable[P, T], *given: P.args, **named: P.kwargs) -> T | None:
        try:
            return act(*given, **named)
        except Exception as exc:
            if not self._failed:
                log(WARNING, "OpenTelemetry hears no more of this run: %s", type(exc).__name__)
            self._failed = True
            return None


def _begin(metadata: Line, elapsed_seconds: float) -> _RunSpans | None:
    """None where the program has set up no provider."""
    from opentelemetry import trace

    provider, metrics = trace.get_tracer_provider(), _Metrics.find()
    if metrics is None and _is_of_api(provider, trace):
        return None
    now_ns = time.time_ns()
    tracer = provider.get_tracer(_SCOPE)
    name = f"invoke_agent {spans.AGENT}"
    span = tracer.start_span(name, attributes=spans.run_attributes(metadata), start_time=now_ns)
    return _RunSpans(tracer, span, metadata, now_ns - int(elapsed_seconds * 1e9), metrics)


class _RunSpans(Telemetry):
    """Writes the span of a run, and the spans and metrics of its lines."""

    def __init__(self, tracer: Tracer, span: Span, metadata: Line, began_ns: int, metrics: _Metrics | None) -> None:
        from opentelemetry import context, trace

        self._tracer = tracer
        self.span = span
        self._metadata = metadata
        self._began_ns = began_ns
        self.latest_ns = 0
        """The latest end of a span inside. The run's clock may be ahead of the wall clock."""
        self._metrics = metrics
        self._in_span = trace.set_span_in_context
        self._call, self._own = trace.SpanKind.CLIENT, trace.SpanKind.INTERNAL
        self._inside = self._in_span(span)
        self._outside = context.attach(self._inside)

    def leave(self) -> None:
        """Restore the span that was current before."""
        from opentelemetry import context

        context.detach(self._outside)

    def line(self, line: Line) -> None:
        self._add(lambda: spans.turn(line, self._metadata))

    def add_failed_call(self, call: Line, error: str) -> None:
        """A call of the root without a turn in the trajectory: its span is inside that of the run."""
        self._add(lambda: spans.failed_root_call(call, self._metadata, error))

    def end(self, line: Line, turns: int, io: Mapping[str, float] | None) -> None:
        self.span.set_attributes(spans.end_attributes(line, turns, io))

    def _add(self, read: Callable[[], SpanRecord]) -> None:
        """Emit and count the span that `read` makes, if anything receives it."""
        is_sampled = self.span.is_recording()
        if not is_sampled and not self._metrics:
            return
        record = read()
        if is_sampled:
            self.latest_ns = max(self.latest_ns, self._emit(record, self._inside))
        if self._metrics:
            self._metrics.count(record)

    def _emit(self, record: SpanRecord, inside: Context) -> int:
        """Write a span with its children. Returns its end in nanoseconds, which is not before the end of a child."""
        span = self._tracer.start_span(
            record.name, inside, self._call if record.is_call else self._own, record.attributes,
            start_time=self._began_ns + int(record.start_seconds * 1e9),
        )  # fmt: skip
        if record.error:
            _set_error(span, record.error)
        stop_ns = self._began_ns + int(record.stop_seconds * 1e9)
        if record.children:
            inside = self._in_span(span)
            stop_ns = max(stop_ns, *(self._emit(child, inside) for child in record.children))
        span.end(stop_ns)
        return stop_ns


class _Metrics:
    """The instruments of the program's meter provider."""

    def __init__(self, meter: Any) -> None:
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of a call of a model",
            explicit_bucket_boundaries_advisory=_TOKEN_BOUNDS,
        )  # fmt: skip
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Duration of a call of a model",
            explicit_bucket_boundaries_advisory=_SECONDS_BOUNDS,
        )  # fmt: skip
        self._read = {
            "rlm.read.bytes": meter.create_counter("rlm.read.bytes", "By", "Stored bytes that runs read"),
            "rlm.read.gets": meter.create_counter("rlm.read.gets", "{request}", "Requests of runs to storage"),
        }

    @classmethod
    def find(cls) -> _Metrics | None:
        """None where the program has set up no meter provider."""
        from opentelemetry import metrics

        provider = metrics.get_meter_provider()
        return None if _is_of_api(provider, metrics) else cls(provider.get_meter(_SCOPE))

    def count(self, turn: SpanRecord) -> None:
        read = dict.fromkeys(_READ_COUNTS, 0)
        for record in turn.walk():
            if record.is_call:
                self._count_call(record)
                continue
            for name, summed in _READ_COUNTS.items():
                for attribute in summed:
                    read[name] += record.attributes.get(attribute, 0)
        for name, count in read.items():
            if count:
                self._read[name].add(count)

    def _count_call(self, record: SpanRecord) -> None:
        about = record.attributes
        if about.get("rlm.cached"):
            return  # no call was made
        labels = {name: about[name] for name in _LABELS if name in about}
        error = {"error.type": record.error} if record.error else {}
        self._seconds.record(record.stop_seconds - record.start_seconds, labels | error)
        if not error and "rlm.estimated" not in about:  # the convention: report no estimated tokens
            for kind, attribute in _TOKENS.items():
                self._tokens.record(about[attribute], labels | {"gen_ai.token.type": kind})


def _is_of_api(provider: object, api: ModuleType) -> bool:
    """Whether it is the default provider of the API, which records nothing."""
    return type(provider).__module__.startswith(api.__name__)


def _set_error(span: Span, kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_status(Status(StatusCode.ERROR))
    span.set_attribute("error.type", kind)
