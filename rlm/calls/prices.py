"""Price calls: by the endpoint's own report, by prices of the caller, else by the table of `genai-prices`.

The table is that of the installed version: nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlm.models.lm import Reply, is_amount

if TYPE_CHECKING:
    from datetime import datetime

Price = tuple[float, float] | tuple[float, float, float] | tuple[float, float, float, float]
"""Dollars per million tokens: input, output, input read from a cache, input written to a cache.

Without the last two, such tokens cost the same as other input.
"""

Prices = Mapping[str, Price]
"""Model -> price."""

_VERSION = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8}|latest)$")


def check_prices(prices: Prices) -> Prices:
    """Return `prices`. Raises ValueError for an invalid one."""
    for model, price in prices.items():
        if not (isinstance(price, (tuple, list)) and 2 <= len(price) <= 4 and all(map(is_amount, price))):
            raise ValueError(
                f"the price of {model} must be a tuple in dollars per million tokens, (input, output) or (input, "
                f"output, cache read, cache write), not {price!r}"
            )
    return prices


def price_of(model: str, prices: Prices) -> Price | None:
    """The price of a model in `prices`; None if they lack it.

    A name with a date at its end (`gpt-5-2025-08-07`) costs the same as the name without it.
    """
    return prices.get(model) or prices.get(_VERSION.sub("", model))


def dollars(reply: Reply, prices: Prices, *, at: datetime | None = None) -> float | None:
    """The cost of a reply in dollars; None if the price of its model is not known.

    The amount that the endpoint reports comes first, then `prices`, then the table as of `at`, by default now.
    """
    if reply.dollars is not None:
        return reply.dollars
    if (price := price_of(reply.model, prices)) is None:
        return _by_table(reply, at)
    fresh, out, read, write = [*price, price[0], price[0]][:4]
    details = reply.details
    rest = reply.input_tokens - details.cache_read - details.cache_write
    into = rest * fresh + details.cache_read * read + details.cache_write * write
    return float(into + reply.output_tokens * out) / 1e6


def _by_table(reply: Reply, at: datetime | None) -> float | None:
    import genai_prices  # 0.2 s, at the first price

    model, details = reply.model, reply.details
    usage = genai_prices.Usage(
        input_tokens=reply.input_tokens, output_tokens=reply.output_tokens,
        cache_read_tokens=details.cache_read or None, cache_write_tokens=details.cache_write or None,
        cache_write_1h_tokens=details.cache_write_1h or None, output_reasoning_tokens=details.reasoning or None,
    )  # fmt: skip
    kinds = ("service_tier", "speed", "processing")
    tier: dict[str, str] | None = dict.fromkeys(kinds, details.tier) if details.tier else None
    maker, _, rest = model.partition("/")
    named: list[tuple[str, dict[str, str]]] = [(model, {})]
    if rest:  # the maker in the name goes before any maker, and the endpoint before both
        named.insert(0, (rest, {"provider_id": maker}))
    if where := details.endpoint:
        named.insert(0, (model, {"provider_api_url" if "://" in where else "provider_id": where}))
    for name, by in named:
        try:
            result = genai_prices.calc_price(usage, name, **by, genai_request_timestamp=at, price_context=tier)
        except (LookupError, ValueError):  # no such model; a price that needs counts that are not reported
            continue
        return float(result.total_price)
    return None


def list_prices() -> Prices:
    """`PRICES`: the table's prices for models of OpenAI and Anthropic, without tiers and discounts, as of today."""
    from datetime import UTC, datetime

    from genai_prices.data import providers

    now, result = datetime.now(UTC), dict[str, Price]()
    makers = (provider for provider in providers if provider.id in ("openai", "anthropic"))
    for model in (model for maker in makers for model in maker.models):
        price = model.get_prices(now)
        both: list[Any] = [getattr(item, "base", item) for item in (price.input_mtok, price.output_mtok)]
        if None not in both:
            result[model.id] = (float(both[0]), float(both[1]))
    return result
