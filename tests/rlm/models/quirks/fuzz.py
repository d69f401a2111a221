"""Send hostile bytes to the backends through their SDKs, without a network: a Reply or an LLMError comes out.

python tests/rlm/models/quirks/fuzz.py 50000 [SEED]
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from quirks import ROWS, Answer, Row

from rlm.errors import LLMError
from rlm.models.anthropic import AnthropicLM
from rlm.models.lm import Reply, reply_notes, with_counted_usage
from rlm.models.openai import OpenAILM
from rlm.models.sdk import SDKModel

ASK = [{"role": "user", "content": "hi"}]
HOSTILE: list[Any] = [
    None, [], {}, "", "x", 0, -1, 5, 1.5, True, float("nan"), 10**30, [[]], [None], {"": None}, "\ud83d", "length", "[DONE]",
    {"message": {}}, {"type": "error"}, [{"error": []}], "a" * 3000, {"error": {"message": [1], "code": {}}}, {"text": {}},
    {"type": 5, "content": {"a": 1}}, [{"type": "text", "text": None}], {"detail": [{"loc": 5, "msg": []}]},
]  # fmt: skip
STATUSES = [200] * 12 + [201, 204, 302, 400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 529]
BYTES = [b"", b"\x00", b"\xff\xfe", b"\r", b"\n\n", b"data: ", b"data: [DONE]\n\n", b"event: error\n", b":", b"<html>", b"{", b"]",
         b'{"error":', b"[" * 3000, b'"', b"NaN", b"1e999999", b"9" * 5000, b"\xef\xbb\xbf", b"\xf0\x9f"]  # fmt: skip
MOST_REQUESTS = 30
"""Of one call: each field that is sent may be refused once."""


class Fuzz:
    """Calls with hostile answers, each decided by its number and the seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._requests = 0
        self._bodies: dict[str, list[bytes]] = {"chat": [], "responses": [], "anthropic": []}
        for row in ROWS:
            self._bodies[row.api] += [sent.body for sent in _answers(row) if len(sent.body) < 5_000]
        self.models: dict[str, SDKModel] = {
            "chat": OpenAILM("m", base_url="http://x/v1", temperature=0, reasoning_effort="low"),
            "responses": OpenAILM("m", base_url="http://x/v1", api="responses", max_completion_tokens=9),
            "anthropic": AnthropicLM("m", base_url="http://x", temperature=0),
        }
        self._layers: dict[str, Any] = {}
        for api, lm in self.models.items():
            lm._client._connect = partial(self._connect, api, lm.base_url)

    def _connect(self, api: str, url: str) -> Any:
        """A client of the SDK over an HTTP layer without a network, of the package that this SDK takes."""
        sdk = importlib.import_module("anthropic" if api == "anthropic" else "openai")
        base = importlib.import_module(f"{sdk.__name__}._base_client")
        layer = self._layers[api] = getattr(base, "httpx2", None) or base.httpx
        http = layer.Client(transport=layer.MockTransport(self._answer))
        make = sdk.Anthropic if api == "anthropic" else sdk.OpenAI
        return make(base_url=url, api_key="sk-secret-key", http_client=http, max_retries=0)

    def call(self, number: int) -> str:
        """Make one call. The kind of what came out; raises what should not have come out."""
        api = self._random.choice(list(self.models))
        self._requests, self._api = 0, api
        streamed = self._random.random() < 0.7
        try:
            reply = self.models[api].complete(ASK, model=f"m{number}", on_delta=(lambda _: None) if streamed else None)
        except LLMError as error:
            said = str(error)
            assert "\n" not in said
            assert 0 < len(said) < 700
            assert "sk-secret-key" not in said
            return type(error).__name__
        finally:
            assert self._requests <= MOST_REQUESTS, self._requests
        kinds = [type(each) for each in (reply.text, reply.thinking, reply.called, reply.cut)]
        assert (type(reply), kinds) == (Reply, [str, str, str, bool])
        counted = with_counted_usage(reply, ASK)
        json.dumps(reply_notes(counted))
        return "Reply"

    def _answer(self, request: Any) -> Any:
        self._requests += 1
        r, layer = self._random, self._layers[self._api]
        headers = {"content-type": r.choice(["text/event-stream", "application/json", "text/html", "nonsense"])}
        if r.random() < 0.1:
            headers["retry-after"] = r.choice(["4", "-1", "soon", "nan", "1e999", "Wed, 21 Oct 2015 07:28:00 GMT"])
        if r.random() < 0.03:
            headers["content-encoding"] = r.choice(["gzip", "deflate", "nonsense"])
        body = self._mutate(r.choice(self._bodies[self._api if r.random() < 0.9 else "chat"]))
        return layer.Response(r.choice(STATUSES), headers=headers, stream=_Pieces(self._pieces(body, layer), layer))

    def _mutate(self, body: bytes) -> bytes:
        r = self._random
        for _ in range(r.choice([0, 1, 1, 2, 4])):
            if r.random() < 0.6:
                body = self._change_json(body)
            else:
                at, to = sorted((r.randrange(len(body) + 1), r.randrange(len(body) + 1)))
                other = r.choice(self._bodies[self._api])
                body = r.choice([
                    body[:at], body[at:], body[:at] + body[to:], body[:at] + r.choice(BYTES) + body[at:],
                    body[:at] + r.randbytes(r.randrange(9)) + body[to:], body[:at] + other[at:], body + body, body[::-1],
                ])  # fmt: skip
        return body

    def _change_json(self, body: bytes) -> bytes:
        """Put something else in the place of one value."""
        lines = body.split(b"\n")
        at = self._random.randrange(len(lines))
        head, mark, data = lines[at].partition(b"data: ") if b"data: " in lines[at] else (b"", b"", lines[at])
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return body
        lines[at] = head + mark + json.dumps(self._changed(value)).encode()
        return b"\n".join(lines)

    def _changed(self, value: Any) -> Any:
        r = self._random
        if not isinstance(value, (dict, list)) or not value or r.random() < 0.15:
            return r.choice(HOSTILE)
        if isinstance(value, list):
            at = r.randrange(len(value))
            return [*value[:at], self._changed(value[at]), *value[at + 1 :]]
        name = r.choice(list(value))
        if r.random() < 0.1:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: self._changed(value[name])}

    def _pieces(self, body: bytes, layer: Any) -> Iterator[bytes]:
        r = self._random
        size = r.choice([1, 3, 50, 10_000])
        breaks = r.random() < 0.05
        for at in range(0, len(body), size):
            yield body[at : at + size]
            if breaks and r.random() < 0.3:
                raise r.choice([layer.ReadError, layer.RemoteProtocolError, layer.ReadTimeout])("broke")


def _answers(row: Row) -> list[Answer]:
    return [sent for sent in (row.streamed, row.whole) if isinstance(sent, Answer)]


def _Pieces(pieces: Iterator[bytes], httpx: Any) -> Any:
    class Pieces(httpx.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            return pieces

    return Pieces()


def main() -> None:
    calls, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    fuzz, began = Fuzz(seed), time.process_time()
    found = Counter(fuzz.call(number) for number in range(calls))
    print(f"{calls:,} calls, {time.process_time() - began:.0f} s of processor time: {dict(found)}")


if __name__ == "__main__":
    main()
