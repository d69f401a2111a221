"""Bytes of the table, changed at random: a Reply or an LLMError comes out of each reader, and no other error."""

from __future__ import annotations

import json
import os
import random
from types import ModuleType
from typing import Any

import pytest
from quirks import ROWS, Answer
from rlm_replies import ASK

from rlm.calls.usage import with_counted_usage
from rlm.errors import LLMError
from rlm.models import anthropic, chat, responses
from rlm.models.endpoint_errors import CallTarget, EndpointError, make_error
from rlm.models.reply_builder import ReplyBuilder
from rlm.models.wire import read_body

BODIES = int(os.environ.get("MONOCONTEXT_FUZZ", "1")) * 2_000
HOSTILE: list[Any] = [
    None, [], {}, "", "x", 0, -1, 1.5, True, float("nan"), 10**30, [[]], [None], {"": None}, "\ud83d", "[DONE]",
    {"message": {}}, {"type": "error"}, [{"error": []}], {"error": {"message": [1], "code": {}}}, {"text": {}},
    {"type": 5, "content": {"a": 1}}, [{"type": "text", "text": None}], {"detail": [{"loc": 5, "msg": []}]},
]  # fmt: skip
PIECES = [b"", b"\x00", b"\xff\xfe", b"\r", b"\n\n", b"data: ", b"data: [DONE]\n\n", b"event: error\n", b":", b"<html>",
          b"{", b"]", b'{"error":', b"[" * 3000, b'"', b"NaN", b"1e999999", b"9" * 5000, b"\xef\xbb\xbf"]  # fmt: skip


def change(r: random.Random, body: bytes) -> bytes:
    """Put something else in the place of one value of a line, or of some bytes."""
    lines = body.split(b"\n")
    i, at = r.randrange(len(lines)), r.randrange(len(body) + 1)
    head, mark, data = lines[i].rpartition(b"data: ")
    try:
        lines[i] = head + mark + json.dumps(changed(r, json.loads(data))).encode()
    except (ValueError, RecursionError):
        return body[:at] + r.choice(PIECES) + body[at + r.randrange(9) :]
    return b"\n".join(lines)


def changed(r: random.Random, value: Any) -> Any:
    if not isinstance(value, (dict, list)) or not value or r.random() < 0.15:
        return r.choice(HOSTILE)
    names = list(value) if isinstance(value, dict) else range(len(value))
    name: Any = r.choice(names)
    value = value.copy()
    value[name] = changed(r, value[name])
    return value


@pytest.mark.parametrize("api", [chat, responses, anthropic], ids=lambda api: api.__name__)
def test_hostile_bytes(api: ModuleType) -> None:
    read_event = getattr(api, "read_event", anthropic.read_event)
    read_answer = api.read_answer
    r, target = random.Random(api.__name__), CallTarget("m", "http://x/v1")
    sent = [answer for row in ROWS for answer in (row.streamed, row.whole) if isinstance(answer, Answer)]
    told: list[str] = []
    for _ in range(BODIES):
        body, builder = r.choice(sent).body[:5_000], ReplyBuilder()
        for _ in range(r.choice([1, 1, 2, 4])):
            body = change(r, body)
        size = r.choice([3, 50, 10_000])
        try:
            for part in read_body((body[at : at + size] for at in range(0, len(body), size)), target, 60):
                if part.type == "whole":
                    read_answer(part.value, builder, target)
                elif part.type == "event":
                    read_event(part.value, builder)
            builder.is_whole = True
            counts = api.count_usage(builder.usage, builder.tier, "http://x/v1")
            json.dumps(with_counted_usage(builder.build(target, counts), ASK).text)
        except (EndpointError, LLMError) as error:
            made = make_error(error.report, target, status=error.status) if isinstance(error, EndpointError) else error
            told.append(str(made))
    assert [line for line in told if "\n" in line or not 0 < len(line) < 700] == []
