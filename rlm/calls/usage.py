"""Count calls, tokens and dollars per model, over one run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rlm.calls.prices import Prices, check_prices, dollars
from rlm.models.lm import Reply

OWN_COUNTS = ("estimated_calls", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
"""Fields of `ModelUsage` that rlms does not have, in the order of the class."""


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Calls, tokens and dollars of one model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None
    """None where no price is known."""
    estimated_calls: int = 0
    """Calls whose endpoint reported no tokens: a token is counted for each byte."""
    cache_read_tokens: int = 0
    """Input tokens that the provider's caches held."""
    cache_write_tokens: int = 0
    """Input tokens written to those caches."""
    reasoning_tokens: int = 0
    """Output tokens spent on thinking."""

    @classmethod
    def of_call(cls, reply: Reply, dollars: float | None) -> ModelUsage:
        """The usage of one call that cost `dollars`."""
        details = reply.details
        return cls(
            1, reply.input_tokens, reply.output_tokens, dollars, int(reply.estimated),
            details.cache_read, details.cache_write, details.reasoning,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The counts by the field names of rlms, without an unknown cost, and without zeros that rlms does not have."""
        counts = {
            "total_calls": self.calls, "total_input_tokens": self.input_tokens,
            "total_output_tokens": self.output_tokens,
        }  # fmt: skip
        cost: dict[str, Any] = {} if self.dollars is None else {"total_cost": self.dollars}
        return counts | cost | {name: getattr(self, name) for name in OWN_COUNTS if getattr(self, name)}


class Usage:
    """Sums over all calls of a run, root and sub-calls. Safe for use by many threads."""

    def __init__(self, prices: Prices | None = None) -> None:
        """`prices` go before the table of `genai-prices`. Raises ValueError for an invalid one."""
        self.prices: Prices = check_prices(prices or {})
        """Dollars per million tokens, by model."""
        self.calls = self.input_tokens = self.output_tokens = 0
        """Calls that were answered, tokens of all prompts, tokens of all replies."""
        self.known_dollars = 0.0
        """The cost of the calls whose prices are known."""
        self._models: dict[str, ModelUsage] = {}
        self._lock = threading.Lock()

    def add(self, reply: Reply) -> None:
        """Count one answered call."""
        self.count(reply.model, ModelUsage.of_call(reply, dollars(reply, self.prices)))

    def count(self, model: str, used: ModelUsage) -> None:
        """Add calls of one model that were summed elsewhere."""
        with self._lock:
            old = self._models.get(model, ModelUsage(dollars=0.0))
            both = None if used.dollars is None or old.dollars is None else old.dollars + used.dollars
            sums = {field.name: getattr(old, field.name) + getattr(used, field.name)
                    for field in fields(ModelUsage) if field.name != "dollars"}  # fmt: skip
            self._models[model] = ModelUsage(**sums, dollars=both)
            self.calls += used.calls
            self.input_tokens += used.input_tokens
            self.output_tokens += used.output_tokens
            self.known_dollars += used.dollars or 0.0

    @property
    def models(self) -> Mapping[str, ModelUsage]:
        """The usage of each model, by its name."""
        with self._lock:
            return dict(self._models)

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def dollars(self) -> float | None:
        """The cost of all calls; None if the price of a model is not known."""
        return None if self.unpriced else self.known_dollars

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models without a known price."""
        return tuple(name for name, usage in self.models.items() if usage.dollars is None)

    @property
    def estimated(self) -> tuple[str, ...]:
        """The models with calls whose endpoint reported no tokens."""
        return tuple(name for name, usage in self.models.items() if usage.estimated_calls)

    def to_dict(self) -> dict[str, Any]:
        """The counts of all models and the total cost, by the field names of rlms."""
        return {
            "model_usage_summaries": {name: usage.to_dict() for name, usage in self.models.items()},
            "total_cost": self.dollars,
        }

    def __repr__(self) -> str:
        cost = f"no price known for {', '.join(self.unpriced)}" if self.unpriced else f"${self.known_dollars:.4f}"
        return f"<Usage {self.calls} calls, {self.input_tokens:,} tokens in, {self.output_tokens:,} out, {cost}>"
