"""List the providers and local servers with an OpenAI-compatible API: their URLs, and the variables with their keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provider:
    """The endpoint of a provider, and the environment variables with its key and URL."""

    base_url: str
    keys: tuple[str, ...] = ()  # environment variables for its key, the first set counts; empty for a local server
    url_variable: str = ""  # an environment variable with another base URL; empty for none

    @property
    def key(self) -> str | None:
        """The API key from the environment; None if no variable is set."""
        return next((key for name in self.keys if (key := os.environ.get(name))), None)

    @property
    def url(self) -> str:
        """The base URL. A server's own variable may lack the path, and the scheme and port, as `OLLAMA_HOST` does."""
        value = os.environ.get(self.url_variable, "") if self.url_variable else ""
        if not value:
            return self.base_url
        url = (value if "://" in value else f"http://{value}").rstrip("/").replace("://0.0.0.0", "://127.0.0.1")
        url = url.replace("://:", "://127.0.0.1:")  # a port alone
        host = url.partition("://")[2]
        if "/" in host:
            return url
        has_port = "://" in value or ":" in host.rpartition("]")[2]  # a scheme without a port means that of the scheme
        port = "" if has_port else f":{self.base_url.rpartition(':')[2].partition('/')[0]}"
        return f"{url}{port}/v1"


PROVIDERS: Mapping[str, Provider] = {
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "cohere": Provider("https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "huggingface": Provider("https://router.huggingface.co/v1", ("HF_TOKEN",)),
    "llamacpp": Provider("http://127.0.0.1:8080/v1"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1", url_variable="LM_STUDIO_API_BASE"),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "moonshot": Provider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "ollama": Provider("http://127.0.0.1:11434/v1", url_variable="OLLAMA_HOST"),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "perplexity": Provider("https://api.perplexity.ai", ("PERPLEXITY_API_KEY",)),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "vllm": Provider("http://127.0.0.1:8000/v1", url_variable="VLLM_API_BASE"),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "zai": Provider("https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",)),
}
"""Name -> provider. Their models need no package besides the OpenAI SDK."""
