"""The other backends: Anthropic at a stand-in endpoint, the Claude agent SDK in the place of a double, presets."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rlm import AnthropicLM, ClaudeAgentLM, LLMError, OpenAILM, UnknownOption
from rlm.models.registry import make_lm

ASK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}, {"role": "user", "content": "ho"}]


def test_anthropic_streams_and_counts(anthropic_endpoint: Any) -> None:
    lm, deltas = AnthropicLM("claude-x", base_url=anthropic_endpoint.url, api_key="sk-ant-secret"), list[str]()
    reply = lm.complete(ASK, on_delta=deltas.append)
    assert deltas == ["hel", "lo"]
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.model) == ("hello", 16, 7, "claude-x")
    body = anthropic_endpoint.requests[0]
    assert anthropic_endpoint.paths[0] == "/v1/messages"
    assert anthropic_endpoint.keys[0].endswith("sk-ant-secret")
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
    with pytest.raises(LLMError, match=r"cannot reach http://127.0.0.1:9/?\?key=\*\*\*"):
        AnthropicLM("m", base_url="http://127.0.0.1:9?key=sk-1", api_key="k").complete(ASK)


def test_an_sdk_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    for backend, extra in (("anthropic", "anthropic"), ("claude-agent", "claude-agent")):
        with pytest.raises(LLMError, match=rf"pip install -e '\./rlm\[{extra}\]'"):
            make_lm(backend, "m").complete(ASK)


class AssistantMessage(SimpleNamespace):
    pass


class ResultMessage(SimpleNamespace):
    pass


@pytest.fixture
def agent_sdk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A double with the names and shapes of claude-agent-sdk 0.2."""
    sdk: Any = ModuleType("claude_agent_sdk")
    sdk.asked, sdk.error = [], None
    sdk.usage, sdk.dollars = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5}, 0.25
    sdk.ClaudeSDKError = type("ClaudeSDKError", (Exception,), {})
    sdk.ClaudeAgentOptions = lambda **options: SimpleNamespace(**options)
    sdk.AssistantMessage, sdk.ResultMessage = AssistantMessage, ResultMessage

    async def query(*, prompt: str, options: Any) -> AsyncIterator[Any]:
        sdk.asked.append((prompt, options))
        if sdk.error:
            raise sdk.error
        yield AssistantMessage(content=[SimpleNamespace(text="hel"), SimpleNamespace(thinking="hm")])
        yield AssistantMessage(content=[SimpleNamespace(text="lo")])
        yield ResultMessage(usage=sdk.usage, total_cost_usd=sdk.dollars, is_error=False, result="hello")

    sdk.query = query
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", sdk)
    return sdk


def test_the_agent_sdk_gets_one_prompt_no_tools_and_reports_dollars(agent_sdk: Any) -> None:
    deltas: list[str] = []
    reply = ClaudeAgentLM("claude-x").complete(
        [*ASK, {"role": "assistant", "content": "hey"}, {"role": "user", "content": "on"}], on_delta=deltas.append
    )
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.dollars) == ("hello", 7, 5, 0.25)
    assert deltas == ["hel", "lo"]
    prompt, options = agent_sdk.asked[0]
    assert "<assistant>\nhey\n</assistant>" in prompt
    assert (options.system_prompt, options.tools, options.max_turns) == ("be brief", [], 1)
    ClaudeAgentLM("m").complete([{"role": "user", "content": "alone"}])
    assert agent_sdk.asked[1][0] == "alone"


def test_errors_of_the_agent_sdk_are_llm_errors(agent_sdk: Any) -> None:
    agent_sdk.error = agent_sdk.ClaudeSDKError("not\nfound")
    with pytest.raises(LLMError, match="model 'm' of Claude Code: not found"):
        ClaudeAgentLM("m").complete(ASK)
    with pytest.raises(UnknownOption, match="login of Claude Code"):
        make_lm("claude-agent", "m", api_key="k")


def test_a_proxy_that_is_none_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://host")
    with pytest.raises(LLMError, match=r"cannot make the HTTP client; .*ftp://host"):
        OpenAILM("m", api_key="k").complete([{"role": "user", "content": "q"}])


@pytest.mark.parametrize(
    "url",
    ["", "::", "ftp://host", "http://", "http://[::1", "http://u:k@", "http://h:65536", "http://h:0", "http://a b"],
)
@pytest.mark.parametrize("make", [OpenAILM, AnthropicLM])
def test_a_base_url_that_is_none_is_one_line(make: Any, url: str) -> None:
    with pytest.raises(LLMError, match=r"base_url must be a URL such as http://.*, not ") as raised:
        make("m", base_url=url, api_key="k")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("url", ["HTTP://host/v1", "http://user:k@y@host/v1", "http://[fe80::1%25eth0]:8000/v1"])
def test_a_base_url_may_have_any_form_of_a_url(url: str) -> None:
    assert OpenAILM("m", base_url=url, api_key="k").base_url == url
