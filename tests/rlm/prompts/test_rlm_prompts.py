"""What the model is told: that it is right, that it is short, that its sections can be left out."""

from __future__ import annotations

from typing import Any

import pytest

from rlm import RLM, ScriptedLM
from rlm.context.description import describe
from rlm.prompts.replies import parse_reply
from rlm.prompts.system import opening_messages, system_prompt


def prompt(context: object, **options: Any) -> str:
    return system_prompt(describe(context), prompt_characters=100_000, output_limit=20_000, **options)


@pytest.mark.parametrize(("context", "most"), [("text", 2_900), (["a"], 2_750), ({"a": 1}, 2_500), (None, 2_000)])
def test_it_is_short_because_it_is_paid_on_every_turn(context: object, most: int) -> None:
    example = "".join(message["content"] for message in opening_messages("q", describe(context), "")[1:-1])
    assert len(prompt(context)) + len(example) <= most


def test_a_lazy_text_stays_below_four_thousand_characters(lazy: Any) -> None:
    told = prompt(lazy, children=True)
    assert len(told) <= 4_000  # some 1,000 tokens
    for word in (
        "its unit is the character", ".lines[a:b]", "context.chunks(", ".grep(", "`re`, `json`", "llm_query_batched",
        "rlm_query", "100,000 characters", "not `{context}`", "20,000 characters", "`FINAL(value)` in a block",
    ):  # fmt: skip
        assert word in told


@pytest.mark.parametrize("context", ["one two three " * 40_000, [f"item {i}" for i in range(100)]])
def test_the_code_in_the_prompt_runs_as_it_stands(context: Any) -> None:
    shown = [message["content"] for message in opening_messages("q", describe(context), "")[1:-1]]
    blocks = [block for text in (*shown, prompt(context)) for block in parse_reply(text).blocks]
    (answer,) = (block for block in blocks if block.code.startswith("FINAL"))
    blocks.remove(answer)
    assert len(blocks) == 2
    bounds = "start, stop = 0, len(context)\n"
    replies = ["```repl\n" + (bounds if i else "") + block.code + "\n```" for i, block in enumerate(blocks)]
    sub = ScriptedLM(lambda asked: "none")
    completion = RLM(lm=ScriptedLM([*replies, "FINAL(1)"]), sub_lm=sub).completion("q", context)
    assert [line["code_blocks"][0]["result"]["stderr"] for line in completion.trajectory[1:3]] == ["", ""]
    assert len(sub.calls) > 2
