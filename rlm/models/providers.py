"""List the providers and local servers with an OpenAI-compatible API: their URLs, and the variables with their keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoint of a provider, and the environment variables with its key."""

    url: str
    keys: tuple[str, ...] = ()  # environment variables for its key, the first set counts; empty for a local server

    @property
    def key(self) -> str | None:
        """The API key from the environment; None if no variable is set."""
        return next((key for name in self.keys if (key := os.environ.get(name))), None)


PROVIDERS: Mapping[str, Provider] = {
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "cohere": Provider("https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "huggingface": Provider("https://router.huggingface.co/v1", ("HF_TOKEN",)),
    "llamacpp": Provider("http://127.0.0.1:8080/v1"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1"),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "moonshot": Provider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "ollama": Provider("http://127.0.0.1:11434/v1"),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "perplexity": Provider("https://api.perplexity.ai", ("PERPLEXITY_API_KEY",)),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "vllm": Provider("http://127.0.0.1:8000/v1"),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "zai": Provider("https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",)),
}
"""Name -> provider. Their models need no package besides the OpenAI SDK."""
