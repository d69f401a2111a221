"""Calls and tokens per model, over one run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm.lm import Reply


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one model was used for."""

    calls: int = 0
    input_tokens: int = 0
    """0 where the endpoint does not say."""
    output_tokens: int = 0
    """0 where the endpoint does not say."""

    def to_dict(self) -> dict[str, int]:
        """In the spelling of rlms."""
        return {
            "total_calls": self.calls,
            "total_input_tokens": self.input_tokens,
            "total_output_tokens": self.output_tokens,
        }


class Usage:
    """Sums over all calls of a run, root and sub-calls. Safe for use by many threads."""

    def __init__(self) -> None:
        self._models: dict[str, ModelUsage] = {}
        self._lock = threading.Lock()

    def add(self, reply: Reply) -> None:
        """Count one answered call."""
        with self._lock:
            old = self._models.get(reply.model, ModelUsage())
            self._models[reply.model] = ModelUsage(
                old.calls + 1, old.input_tokens + reply.input_tokens, old.output_tokens + reply.output_tokens
            )

    @property
    def models(self) -> Mapping[str, ModelUsage]:
        """By the name of the model."""
        with self._lock:
            return dict(self._models)

    @property
    def calls(self) -> int:
        return sum(usage.calls for usage in self.models.values())

    @property
    def input_tokens(self) -> int:
        return sum(usage.input_tokens for usage in self.models.values())

    @property
    def output_tokens(self) -> int:
        return sum(usage.output_tokens for usage in self.models.values())

    def to_dict(self) -> dict[str, Any]:
        """In the spelling of rlms."""
        return {"model_usage_summaries": {name: usage.to_dict() for name, usage in self.models.items()}}

    def __repr__(self) -> str:
        return f"<Usage {self.calls} calls, {self.input_tokens:,} tokens in, {self.output_tokens:,} out>"
