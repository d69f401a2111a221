"""`OpenAILM` against a stand-in endpoint on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from rlm import RLM, OpenAILM

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


def test_an_error_of_the_listener_is_its_own(endpoint: Any) -> None:
    def broken(delta: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lm_at(endpoint).complete(ASK, on_delta=broken)


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
