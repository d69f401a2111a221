"""A model on 127.0.0.1 that follows a script, in the protocols of Claude Code and Codex.

It speaks the Messages API and the Responses API, streamed and not. A prompt
of the script is answered by its replies, one for each step of the agent; what is no prompt of the script (an agent asks
for titles and summaries) by `SUMMARY`. `heard` holds what was said and heard, to be compared with an archive.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

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
        stand_in = self

        class Handler(_Handler):
            model = stand_in

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def is_to_hang(self, prompt: str) -> bool:
        return any(isinstance(reply, Hang) for reply in self.script.get(prompt, ()))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

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
                if any(role == "user" and not _is_harness(text) for role, text in steps[at + 1 :][-1:]):
                    return SUMMARY  # an agent asks for a summary
                replies = self.script[prompt]
                reply = replies[min(after, len(replies) - 1)]
                self.heard.append((prompt, after, reply))
                return reply
        return SUMMARY


def _is_harness(text: str) -> bool:
    return text.lstrip().startswith("<")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: StandIn

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        self._send_json({"object": "list", "data": [{"id": "stand-in", "object": "model"}], "models": []})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            asked = json.loads(data or b"{}")
        except ValueError:
            asked = {}
        path = self.path.partition("?")[0]
        self.model.requests.append((path, asked))
        if path.endswith(("count_tokens", ":countTokens")):
            self._send_json({"input_tokens": 10, "totalTokens": 10})
        elif path.endswith("/messages"):
            self._reply(asked, _messages_steps(asked), _messages_events, _messages_whole)
        elif path.endswith("/responses"):
            self._reply({**asked, "stream": True}, _responses_steps(asked), _responses_events, _responses_whole)
        else:
            self._send(404, b"{}")

    def _reply(self, asked: dict[str, Any], steps: list[Step], events: Any, whole: Any) -> None:
        reply = self.model.answer(steps, bool(asked.get("tools")))
        is_heavy = (
            self.model.heavy and self.model.heard and reply == self.model.script.get(self.model.heavy, [None])[-1]
        )
        tokens = 900_000 if is_heavy else 100
        if not asked.get("stream"):
            self._send_json(whole(reply, tokens, asked))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        hangs = isinstance(reply, Hang)
        try:
            for name, data in events(reply, tokens):
                head = f"event: {name}\n" if name else ""
                text = data if isinstance(data, str) else json.dumps(data)
                self.wfile.write(f"{head}data: {text}\n\n".encode())
                self.wfile.flush()
            if hangs:
                self.model.hanging.set()
                while self.rfile.read(1):
                    pass
        except OSError:
            pass

    def _send_json(self, found: Any) -> None:
        self._send(200, json.dumps(found).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


_COUNT = iter(range(1, 1 << 30))


def _number() -> str:
    return f"{next(_COUNT):04d}"


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
                steps.append(("user", _without_reminders(block["text"])))
    return [step for step in steps if step[1]]


def _without_reminders(text: str) -> str:
    return re.sub(r"<system-reminder>.*?</system-reminder>", "", text, flags=re.S).strip()


def _messages_block(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Call):
        return {"type": "tool_use", "id": f"toolu_{_number()}", "name": reply.tool, "input": reply.arguments}
    return {"type": "text", "text": _text_of(reply)}


def _messages_whole(reply: Reply, tokens_in: int, asked: Any) -> dict[str, Any]:
    return {
        "id": f"msg_{_number()}", "type": "message", "role": "assistant", "model": "stand-in",
        "content": [_messages_block(reply)], "stop_sequence": None,
        "stop_reason": "tool_use" if isinstance(reply, Call) else "end_turn",
        "usage": {"input_tokens": tokens_in, "output_tokens": 5},
    }  # fmt: skip


def _messages_events(reply: Reply, tokens_in: int) -> Iterator[tuple[str, Any]]:
    whole = _messages_whole(reply, tokens_in, None)
    block = whole["content"][0]
    begun = {**block, "input": {}} if isinstance(reply, Call) else {**block, "text": ""}
    message = {**whole, "content": [], "stop_reason": None}
    yield "message_start", {"type": "message_start", "message": message}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": begun}
    delta = (
        {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        if isinstance(reply, Call)
        else {"type": "text_delta", "text": block["text"]}
    )
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    if isinstance(reply, Hang):
        return
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield "message_stop", {"type": "message_stop"}


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


def _responses_item(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Call):
        namespace, _, name = reply.tool.rpartition(".")
        return {
            "type": "function_call", "id": f"fc_{_number()}", "call_id": f"call_{_number()}", "name": name,
            "arguments": json.dumps(reply.arguments), "status": "completed",
            **({"namespace": namespace} if namespace else {}),
        }  # fmt: skip
    content = [{"type": "output_text", "text": _text_of(reply), "annotations": []}]
    return {"type": "message", "id": f"msg_{_number()}", "role": "assistant", "status": "completed", "content": content}


def _responses_whole(reply: Reply, tokens_in: int, asked: Any) -> dict[str, Any]:
    usage = {"input_tokens": tokens_in, "output_tokens": 5, "total_tokens": tokens_in + 5}
    return {"id": f"resp_{_number()}", "object": "response", "status": "completed", "model": "stand-in",
            "output": [_responses_item(reply)], "usage": usage}  # fmt: skip


def _responses_events(reply: Reply, tokens_in: int) -> Iterator[tuple[str, Any]]:
    whole = _responses_whole(reply, tokens_in, None)
    item = whole["output"][0]
    begun = {**whole, "status": "in_progress", "output": []}
    yield "response.created", {"type": "response.created", "response": begun}
    started = {**item, "content": []} if "content" in item else item
    yield "response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": started}
    if not isinstance(reply, Call):
        delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": item["id"]}
        yield "response.output_text.delta", {**delta, "delta": _text_of(reply)}
    if isinstance(reply, Hang):
        return
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": whole}
