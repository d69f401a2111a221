"""`OpenAILM` against a stand-in endpoint on this machine."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from rlm import RLM, LLMError, OpenAILM

ASK = [{"role": "user", "content": "hi"}]


def lm_at(endpoint: Any, **options: Any) -> OpenAILM:
    options = {"api_key": "sk-secret-key", **options}
    return OpenAILM("m", base_url=endpoint.url, **options)


def test_a_whole_reply(endpoint: Any) -> None:
    reply = lm_at(endpoint).complete(ASK)
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.model) == ("hello", 11, 7, "m")
    assert endpoint.keys == ["Bearer sk-secret-key"]
    assert endpoint.requests[0]["stream"]
    assert lm_at(endpoint).complete(ASK, model="other").model == "other"


def test_an_endpoint_that_refuses_stream_options_is_asked_once(endpoint: Any) -> None:
    endpoint.reply = lambda body: (400, "unknown field: stream_options") if "stream_options" in body else "hello"
    lm, deltas = lm_at(endpoint), list[str]()
    for _ in range(2):
        assert lm.complete(ASK, on_delta=deltas.append).input_tokens == 0
    assert deltas == ["hel", "lo"] * 2
    assert len(endpoint.requests) == 3


def test_an_error_of_the_listener_is_its_own(endpoint: Any) -> None:
    def broken(delta: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lm_at(endpoint).complete(ASK, on_delta=broken)


def test_endpoint_down() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        lm = OpenAILM("m", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", api_key="k")
        with pytest.raises(LLMError, match=r"cannot reach http://127.0.0.1.*refused"):
            lm.complete(ASK)


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LLMError, match="no API key: set OPENAI_API_KEY"):
        RLM("gpt-5").completion("q", "text")


def test_a_local_endpoint_needs_no_key(endpoint: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    lm = lm_at(endpoint, api_key=None)
    assert lm.complete(ASK).text == "hello"
    assert lm.secrets == ()


def test_a_run_at_an_endpoint(endpoint: Any) -> None:
    def reply(body: dict[str, Any]) -> str:
        if body["model"] == "small":
            return "sub: " + body["messages"][0]["content"]
        return "```repl\nFINAL(', '.join(llm_query_batched([f'q{i}' for i in range(3)])))\n```"

    endpoint.reply = reply
    completion = RLM("big", "small", base_url=endpoint.url, api_key="sk-secret-key").completion("q", "text")
    assert completion.answer == "sub: q0, sub: q1, sub: q2"
    assert {name: used.calls for name, used in completion.usage.models.items()} == {"big": 1, "small": 3}
    assert completion.usage.input_tokens == 44
    assert [body["stream"] for body in endpoint.requests] == [True] * 4  # of sub-calls too: one that repeats is ended
