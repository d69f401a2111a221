"""Makers and servers that speak OpenAI's protocol: where they are, and which variables hold the key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Maker:
    """The endpoint of a maker's models."""

    base_url: str
    keys: tuple[str, ...] = ()
    """The environment variables for its key; the first that is set counts. Empty for a local server."""
    url_variable: str = ""
    """An environment variable with another base URL; empty for none."""

    @property
    def key(self) -> str | None:
        """The API key from the environment; None if no variable is set."""
        return next((key for name in self.keys if (key := os.environ.get(name))), None)

    @property
    def url(self) -> str:
        """The base URL. A server's own variable may lack the scheme and the path, as `OLLAMA_HOST` does."""
        value = os.environ.get(self.url_variable, "") if self.url_variable else ""
        if not value:
            return self.base_url
        url = (value if "://" in value else f"http://{value}").rstrip("/").replace("://0.0.0.0", "://127.0.0.1")
        if self.keys:
            return url
        host = url.partition("://")[2]
        if "/" in host:
            return url
        port = "" if ":" in host.rpartition("]")[2] else f":{self.base_url.rpartition(':')[2].partition('/')[0]}"
        return f"{url}{port}/v1"


MAKERS: Mapping[str, Maker] = {
    "cerebras": Maker("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "cohere": Maker("https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    "deepseek": Maker("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "fireworks": Maker("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "gemini": Maker("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "groq": Maker("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "huggingface": Maker("https://router.huggingface.co/v1", ("HF_TOKEN",)),
    "llamacpp": Maker("http://127.0.0.1:8080/v1"),
    "lmstudio": Maker("http://127.0.0.1:1234/v1", url_variable="LM_STUDIO_API_BASE"),
    "mistral": Maker("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "moonshot": Maker("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "ollama": Maker("http://127.0.0.1:11434/v1", url_variable="OLLAMA_HOST"),
    "openrouter": Maker("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "perplexity": Maker("https://api.perplexity.ai", ("PERPLEXITY_API_KEY",)),
    "together": Maker("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "vllm": Maker("http://127.0.0.1:8000/v1", url_variable="VLLM_API_BASE"),
    "xai": Maker("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "zai": Maker("https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",)),
}
"""Name -> maker. Their models need no package besides the OpenAI SDK."""

BY_ANY_LLM = frozenset((
    "azure", "azureanthropic", "azureopenai", "bedrock", "databricks", "sagemaker", "vertexai", "vertexaianthropic",
    "watsonx",
))  # fmt: skip
"""Providers of any-llm that are recognised even if any-llm is not installed."""
