"""Count calls, tokens and dollars per model over one run, and price calls.

The cost of a call is what its endpoint reports, else follows from the caller's prices, else from the price table of the
installed `genai-prices`. Nothing is downloaded.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rlm.models.lm import Message, Reply, TokenDetails, sum_tokens

Price = tuple[float, float] | tuple[float, float, float] | tuple[float, float, float, float]
"""Dollars per million tokens: input, output, input read from a cache, input written to a cache. The last two default to
the price of other input."""

Prices = Mapping[str, Price]  # model -> price

_MOST_DOLLARS = 1e12  # the most of one call; a larger report is invalid
_TIER_KINDS = ("service_tier", "speed", "processing")  # what the table calls the tier of a provider
_VERSION = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8}|latest)$")  # the end of "gpt-5-2025-08-07", not of "gpt-5-mini"


def is_amount(value: object) -> bool:
    """Whether a value is an amount of dollars, from 0 to a trillion."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST_DOLLARS


def check_prices(prices: Prices) -> Prices:
    """Return `prices`. Raises ValueError for a price that is not a tuple of 2 to 4 amounts."""
    for model, price in prices.items():
        if not (isinstance(price, (tuple, list)) and 2 <= len(price) <= 4 and all(map(is_amount, price))):
            raise ValueError(
                f"the price of {model} must be a tuple in dollars per million tokens, (input, output), (input, output, "
                f"cache read) or (input, output, cache read, cache write), not {price!r}"
            )
    return prices


def find_price(model: str, prices: Prices) -> Price | None:
    """The price of a model in `prices`; None if it is not there. A name that ends in a date (`gpt-5-2025-08-07`) costs
    as much as the name without it."""
    return prices.get(model) or prices.get(_VERSION.sub("", model))


def cost_of(reply: Reply, prices: Prices) -> float | None:
    """The cost of a reply in dollars: what the endpoint reported, else the cost by `prices`, else by today's price
    table. None if no price of the model is known."""
    if reply.dollars is not None:
        return reply.dollars
    price = find_price(reply.model, prices) if prices else None
    if price is None:
        return _by_table(reply)
    fresh_price, output_price, read_price, write_price = [*price, price[0], price[0]][:4]  # with the defaults
    read, written = reply.details.cache_read, reply.details.cache_write
    input_cost = (reply.input_tokens - read - written) * fresh_price + read * read_price + written * write_price
    return float(input_cost + reply.output_tokens * output_price) / 1e6


def _by_table(reply: Reply) -> float | None:
    """The cost of a reply by the table of `genai-prices`; None if it has no price for the model."""
    import genai_prices  # 0.2 s, at the first price

    model, details = reply.model, reply.details
    usage = genai_prices.Usage(
        input_tokens=reply.input_tokens, output_tokens=reply.output_tokens,
        cache_read_tokens=details.cache_read or None, cache_write_tokens=details.cache_write or None,
        cache_write_1h_tokens=details.cache_write_1h or None, output_reasoning_tokens=details.reasoning or None,
    )  # fmt: skip
    tier: dict[str, str] | None = dict.fromkeys(_TIER_KINDS, details.tier) if details.tier else None
    # Look the model up at its endpoint, then at the provider in its name (`openai/gpt-5`), then by its name alone.
    lookups: list[tuple[str, dict[str, Any]]] = []
    if endpoint := details.endpoint:
        lookups.append((model, {"provider_api_url" if "://" in endpoint else "provider_id": endpoint}))
    provider, _, bare_name = model.partition("/")
    if bare_name:
        lookups.append((bare_name, {"provider_id": provider}))
    for name, provider_option in [*lookups, (model, {})]:
        try:
            result = genai_prices.calc_price(usage, name, **provider_option, price_context=tier)
        except (LookupError, ValueError):  # no such model; or its price needs counts that the endpoint did not report
            continue
        return float(result.total_price)
    return None


def list_prices() -> Prices:
    """The value of `rlm.PRICES`: today's prices of OpenAI's and Anthropic's models, without tiers and discounts."""
    from datetime import UTC, datetime

    from genai_prices.data import providers

    now, result = datetime.now(UTC), dict[str, Price]()
    chosen = (provider for provider in providers if provider.id in ("openai", "anthropic"))
    for model in (model for provider in chosen for model in provider.models):
        price = model.get_prices(now)
        per_million: list[Any] = [getattr(item, "base", item) for item in (price.input_mtok, price.output_mtok)]
        if None not in per_million:
            result[model.id] = (float(per_million[0]), float(per_million[1]))
    return result


def with_counted_usage(reply: Reply, messages: Sequence[Message]) -> Reply:
    """The reply with usage that a budget can count, whatever the endpoint or the `LM` reported. Without a valid count,
    each byte of the text counts as a token, which is an upper bound: English has one token in about four bytes. Invalid
    dollars become unknown."""
    input_tokens, output_tokens = sum_tokens(reply.input_tokens), sum_tokens(reply.output_tokens)
    is_empty_reply = reply.output_tokens == 0 and not reply.text
    estimated = reply.estimated or not input_tokens or not (output_tokens or is_empty_reply)
    if not input_tokens:
        input_tokens = len("".join([message["content"] for message in messages]).encode("utf-8", "surrogatepass"))
    return replace(
        reply, input_tokens=input_tokens, estimated=estimated,
        output_tokens=output_tokens or len((reply.text + reply.thinking).encode("utf-8", "surrogatepass")),
        dollars=None if reply.dollars is None or not is_amount(reply.dollars) else reply.dollars,
        details=TokenDetails(endpoint=reply.details.endpoint) if estimated else reply.details,
    )  # fmt: skip


OWN_COUNTS = ("estimated_calls", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
"""The fields of `ModelUsage` that rlms does not have."""


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Calls, tokens and dollars of one model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None
    """None if the price of a call is not known."""
    estimated_calls: int = 0
    """Calls whose endpoint reported no tokens: each byte of their text counts as a token."""
    cache_read_tokens: int = 0
    """Input tokens that were read from a cache of the provider."""
    cache_write_tokens: int = 0
    """Input tokens that were written to a cache of the provider."""
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
        """The counts under the field names of rlms. An unknown cost, and `OWN_COUNTS` that are 0, are left out."""
        counts = {f"total_{name}": getattr(self, name) for name in ("calls", "input_tokens", "output_tokens")}
        cost: dict[str, Any] = {} if self.dollars is None else {"total_cost": self.dollars}
        return counts | cost | {name: getattr(self, name) for name in OWN_COUNTS if getattr(self, name)}


class Usage:
    """The sums over all calls of a run: those of the root and sub-calls. Safe for use by many threads."""

    def __init__(self, prices: Prices | None = None) -> None:
        """`prices`: the caller's, which override the table of `genai-prices`."""
        self.prices: Prices = prices or {}
        self.calls = self.input_tokens = self.output_tokens = 0
        """The calls that were paid for, and the tokens of their prompts and replies."""
        self.known_dollars = 0.0
        """The cost of the calls whose price is known."""
        self._models: dict[str, ModelUsage] = {}
        self._lock = threading.Lock()

    def count(self, model: str, used: ModelUsage) -> None:
        """Add the usage of some calls of a model."""
        with self._lock:
            before = self._models.get(model, ModelUsage(dollars=0.0))
            dollars = None if used.dollars is None or before.dollars is None else before.dollars + used.dollars
            counts = {field.name: getattr(before, field.name) + getattr(used, field.name)
                      for field in fields(ModelUsage) if field.name != "dollars"}  # fmt: skip
            self._models[model] = ModelUsage(**counts, dollars=dollars)
            self.calls += used.calls
            self.input_tokens += used.input_tokens
            self.output_tokens += used.output_tokens
            self.known_dollars += used.dollars or 0.0

    @property
    def models(self) -> Mapping[str, ModelUsage]:
        """The usage of each model, by its name."""
        return dict(self._models)

    @property
    def tokens(self) -> int:
        """Tokens of all prompts and replies."""
        return self.input_tokens + self.output_tokens

    @property
    def dollars(self) -> float | None:
        """The cost of all calls; None if the price of a model is not known."""
        return self.known_dollars if all(used.dollars is not None for used in list(self._models.values())) else None

    def notes(self) -> list[str]:
        """A sentence on the models without a known price, if any, and one on those whose tokens were estimated."""
        models = list(self._models.items())
        unpriced = ", ".join([name for name, used in models if used.dollars is None])
        estimated = ", ".join([name for name, used in models if used.estimated_calls])
        notes = [f"no price is known for {unpriced}: the cost is not known (see `prices`)"] if unpriced else []
        if estimated:
            notes.append(f"some calls of {estimated} reported no tokens: each byte is counted as a token")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """The counts of all models and the total cost, under the field names of rlms."""
        summaries = {name: usage.to_dict() for name, usage in self.models.items()}
        return {"model_usage_summaries": summaries, "total_cost": self.dollars}

    def __repr__(self) -> str:
        cost = "; ".join([f"${self.known_dollars:.4f}", *self.notes()])
        return f"<Usage {self.calls} calls, {self.input_tokens:,} tokens in, {self.output_tokens:,} out, {cost}>"
