"""What tokens cost. A table that ages: pass your own, `prices={"my-model": (0.5, 2.0)}`, for what matters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rlm.lm import Reply

Prices = Mapping[str, tuple[float, float]]
"""Model -> dollars per million input tokens, per million output tokens."""

# List prices without discounts for caching or batches, as their makers published them by November 2026.
PRICES: Prices = {
    "gpt-5": (1.25, 10.0),
    "gpt-5.1": (1.25, 10.0),
    "gpt-5.4": (2.5, 15.0),
    "gpt-5.4-mini": (0.75, 4.5),
    "gpt-5-mini": (0.25, 2.0),
    "gpt-5-nano": (0.05, 0.4),
    "gpt-4.1": (2.0, 8.0),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
    "gpt-4o": (2.5, 10.0),
    "gpt-4o-mini": (0.15, 0.6),
    "o3": (2.0, 8.0),
    "o4-mini": (1.1, 4.4),
    "claude-fable-5-1": (10.0, 50.0),
    "claude-opus-5-5": (4.0, 20.0),
    "claude-opus-5": (5.0, 25.0),
    "claude-opus-4-5": (5.0, 25.0),
    "claude-sonnet-5-5": (2.0, 10.0),
    "claude-sonnet-5": (2.0, 10.0),
    "claude-sonnet-4-5": (3.0, 15.0),
    "claude-haiku-4-5": (1.0, 5.0),
}

_VERSION = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8}|latest)$")


def dollars(reply: Reply, prices: Prices) -> float | None:
    """What a reply cost: what its endpoint says, else by the table; None for a model that the table lacks.

    A name with a date behind it (`gpt-5-2025-08-07`) costs what the name without it does.
    """
    if reply.dollars is not None:
        return reply.dollars
    price = prices.get(reply.model) or prices.get(_VERSION.sub("", reply.model))
    if price is None:
        return None
    return (reply.input_tokens * price[0] + reply.output_tokens * price[1]) / 1e6
