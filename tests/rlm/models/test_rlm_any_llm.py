"""Models of other providers through any-llm, which is an extra: the first tests need it, `pip install any-llm-sdk`."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from rlm_replies import ASK

from rlm import LLMError, RateLimited, UnknownOption
from rlm.models.any_llm import AnyLM
from rlm.models.registry import make_lm, split_provider


@pytest.fixture
def openrouter(endpoint: Any) -> Any:
    pytest.importorskip("any_llm")
    endpoint.usage = {
        "prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, "cost": 0.25,
        "prompt_tokens_details": {"cached_tokens": 90}, "completion_tokens_details": {"reasoning_tokens": 3},
    }  # fmt: skip
    return endpoint


def lm_at(endpoint: Any, **options: Any) -> AnyLM:
    return AnyLM("openrouter", "maker/m", base_url=endpoint.url, api_key="sk-secret-key", **options)


def test_a_provider_of_any_llm(openrouter: Any) -> None:
    lm, pieces = lm_at(openrouter, temperature=0, reasoning_effort="low", extra_body={"top_k": 5}), list[str]()
    reply = lm.complete(ASK, on_delta=pieces.append)
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.model) == ("hello", 100, 7, "maker/m")
    assert (reply.details.cache_read, reply.details.endpoint) == (90, "openrouter")
    assert pieces == ["hel", "lo"]
    body = openrouter.requests[0]
    assert (body["model"], body["temperature"], body["top_k"]) == ("maker/m", 0, 5)
    assert openrouter.keys == ["Bearer sk-secret-key"]


def test_its_errors_are_one_line(openrouter: Any) -> None:
    openrouter.reply = lambda body: (400, "no such\nthing as sk-secret-key")
    with pytest.raises(LLMError, match=r"model 'maker/m' of openrouter: .*no such thing as \[secret\]") as caught:
        lm_at(openrouter).complete(ASK)
    assert not caught.value.transient
    openrouter.reply, openrouter.headers = (lambda body: (429, "slowly")), {"retry-after": "4"}
    with pytest.raises(RateLimited) as limited:
        lm_at(openrouter).complete(ASK)
    assert limited.value.retry_after_seconds == 4
    assert len(openrouter.requests) == 2  # the SDK beneath tries nothing again
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        down = AnyLM("openrouter", "m", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", api_key="k")
        with pytest.raises(LLMError) as lost:
            down.complete(ASK)
        assert lost.value.transient


def test_what_is_not_installed_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.models.any_llm.knows", lambda provider: False)
    assert split_provider("bedrock:maker.m:0") == ("bedrock", "maker.m:0")
    with pytest.raises(UnknownOption, match=r"'bedrock' needs .* pip install 'any-llm-sdk\[bedrock\]'"):
        make_lm("bedrock", "m")
    with pytest.raises(UnknownOption, match=r"no backend 'nonsense': choose from 'openai', .*'gemini'"):
        make_lm("nonsense", "m")
    monkeypatch.setitem(__import__("sys").modules, "any_llm", None)
    with pytest.raises(LLMError, match=r"missing \(any_llm\): pip install 'any-llm-sdk\[bedrock\]'"):
        AnyLM("bedrock", "m").complete(ASK)
