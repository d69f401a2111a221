"""Convert lines of a trajectory for the page: a small row for each turn, and the details of a turn on request.

Other programs may have written the lines, or an attacker. Every value is checked, so that the page gets fields of the
right types: an invalid number becomes None, and a value in place of a text becomes its JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.trajectory.fields import count, items, mapping, number, ranges, text, union

_LINE_CHARACTERS = 160  # the longest line of code in a row
MAP_STEPS = 4096  # the width of the map of the text: ranges less than a step apart are joined
_MOST_SOURCES, _MOST_RANGES = 200, 1_000  # a forged file must not fill the page
_MOST_DEPTH = 20  # of child runs that are shown: a forged file must not exhaust the stack


def texts(record: Mapping[str, Any], *names: str) -> dict[str, str]:
    """The fields of a record that have these names, as text."""
    return {name: text(record.get(name)) for name in names}


def objects(value: object) -> list[Mapping[str, Any]]:
    """The items of a list, with an empty object for each that is not an object; an empty list for another value."""
    return [mapping(item) for item in items(value)]


def metadata(line: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of a metadata line."""
    context, kwargs, budget = (mapping(line.get(name)) for name in ("context", "backend_kwargs", "budget"))
    return {
        **texts(line, "query", "timestamp", "sub_model"),
        "root_model": text(line.get("root_model") or kwargs.get("model_name")),
        "runner": text(line.get("environment_type")),
        "started_at": number(line.get("started_at")),
        "context": {
            **texts(context, "uri", "type"),
            "chars": count(context.get("chars")) or count(context.get("length")),
            "lines": count(context.get("lines")),
        },
        "budget": {text(name): number(value) for name, value in budget.items() if number(value) is not None},
    }


def turn_row(line: Mapping[str, Any], previous_end: float, chars: int) -> dict[str, Any]:
    """The row of a turn. Times are in seconds from the start of the run: if the recorded clock restarts or is missing,
    the turn starts at `previous_end`. `chars`: the length of the text."""
    blocks = objects(line.get("code_blocks"))
    run_seconds = sum(number(mapping(block.get("result")).get("execution_time")) or 0.0 for block in blocks)
    start, shift = _start_and_shift(line, previous_end)
    turn_seconds = number(line.get("iteration_time")) or 0.0
    think = number(line.get("thinking_seconds"))
    if think is None:
        think = max(0.0, (turn_seconds or run_seconds) - run_seconds)
    cells, last_end = [], start + think
    for block in blocks:
        cells.append(_cell_row(block, last_end, shift, chars))
        last_end = cells[-1]["start"] + cells[-1]["run"]
    ahead = mapping(line.get("ahead"))
    return {
        **texts(line, "model", "reason", "question"),
        "turn": count(line.get("iteration")) or 0,
        "start": start,
        "think": think,
        "end": max(last_end, start + turn_seconds),
        "tokens": [count(line.get("prompt_tokens")), count(line.get("completion_tokens"))],
        "dollars": number(line.get("dollars")),
        "ahead": [count(ahead.get("gets")), count(ahead.get("bytes"))],
        "cells": cells,
        "said": first_line(text(line.get("response"))),
        "answer": None if line.get("final_answer") is None else text(line["final_answer"]),
    }


def _start_and_shift(line: Mapping[str, Any], previous_end: float) -> tuple[float, float]:
    """The start of a turn, and the shift to add to its recorded times, both in seconds."""
    recorded_start = number(line.get("start_seconds"))
    if recorded_start is None:
        return previous_end, 0.0
    # A clock that goes back has restarted. Turns may overlap by the time in which a line is written.
    start = previous_end if recorded_start < previous_end - 0.001 else recorded_start
    return start, start - recorded_start


def turn_details(line: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The details of a turn. `depth`: the number of child runs around it."""
    sources = items(line.get("sources"))
    return {
        **texts(line, "response", "thinking", "notice"),
        "turn": count(line.get("iteration")) or 0,
        "compacted": count(line.get("compacted")) or 0,
        "messages": len(items(line.get("prompt"))),
        "answer": None if line.get("final_answer") is None else text(line["final_answer"]),
        "cells": [_cell_details(block, depth) for block in objects(line.get("code_blocks"))],
        "sources": [_source(mapping(source)) for source in sources[:_MOST_SOURCES]],
        "sources_left_out": max(0, len(sources) - _MOST_SOURCES),
    }


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    start, lines = count(source.get("start")) or 0, items(source.get("lines"))
    document, line = text(source.get("document")), count(lines[0]) if lines else None
    place = f"{document or 'character'}:{start}" if line is None else f"{document or 'line'}:{line}"
    stop = count(source.get("stop")) or start
    return {"start": start, "stop": stop, "place": place, "text": text(source.get("text"))}


def call_details(record: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The details of a sub-call, with the turns of its child run. `depth`: the number of child runs around it."""
    turns = items(record.get("iterations")) if depth < _MOST_DEPTH else []
    return {
        **texts(record, "prompt", "response", "thinking", "error"),
        "model": text(record.get("root_model")),
        "cached": record.get("cached") is True,
        "start": number(record.get("start_seconds")),
        "seconds": number(record.get("execution_time")),
        "tokens": list(_tokens(record)),
        "dollars": number(record.get("dollars")),
        "turns": [turn_details(mapping(line), depth + 1) for line in turns],
    }


def first_line(code: str) -> str:
    """The first line that is not blank, a fence or an import; else the first import. Cut to 160 characters."""
    lines = [line.strip() for line in code[:4_000].splitlines()]
    lines = [line for line in lines if line and not line.startswith("```")]
    no_imports = [line for line in lines if not line.startswith(("import ", "from "))]
    return next(iter(no_imports or lines), "")[:_LINE_CHARACTERS]


def _cell_row(block: Mapping[str, Any], earliest_start: float, shift: float, chars: int) -> dict[str, Any]:
    """The row of a cell. `shift`: to add to recorded times. `earliest_start`: its start if none is recorded."""
    result = mapping(block.get("result"))
    seconds, io = mapping(result.get("seconds")), mapping(result.get("io"))
    ahead = mapping(result.get("ahead"))
    calls = objects(result.get("rlm_calls"))
    tokens = [_tokens(record) for record in calls]
    recorded_start = number(result.get("start_seconds"))
    read = ranges(block)
    wait_storage, waited_ms = number(seconds.get("waiting_for_storage")), number(io.get("ms"))
    if wait_storage is None and waited_ms is not None:
        wait_storage = waited_ms / 1000
    return {
        "start": earliest_start if recorded_start is None else recorded_start + shift,
        "run": number(result.get("execution_time")) or 0.0,
        "wait_calls": number(seconds.get("waiting_for_calls")),
        "wait_storage": wait_storage,
        "calls": len(calls),
        "failed": sum(1 for record in calls if record.get("error")),
        "spans": _spans(calls, shift),
        "tokens": [sum(sent or 0 for sent, _ in tokens), sum(received or 0 for _, received in tokens)],
        "dollars": number(result.get("dollars")) if calls else 0.0,
        "io": [count(io.get(name)) for name in ("gets", "bytes", "hits")] if io else None,
        "ahead": [count(ahead.get("gets")), count(ahead.get("bytes"))],
        "ranges": None if read is None else union(read, chars // MAP_STEPS),
        "error": bool(result.get("stderr")),
        "answer": result.get("final_answer") is not None,
        "line": first_line(text(block.get("code"))),
    }


def _spans(calls: list[Mapping[str, Any]], shift: float) -> list[tuple[float, float]]:
    """The spans of time, each a start and an end, in which at least one sub-call was in progress."""
    times = [(number(record.get("start_seconds")), number(record.get("execution_time"))) for record in calls]
    return union((start + shift, start + shift + seconds) for start, seconds in times if start is not None and seconds)


def _tokens(record: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The input and output tokens of a sub-call, in our fields or in those of rlms; None if unknown."""
    input_tokens, output_tokens = count(record.get("prompt_tokens")), count(record.get("completion_tokens"))
    models = mapping(mapping(record.get("usage_summary")).get("model_usage_summaries")).values()
    if input_tokens is None and models:
        input_tokens = sum(count(mapping(sums).get("total_input_tokens")) or 0 for sums in models)
        output_tokens = sum(count(mapping(sums).get("total_output_tokens")) or 0 for sums in models)
    return input_tokens, output_tokens


def _cell_details(block: Mapping[str, Any], depth: int) -> dict[str, Any]:
    result, read = mapping(block.get("result")), ranges(block) or []
    return {
        **texts(result, "stdout", "stderr"),
        "code": text(block.get("code")),
        "locals": {text(name): text(value) for name, value in mapping(result.get("locals")).items()},
        "calls": [call_details(record, depth) for record in objects(result.get("rlm_calls"))],
        "ranges": read[:_MOST_RANGES],
        "ranges_left_out": max(0, len(read) - _MOST_RANGES),
    }
