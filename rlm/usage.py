"""Calls, tokens and dollars per model, over one run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm.lm import Reply
from rlm.prices import PRICES, Prices, dollars


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one model was used for."""

    calls: int = 0
    input_tokens: int = 0
    """0 where the endpoint does not say."""
    output_tokens: int = 0
    """0 where the endpoint does not say."""
    dollars: float | None = None
    """None where no price is known."""

    def to_dict(self) -> dict[str, Any]:
        """In the spelling of rlms; a cost that is not known is absent."""
        known = {} if self.dollars is None else {"total_cost": self.dollars}
        return {
            "total_calls": self.calls,
            "total_input_tokens": self.input_tokens,
            "total_output_tokens": self.output_tokens,
            **known,
        }


class Usage:
    """Sums over all calls of a run, root and sub-calls. Safe for use by many threads."""

    def __init__(self, prices: Prices | None = None) -> None:
        """`prices` go before the table that this package knows."""
        self.prices: Prices = {**PRICES, **(prices or {})}
        """Dollars per million tokens, by model."""
        self._models: dict[str, ModelUsage] = {}
        self._lock = threading.Lock()

    def add(self, reply: Reply) -> None:
        """Count one answered call."""
        self.count(reply.model, 1, reply.input_tokens, reply.output_tokens, dollars(reply, self.prices))

    def count(self, model: str, calls: int, input_tokens: int, output_tokens: int, cost: float | None) -> None:
        """Count calls of one model that were summed elsewhere."""
        with self._lock:
            old = self._models.get(model)
            if old is None:
                self._models[model] = ModelUsage(calls, input_tokens, output_tokens, cost)
                return
            both = None if cost is None or old.dollars is None else old.dollars + cost
            self._models[model] = ModelUsage(
                old.calls + calls, old.input_tokens + input_tokens, old.output_tokens + output_tokens, both
            )

    @property
    def models(self) -> Mapping[str, ModelUsage]:
        """By the name of the model."""
        with self._lock:
            return dict(self._models)

    @property
    def calls(self) -> int:
        """Calls that were answered, of all models."""
        return sum(usage.calls for usage in self.models.values())

    @property
    def input_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(usage.input_tokens for usage in self.models.values())

    @property
    def output_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(usage.output_tokens for usage in self.models.values())

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return sum(usage.input_tokens + usage.output_tokens for usage in self.models.values())

    @property
    def dollars(self) -> float | None:
        """None as soon as the price of one model is not known: a sum of the others would be no cost."""
        return None if self.unpriced else self.known_dollars

    @property
    def known_dollars(self) -> float:
        """The cost of the models whose prices are known."""
        return sum(usage.dollars or 0.0 for usage in self.models.values())

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models without a known price."""
        return tuple(name for name, usage in self.models.items() if usage.dollars is None)

    def to_dict(self) -> dict[str, Any]:
        """In the spelling of rlms."""
        return {
            "model_usage_summaries": {name: usage.to_dict() for name, usage in self.models.items()},
            "total_cost": self.dollars,
        }

    def __repr__(self) -> str:
        cost = f"no price known for {', '.join(self.unpriced)}" if self.unpriced else f"${self.known_dollars:.4f}"
        return f"<Usage {self.calls} calls, {self.input_tokens:,} tokens in, {self.output_tokens:,} out, {cost}>"
