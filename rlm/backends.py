"""Models by the name of their backend, and pairs of models that go well together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.errors import UnknownOption
from rlm.lm import LM

PRESETS: Mapping[str, tuple[str, str, str]] = {
    "openai": ("openai", "gpt-5", "gpt-5-mini"),
    "anthropic": ("anthropic", "claude-sonnet-5-5", "claude-haiku-4-5"),
}
"""Preset -> backend, root model, model of sub-calls."""

BACKENDS = ("openai", "anthropic", "claude-agent")

# Endpoints that speak OpenAI's protocol and that rlms knows by name.
_COMPATIBLE = {"vllm", "openrouter", "vercel", "litellm", "portkey", "azure_openai", "gemini"}


def make_lm(backend: str, model: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> LM:
    """The model behind a backend's SDK, which is imported at the first call. Raises UnknownOption."""
    connection = {"base_url": base_url, "api_key": api_key, **options}
    if backend == "openai" or (backend in _COMPATIBLE and base_url):
        from rlm.openai_lm import OpenAILM

        return OpenAILM(model, **connection)
    if backend == "anthropic":
        from rlm.anthropic_lm import AnthropicLM

        return AnthropicLM(model, **connection)
    if backend in ("claude-agent", "claude_agent"):
        from rlm.claude_agent_lm import ClaudeAgentLM

        if base_url or api_key:
            raise UnknownOption("backend 'claude-agent' uses the login of Claude Code: it takes no base_url or api_key")
        return ClaudeAgentLM(model, **options)
    if backend in _COMPATIBLE:
        raise UnknownOption(f"backend {backend!r} works as backend='openai' with its base_url=")
    raise UnknownOption(f"no backend {backend!r}; there are {', '.join(map(repr, BACKENDS))}")


def preset(name: str) -> tuple[str, str, str]:
    """Backend, root model and sub-model of a preset. Raises UnknownOption."""
    if name not in PRESETS:
        raise UnknownOption(f"no preset {name!r}; there are {', '.join(map(repr, PRESETS))}")
    return PRESETS[name]
