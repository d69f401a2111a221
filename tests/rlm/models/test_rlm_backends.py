"""The other backends: Anthropic at a stand-in endpoint, and URLs that are none."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from rlm import AnthropicLM, LLMError, OpenAILM
from rlm.models.registry import make_lm

ASK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}, {"role": "user", "content": "ho"}]


def test_anthropic_streams_and_counts(anthropic_endpoint: Any) -> None:
    lm, deltas = AnthropicLM("claude-x", base_url=anthropic_endpoint.url, api_key="sk-ant-secret"), list[str]()
    reply = lm.complete(ASK, on_delta=deltas.append)
    assert deltas == ["hel", "lo"]
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.model) == ("hello", 16, 7, "claude-x")
    path, key, body = anthropic_endpoint.requests[0]
    assert path == "/v1/messages"
    assert key.endswith("sk-ant-secret")
    assert [block["text"] for block in body["system"]] == ["be brief"]
    assert [message["role"] for message in body["messages"]] == ["user", "user"]
    assert lm.complete(ASK[1:2], model="other").model == "other"
    assert "sk-ant-secret" not in repr(lm)
    assert lm.secrets == ("sk-ant-secret",)
    lm.close()


def test_anthropic_without_a_key_and_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anthropic")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LLMError, match="no API key: set ANTHROPIC_API_KEY"):
        AnthropicLM("m", base_url="http://127.0.0.1:9").complete(ASK)
    with pytest.raises(LLMError, match=r"cannot reach http://127.0.0.1:9"):
        AnthropicLM("m", base_url="http://127.0.0.1:9", api_key="k").complete(ASK)


def test_an_sdk_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(LLMError, match=r"pip install -e '\./rlm\[anthropic\]'"):
        make_lm("anthropic", "m").complete(ASK)


def test_a_proxy_that_is_none_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://host")
    with pytest.raises(LLMError, match=r"the HTTP client for the model could not be made .*ftp://host"):
        OpenAILM("m", api_key="k").complete([{"role": "user", "content": "q"}])


@pytest.mark.parametrize(
    "url",
    ["", "::", "ftp://host", "http://", "http://[::1", "http://user:key@", "http://host:99999/v1", "http://a b"],
)
@pytest.mark.parametrize("make", [OpenAILM, AnthropicLM])
def test_a_base_url_that_is_none_is_one_line(make: Any, url: str) -> None:
    with pytest.raises(LLMError, match=r"base_url must be a URL such as http://.*, not ") as raised:
        make("m", base_url=url, api_key="k")
    assert "\n" not in str(raised.value)
