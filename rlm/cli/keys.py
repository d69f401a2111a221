"""Report a missing key before a sandbox and an SDK start, which takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from rlm.errors import LLMError
from rlm.models.lm import LM

_OPENAI_VARIABLES = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL")


def check_keys(models: Iterable[LM]) -> None:
    """Raise LLMError if a model of OpenAI or Anthropic has no key.

    Other makers report it at the first call. The check looks where the SDKs look, so it refuses nothing that works.
    """
    for lm in models:
        backend, has_url = getattr(lm, "backend", ""), getattr(lm, "base_url", None) is not None
        if getattr(lm, "secrets", ()):  # a key or a header was given
            continue
        if backend == "openai" and not has_url and not any(map(os.environ.get, _OPENAI_VARIABLES)):
            raise LLMError("no API key: set OPENAI_API_KEY, or give --base-url")
        if backend == "anthropic" and not has_url and not _has_anthropic_credentials():
            raise LLMError("no API key: set ANTHROPIC_API_KEY")


def _has_anthropic_credentials() -> bool:
    """Whether any variable of Anthropic is set, or a folder with a login exists."""
    if any(name.startswith("ANTHROPIC_") and value for name, value in os.environ.items()):
        return True
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return (Path(config) / "anthropic").exists()
