"""Read the lines of a trajectory as spans: a turn, its call of the root, its cells, their reads and sub-calls. Pure.

Attributes have the names of OpenTelemetry's conventions for generative AI where it has some, else ours: `rlm.*`. No
prompt, reply, code, output or message of an error is in them. `docs/telemetry.md` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.models.lm import strip_url

Line = Mapping[str, Any]

AGENT = "rlm"
_PROVIDERS = {
    "azure": "azure.ai.inference", "azureopenai": "azure.ai.openai", "bedrock": "aws.bedrock", "gemini": "gcp.gemini",
    "mistral": "mistral_ai", "vertexai": "gcp.vertex_ai", "xai": "x_ai",
}  # fmt: skip
"""Backends whose name in the conventions differs."""
_OTHER = "_OTHER"
"""The type of an error that has no name."""
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span, with the spans inside it."""

    name: str
    start_seconds: float
    """Seconds from the beginning of the run."""
    stop_seconds: float
    attributes: Mapping[str, Any]
    is_call: bool = False
    """Whether it is a request to another system."""
    error: str | None = None
    """The type of the error; None for success."""
    children: tuple[SpanRecord, ...] = field(default=())

    def walk(self) -> Iterator[SpanRecord]:
        """This span and all inside it."""
        yield self
        for child in self.children:
            yield from child.walk()


def run_attributes(metadata: Line) -> dict[str, Any]:
    """The attributes of a run that are known when it begins.

    They have no `gen_ai.usage.*`, which the spans of calls have: a sum over spans would count tokens twice.
    """
    context = metadata.get("context") or {}
    return _known({
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.provider.name": _provider(metadata.get("backend")),
        "gen_ai.request.model": metadata["root_model"],
        "rlm.runner": metadata["environment_type"],
        "rlm.context.type": context.get("type"),
        "rlm.context.characters": context.get("length"),
        "rlm.context.url": strip_url(context["uri"]) if context.get("uri") else None,
    })  # fmt: skip


def end_attributes(line: Line, turns: int, io: Mapping[str, float] | None) -> dict[str, Any]:
    """The attributes of a run after its last line: `turns` in all, and its reads."""
    totals = line["totals"]
    return _known({
        "rlm.reason": line["reason"],
        "rlm.turns": turns,
        "rlm.calls": totals["calls"],
        "rlm.input_tokens": totals["prompt_tokens"],
        "rlm.output_tokens": totals["completion_tokens"],
        "rlm.dollars": totals["dollars"],
        **_reads(io or {}),
    })  # fmt: skip


def turn(line: Line, metadata: Line) -> SpanRecord:
    """The spans of one line of type `iteration`."""
    start, ahead = line.get("start_seconds") or 0.0, line.get("ahead") or {}
    cells = [_cell(block, metadata) for block in line["code_blocks"]]
    attributes = {
        "rlm.turn": line["iteration"],
        "rlm.reason": line["reason"],
        "rlm.repeats": line.get("repeats"),
        "rlm.compacted": line.get("compacted") or None,
        "rlm.read_ahead.gets": ahead.get("gets"),
        "rlm.read_ahead.bytes": ahead.get("bytes"),
    }
    asked = [_root_call(line, start, metadata)] if line.get("model") else []
    stop = start + (line.get("iteration_time") or 0.0)
    return SpanRecord("turn", start, stop, _known(attributes), children=(*asked, *cells))


def failed_root_call(call: Line, metadata: Line, error: str) -> SpanRecord:
    """The span of the call that ended a run and has no line; `error` is the type."""
    model = metadata["root_model"]
    start, stop = call["start_seconds"], call["start_seconds"] + call["execution_time"]
    attributes = _chat({}, model, None, metadata.get("backend"))
    return SpanRecord(f"chat {model}", start, stop, attributes, is_call=True, error=error)


def _root_call(line: Line, start: float, metadata: Line) -> SpanRecord:
    stop = start + (line.get("thinking_seconds") or 0.0)
    attributes = _chat(line, metadata["root_model"], line["model"], metadata.get("backend"))
    return SpanRecord(f"chat {metadata['root_model']}", start, stop, attributes, is_call=True)


def _cell(block: Line, metadata: Line) -> SpanRecord:
    result = block["result"]
    start = result.get("start_seconds") or 0.0
    stop = start + (result.get("execution_time") or 0.0)
    io, inside = result.get("io") or {}, [_sub_call(call, metadata) for call in result.get("rlm_calls", ())]
    if io.get("gets") or io.get("ms"):
        # The times of the reads are not recorded, so the span has their length and begins with the cell.
        waited = min(stop, start + (io.get("ms") or 0.0) / 1000)
        inside.insert(0, SpanRecord("read context", start, waited, _reads(io)))
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "python", "gen_ai.tool.type": "function"}
    error = _error_type(result["stderr"]) if result["stderr"] else None
    return SpanRecord("execute_tool python", start, stop, attributes, error=error, children=tuple(inside))


def _sub_call(call: Line, metadata: Line) -> SpanRecord:
    start, model = call.get("start_seconds") or 0.0, call["root_model"]
    stop, error = start + (call.get("execution_time") or 0.0), "LLMError" if call.get("error") else None
    backend = metadata.get("sub_backend") or metadata.get("backend")
    if (lines := call.get("iterations")) is not None:
        about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT, "rlm.reason": call.get("reason"),
                 "gen_ai.request.model": model}  # fmt: skip
        turns = tuple(turn(line, {**metadata, "root_model": model}) for line in lines)
        return SpanRecord(f"invoke_agent {AGENT}", start, stop, _known(about), error=error, children=turns)
    attributes = _chat(call, model, None if error else model, backend)
    return SpanRecord(f"chat {model}", start, stop, attributes, is_call=True, error=error)


def _chat(record: Line, asked: str, answered: str | None, backend: object) -> dict[str, Any]:
    details = record.get("token_details") or {}
    return _known({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _provider(backend),
        "gen_ai.request.model": asked,
        "gen_ai.response.model": answered,
        "gen_ai.usage.input_tokens": record.get("prompt_tokens"),
        "gen_ai.usage.output_tokens": record.get("completion_tokens"),
        "gen_ai.usage.cache_read.input_tokens": details.get("cache_read"),
        "gen_ai.usage.cache_creation.input_tokens": details.get("cache_write"),
        "gen_ai.usage.reasoning.output_tokens": details.get("reasoning"),
        "rlm.dollars": record.get("dollars"),
        "rlm.cached": record.get("cached") or None,
        "rlm.estimated": record.get("estimated") or None,
    })  # fmt: skip


def _reads(io: Mapping[str, float]) -> dict[str, Any]:
    found = {f"rlm.read.{name}": io.get(name) for name in ("gets", "bytes", "hits")}
    return _known({**found, "rlm.read.waited_seconds": io["ms"] / 1000 if "ms" in io else None})


def _provider(backend: object) -> str | None:
    return None if backend is None else _PROVIDERS.get(str(backend), str(backend))


def _error_type(stderr: str) -> str:
    """The name of the exception that ended a cell; its message may hold anything."""
    found = _EXCEPTION.match(stderr.rstrip().rpartition("\n")[2])
    return found[1] if found else _OTHER


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes without None values, which no span can hold."""
    return {name: value for name, value in attributes.items() if value is not None}
