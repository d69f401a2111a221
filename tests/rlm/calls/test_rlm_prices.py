"""What each provider charges by its own rule, for models old enough that the published prices change no more."""

from __future__ import annotations

import math
from typing import Any

import pytest
from rlm_replies import ASK

from rlm import RLM
from rlm.calls.usage import check_prices, cost_of, with_counted_usage
from rlm.models.anthropic import count_usage as count_messages
from rlm.models.chat import count_usage as count_chat
from rlm.models.lm import Reply, TokenDetails
from rlm.models.responses import count_usage as count_responses


def reply(count: Any, model: str, usage: dict[str, Any], tier: str | None, endpoint: str | None) -> Reply:
    read, written, details, cost = count(usage, tier, endpoint)
    return Reply("x", read, written, model, cost, details=details)


def openai(model: str, usage: dict[str, Any], tier: str | None = None, endpoint: str | None = None) -> Reply:
    return reply(count_chat, model, usage, tier, endpoint)


def anthropic(model: str, usage: dict[str, Any]) -> Reply:
    return reply(count_messages, model, usage, None, "https://api.anthropic.com")


def responses(model: str, usage: dict[str, Any], tier: str | None = None) -> Reply:
    return reply(count_responses, model, usage, tier, "https://api.openai.com/v1")


def chat(read: int, written: int, cached: int = 0, thought: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": read, "completion_tokens": written,
        "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens_details": {"reasoning_tokens": thought},
    }  # fmt: skip


def claude(fresh: int, written: int, found: int = 0, kept: int = 0, hour: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "input_tokens": fresh, "output_tokens": written, "cache_read_input_tokens": found,
        "cache_creation_input_tokens": kept, "cache_creation": {"ephemeral_1h_input_tokens": hour}, **more,
    }  # fmt: skip


OPENROUTER = "https://openrouter.ai/api/v1"
GOLDEN = [
    ("95 % cached", openai("gpt-5", chat(100_000, 1_000, 95_000)), (5_000 * 1.25 + 95_000 * 0.125 + 1_000 * 10) / 1e6),
    ("nothing cached", openai("gpt-5", chat(100_000, 1_000)), (100_000 * 1.25 + 1_000 * 10) / 1e6),
    ("half price for cached", openai("gpt-4o", chat(10_000, 500, 8_000)), (2_000 * 2.5 + 8_000 * 1.25 + 5_000) / 1e6),
    ("thinking is output", openai("o3", chat(2_000, 9_000, 0, 8_500)), (2_000 * 2 + 9_000 * 8) / 1e6),
    ("a dated name", openai("gpt-4o-2024-08-06", chat(10_000, 500)), (10_000 * 2.5 + 500 * 10) / 1e6),
    ("the flex tier", openai("o3", chat(10_000, 500), "flex"), (10_000 * 1 + 500 * 4) / 1e6),
    ("the default tier", openai("o3", chat(10_000, 500), "default"), (10_000 * 2 + 500 * 8) / 1e6),
    (
        "the Responses API",
        responses("gpt-5", {
            "input_tokens": 50_000, "input_tokens_details": {"cached_tokens": 40_000, "cache_write_tokens": 0},
            "output_tokens": 2_000, "output_tokens_details": {"reasoning_tokens": 1_500},
        }),
        (10_000 * 1.25 + 40_000 * 0.125 + 2_000 * 10) / 1e6,
    ),
    ("Claude, fresh", anthropic("claude-sonnet-4-5", claude(10_000, 500)), (10_000 * 3 + 500 * 15) / 1e6),
    (
        "Claude, read and written",
        anthropic("claude-sonnet-4-5-20250929", claude(100, 500, 90_000, 4_000)),
        (100 * 3 + 90_000 * 0.3 + 4_000 * 3.75 + 500 * 15) / 1e6,
    ),
    (
        "Claude, written for an hour",
        anthropic("claude-opus-4-5", claude(0, 100, 0, 10_000, 10_000)),
        (10_000 * 10 + 100 * 25) / 1e6,
    ),
    (
        "Claude, a long prompt costs twice",
        anthropic("claude-sonnet-4-5", claude(250_000, 1_000)),
        (250_000 * 6 + 1_000 * 22.5) / 1e6,
    ),
    (
        "OpenRouter says what it charges",
        openai("openai/gpt-5", {**chat(100_000, 1_000, 95_000), "cost": 0.0281}, None, OPENROUTER),
        0.0281,
    ),
    (
        "OpenRouter, by its table",
        openai("anthropic/claude-sonnet-4.5", chat(10_000, 500), None, OPENROUTER),
        (10_000 * 3 + 500 * 15) / 1e6,
    ),
    ("a provider in the name", openai("openai/gpt-4o", chat(10_000, 1), None, "http://127.0.0.1:4000"), 0.02501),
    (
        "DeepSeek's name for its cache",
        openai("mine", {"prompt_tokens": 1_000_000, "completion_tokens": 1, "prompt_cache_hit_tokens": 900_000}),
        0.1 + 0.09,
    ),
]  # fmt: skip
OWN = {"mine": (1.0, 2.0, 0.1)}


@pytest.mark.parametrize(("reply", "charged"), [case[1:] for case in GOLDEN], ids=[case[0] for case in GOLDEN])
def test_what_a_call_costs(reply: Reply, charged: float) -> None:
    counted = with_counted_usage(reply, ASK)
    assert not counted.estimated
    assert cost_of(counted, OWN) == pytest.approx(charged, rel=0.02)


@pytest.mark.parametrize("nonsense", [math.nan, -1, 10**30, "many", None, True, 1e5 + 0.5])
def test_details_that_cannot_be_true_make_no_call_cheaper(nonsense: Any) -> None:
    whole = cost_of(openai("gpt-5", chat(100_000, 1_000)), {})
    for usage in (
        chat(100_000, 1_000, nonsense),
        chat(100_000, 1_000, 100_001),
        {**chat(100_000, 1_000), "prompt_tokens_details": nonsense},
        {**chat(100_000, 1_000), "cost": nonsense if nonsense != 1e5 + 0.5 else None},
        {"prompt_tokens": 100_000, "completion_tokens": 1_000},
    ):
        assert cost_of(with_counted_usage(openai("gpt-5", usage), ASK), {}) == whole
    unknown = with_counted_usage(openai("gpt-5", chat(nonsense, nonsense, nonsense)), ASK)
    assert (unknown.estimated, unknown.details) == (True, TokenDetails())


def test_own_prices_go_first_and_may_price_the_cache() -> None:
    reply = Reply("", 1_000_000, 100_000, "gpt-5", details=TokenDetails(cache_read=500_000, cache_write=100_000))
    assert cost_of(reply, {"gpt-5": (1, 10)}) == pytest.approx(1 + 1)
    assert cost_of(reply, {"gpt-5": (1, 10, 0.1)}) == pytest.approx(0.4 + 0.05 + 0.1 + 1)
    assert cost_of(reply, {"gpt-5": (1, 10, 0.1, 2)}) == pytest.approx(0.4 + 0.05 + 0.2 + 1)
    for price in ((1,), (1, 2, 3, 4, 5), (1, math.nan), (1, -2), "12"):
        with pytest.raises(ValueError, match="the price of m must be a tuple in dollars per million tokens"):
            check_prices({"m": price})  # type: ignore[dict-item]


def test_usage_counts_the_details_and_a_resumed_run_has_them(endpoint: Any, tmp_path: Any) -> None:
    endpoint.usage = {**chat(100_000, 1_000, 95_000, 900), "total_tokens": 101_000}
    endpoint.reply = lambda body: (
        "```repl\nFINAL(llm_query('x', model='gpt-5'))\n```" if len(body["messages"]) > 1 else "yes"
    )
    path = tmp_path / "run.jsonl"
    completion = RLM("gpt-5", base_url=endpoint.url, api_key="k", trajectory=path).completion("q", "text")
    used = completion.usage.models["gpt-5"]
    assert (used.calls, used.cache_read_tokens, used.reasoning_tokens) == (2, 190_000, 1_800)
    assert used.dollars == pytest.approx(2 * 0.028125)
    assert completion.usage.to_dict()["model_usage_summaries"]["gpt-5"]["cache_read_tokens"] == 190_000
    again = RLM.resume_run(path)
    assert again.usage.models["gpt-5"] == used
