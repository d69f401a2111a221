"""A model on 127.0.0.1 that follows a script, in the protocols of Claude Code and Codex.

It speaks the Messages API and the Responses API, streamed. A prompt of the script is answered by its replies, one for
each step of the agent; what is no prompt of the script (an agent asks for titles and summaries) by `SUMMARY`. `heard`
holds what was said and heard, to be compared with an archive.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Self

from monocontext.sessions.turn import Turn

SUMMARY = "A summary: the tests pass."


@dataclass(frozen=True)
class Call:
    """A call of the agent's tool, by the name that the agent gives it."""

    tool: str
    """With a namespace as Codex has them: `multi_agent_v1.spawn_agent`."""
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Hang:
    """The beginning of a reply that never ends: the agent is interrupted in it."""

    text: str


Reply = str | Call | Hang
Script = Mapping[str, Sequence[Reply]]
Step = tuple[str, str]
"""`user`, `result` or `assistant`, and its text."""
Row = tuple[str, str]
"""`user`, `assistant`, `call` or `result`, and the words, or the name of the tool."""


@dataclass
class StandIn:
    """The server; a context manager."""

    script: Script
    heavy: str = ""
    """The prompt whose request is said to have taken many tokens: agents then compact."""
    heard: list[tuple[str, int, Reply]] = field(default_factory=list)
    """Prompt, step and reply of each request that the script knows, in order."""
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)
    """Set while a reply hangs."""

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def is_to_hang(self, prompt: str) -> bool:
        return any(isinstance(reply, Hang) for reply in self.script.get(prompt, ()))

    def answer(self, steps: Sequence[Step], has_tools: bool) -> Reply:
        """The reply to a conversation: by its last prompt of the script, and the replies since."""
        if not has_tools:  # an agent asks for a title
            return SUMMARY
        after = 0
        for at in range(len(steps) - 1, -1, -1):
            role, text = steps[at]
            if role == "assistant" and (at == 0 or steps[at - 1][0] != "assistant"):
                after += 1
            prompt = text.strip().strip('"')
            if role == "user" and prompt in self.script:
                if any(role == "user" and not text.lstrip().startswith("<") for role, text in steps[at + 1 :][-1:]):
                    return SUMMARY  # an agent asks for a summary
                replies = self.script[prompt]
                reply = replies[min(after, len(replies) - 1)]
                self.heard.append((prompt, after, reply))
                return reply
        return SUMMARY

    def tokens_of(self, reply: Reply) -> int:
        is_heavy = self.heavy and self.heard and reply == self.script[self.heavy][-1]
        return 900_000 if is_heavy else 100


def seen_by(model: StandIn, without: Collection[str] = ()) -> list[Row]:
    """What was said in the session, without the threads that begin with these prompts."""
    rows: list[Row] = []
    for prompt, step, reply in model.heard:
        if prompt in without:
            continue
        rows.append(("user", prompt) if step == 0 else ("result", ""))
        if isinstance(reply, Call):
            rows.append(("call", reply.tool.rpartition(".")[2]))
        elif not isinstance(reply, Hang):
            rows.append(("assistant", reply))
    return rows


def rows_of(turns: Iterable[Turn], script: Script) -> list[Row]:
    """The turns that are words of the script, calls or results; what an agent adds of its own is left out."""
    said = {reply for replies in script.values() for reply in replies if isinstance(reply, str)}
    rows: list[Row] = []
    for turn in turns:
        if turn.kind == "tool_use":
            rows.append(("call", turn.tool))
        elif turn.kind == "tool_result":
            rows.append(("result", ""))
        elif turn.kind == "text" and turn.text.strip().strip('"') in (script if turn.role == "user" else said):
            rows.append((turn.role, turn.text.strip().strip('"')))
    return rows


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: StandIn

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "stand-in", "object": "model"}], "models": []})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            asked = json.loads(data or b"{}")
        except ValueError:
            asked = {}
        path = self.path.partition("?")[0]
        self.model.requests.append((path, asked))
        if path.endswith("count_tokens"):
            self._send(200, {"input_tokens": 10})
        elif path.endswith("/messages"):
            self._reply(asked, _messages_steps(asked), _messages_events)
        elif path.endswith("/responses"):
            self._reply(asked, _responses_steps(asked), _responses_events)
        else:
            self._send(404, {})

    def _reply(self, asked: dict[str, Any], steps: list[Step], events: _Events) -> None:
        reply = self.model.answer(steps, bool(asked.get("tools")))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            for data in events(reply, self.model.tokens_of(reply)):
                self.wfile.write(f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode())
                self.wfile.flush()
            if isinstance(reply, Hang):
                self.model.hanging.set()
                while self.rfile.read(1):
                    pass

    def _send(self, status: int, found: object) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


_Events = Callable[[Reply, int], Iterator[dict[str, Any]]]
_NUMBERS = count(1)


def _text_of(reply: Reply) -> str:
    return reply.text if isinstance(reply, Hang) else reply if isinstance(reply, str) else ""


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [str(block["text"]) for block in content or () if isinstance(block, dict) and "text" in block]


# -- Messages API ------------------------------------------------------------------------------------------------------


def _messages_steps(asked: dict[str, Any]) -> list[Step]:
    steps: list[Step] = []
    for message in asked.get("messages", ()):
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if message["role"] == "assistant":
                steps.append(("assistant", block.get("text") or block.get("type", "")))
            elif block["type"] == "tool_result":
                steps.append(("result", " ".join(_texts(block.get("content")))))
            elif "text" in block:
                text = re.sub(r"<system-reminder>.*?</system-reminder>", "", block["text"], flags=re.S)
                steps.append(("user", text.strip()))
    return [step for step in steps if step[1]]


def _messages_events(reply: Reply, tokens_in: int) -> Iterator[dict[str, Any]]:
    number, usage = next(_NUMBERS), {"input_tokens": tokens_in, "output_tokens": 5}
    yield {"type": "message_start", "message": {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "stand-in", "content": [],
        "stop_sequence": None, "stop_reason": None, "usage": usage,
    }}  # fmt: skip
    if isinstance(reply, Call):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": reply.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": _text_of(reply)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    if isinstance(reply, Hang):
        return
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if isinstance(reply, Call) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


# -- Responses API -----------------------------------------------------------------------------------------------------


def _responses_steps(asked: dict[str, Any]) -> list[Step]:
    steps: list[Step] = []
    for item in asked.get("input", ()):
        kind = item.get("type", "message")
        if kind == "message":
            role = "assistant" if item["role"] == "assistant" else "user"
            steps += [(role, text) for text in _texts(item["content"])]
        elif kind.endswith("_output"):
            steps.append(("result", json.dumps(item.get("output"))))
        elif kind.endswith("_call"):
            steps.append(("assistant", str(item.get("name"))))
        elif kind == "agent_message":  # a task is encrypted by the model, which this one does not
            for block in item["content"]:
                steps.append(("user", block["encrypted_content"]) if "encrypted_content" in block else ("result", "-"))
    return steps


def _responses_events(reply: Reply, tokens_in: int) -> Iterator[dict[str, Any]]:
    number = next(_NUMBERS)
    usage = {"input_tokens": tokens_in, "output_tokens": 5, "total_tokens": tokens_in + 5}
    response = {"id": f"resp_{number}", "object": "response", "model": "stand-in", "usage": usage}
    item: dict[str, Any] = {"type": "message", "id": f"item_{number}", "role": "assistant", "status": "completed"}
    if isinstance(reply, Call):
        namespace, _, name = reply.tool.rpartition(".")
        call = {"call_id": f"call_{number}", "name": name, "arguments": json.dumps(reply.arguments)}
        item |= {"type": "function_call", **call, **({"namespace": namespace} if namespace else {})}
    else:
        item["content"] = [{"type": "output_text", "text": _text_of(reply), "annotations": []}]
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    started = {**item, "content": []} if "content" in item else item
    yield {"type": "response.output_item.added", "output_index": 0, "item": started}
    if not isinstance(reply, Call):
        delta = {"output_index": 0, "content_index": 0, "item_id": item["id"], "delta": _text_of(reply)}
        yield {"type": "response.output_text.delta", **delta}
    if isinstance(reply, Hang):
        return
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}}
