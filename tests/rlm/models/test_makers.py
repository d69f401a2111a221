"""Providers by name: each is asked at its endpoint with its key, and needs no package beside the SDK of OpenAI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import ASK

from rlm import RLM, LLMError, OpenAILM, UnknownOption
from rlm.calls.usage import cost_of
from rlm.models.lm import Reply, TokenDetails
from rlm.models.openai import PROVIDERS
from rlm.models.registry import PRESETS, choose, make_lm, split_provider

PAGE = (Path(__file__).parents[3] / "docs/rlm.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {name for provider in PROVIDERS.values() for name in provider.key_variables}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_maker_is_asked_at_its_endpoint_with_its_own_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = PROVIDERS[name]
    lm = choose(f"{name}:maker/m:7b").root
    assert isinstance(lm, OpenAILM)
    assert (lm.backend, lm.model, lm.base_url) == (name, "maker/m:7b", provider.url)
    if provider.key_variables:
        with pytest.raises(LLMError, match=f"no API key: set {provider.key_variables[0]}"):
            lm.complete(ASK)
        for variable in provider.key_variables:
            monkeypatch.setenv(variable, f"key-of-{variable}")
            assert make_lm(name, "m").secrets == (f"key-of-{variable}",)  # type: ignore[attr-defined]
            monkeypatch.delenv(variable)
    assert "sk-of-openai" not in lm.secrets
    assert OpenAILM("m", provider=name, base_url=None).base_url == provider.url
    assert f"`{name}`" in PAGE


def test_a_server_elsewhere(endpoint: Any) -> None:
    endpoint.reply = lambda body: "FINAL(1)"
    OpenAILM("m", provider="ollama", base_url=endpoint.url).complete(ASK)
    assert RLM("ollama:qwen3:4b", base_url=endpoint.url).completion("q", "text").answer == "1"
    assert set(endpoint.paths) == {"/v1/chat/completions"}
    assert "sk-of-openai" not in str(endpoint.keys)


def test_presets_and_examples_are_models_with_a_price() -> None:
    named = [(model, "") for models in PRESETS.values() for model in models]
    for code in re.findall(r'RLM\(.*?\)`?|LM\(".*?"\)|models=\[.*?\]', PAGE):
        for name in re.findall(r'"((?:\w+:)?(?:gpt|claude|gemini)-[^"]+)"', code):
            provider, model = split_provider(name)
            named.append((model, PROVIDERS[provider].base_url if provider in PROVIDERS else ""))
    assert len(named) > 8
    for model, endpoint in named:
        assert cost_of(Reply("", 1000, 1000, model, details=TokenDetails(endpoint=endpoint)), {}), model


def test_a_backend_a_preset_and_the_name_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1234")
    for model, options, named in (
        ("mistral:7b", {"backend": "ollama"}, ("ollama", "mistral:7b", None)),
        ("ollama:mistral:7b", {"backend": "ollama"}, ("ollama", "mistral:7b", None)),
        ("openai:", {}, ("openai", "openai:", None)),
        ("claude-x", {"preset": "anthropic"}, ("anthropic", "claude-x", PRESETS["anthropic"][1])),
        (None, {"backend": "anthropic"}, ("anthropic", *PRESETS["anthropic"])),
        (None, {"backend": "anthropic", "preset": "anthropic"}, ("anthropic", *PRESETS["anthropic"])),
    ):
        chosen: Any = choose(model, **options)
        assert (chosen.root.backend, chosen.root.model, chosen.sub_model) == named
        with RLM(model, runner="local", **options) as rlm:
            assert repr(rlm).startswith(f"<RLM {named[1]},")
    for given in ({"backend": "openai"}, {"model": "openai:gpt-5"}):
        with pytest.raises(UnknownOption, match="preset 'anthropic' and provider 'openai' exclude each other"):
            RLM(preset="anthropic", **given)  # type: ignore[arg-type]
    with pytest.raises(UnknownOption, match="'ollama' has no default model"):
        RLM(backend="ollama")


def test_headers_reach_a_backend_and_its_connections_are_closed(endpoint: Any) -> None:
    endpoint.reply = lambda body: "FINAL(1)"
    with RLM(backend="openai", base_url=endpoint.url, headers={"x-team": "of the caller"}, runner="local") as rlm:
        assert rlm.completion("q", "text").answer == "1"
        (lm,) = rlm.lms
        assert lm.secrets[-1] == "of the caller"  # type: ignore[attr-defined]
    assert lm._client._client is None  # type: ignore[attr-defined]
