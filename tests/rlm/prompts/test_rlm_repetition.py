"""A model that repeats itself, and what consecutive requests of a run share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from rlm_replies import repl

from rlm import RLM, AnthropicLM, ScriptedLM
from rlm.loop import REPEATS_THAT_END
from rlm.models.lm import Message
from rlm.prompts.system import conversation


def test_a_repeated_turn_leaves_nothing_in_the_history_and_the_next_is_told() -> None:
    lm = ScriptedLM([repl("print(1)"), repl("print(1)"), repl("print(1)"), repl("print(2)"), "FINAL(done)"])
    completion = RLM(lm=lm).completion("which?", "text")
    assert (completion.answer, completion.iterations) == ("done", 5)
    sent = [[message["content"] for message in call] for call in lm.calls]
    assert sum(text == repl("print(1)") for text in sent[3]) == 1
    assert sent[3][:-1] == sent[2][:-1] == sent[1][:-1]
    assert [call[-1].rpartition("\n\nTurn ")[0] for call in sent[1:4]] == ["REPL output:\n1"] * 3
    assert ["Your last reply and its output were the same" in call[-1] for call in sent] == [
        False, False, True, True, False,
    ]  # fmt: skip
    assert [line.get("repeats", 0) for line in completion.trajectory[1:]] == [0, 1, 2, 0, 0]


def test_the_same_code_that_goes_on_is_no_repetition() -> None:
    turns = [repl("n = globals().get('n', 0x100000) + 1; hex(n)")] * (REPEATS_THAT_END + 3)
    completion = RLM(lm=ScriptedLM([*turns, repl("FINAL(n)")])).completion("q", "text")
    assert completion.answer == str(0x100000 + REPEATS_THAT_END + 3)


@pytest.mark.parametrize(
    "reply", [repl("print('the same')"), repl("1 / 0"), repl("print(object())"), "Let me think about it.", ""]
)
def test_a_model_that_only_repeats_itself_ends_the_run(reply: str) -> None:
    lm = ScriptedLM([repl("answer['content'] = 'a draft'"), *[reply] * 30])
    completion = RLM(lm=lm).completion("q", "text")
    assert (completion.reason, completion.finished, completion.answer) == ("repetition", False, "a draft")
    assert len(lm.calls) == 1 + 1 + REPEATS_THAT_END


@pytest.mark.parametrize("words", ["Turn {}/4: The output is 5.", "I look for the {}th time.", "REPL output:\n{}"])
def test_the_same_code_in_other_words_is_a_repetition(words: str) -> None:
    said = [f"{repl('print(1)')}\n{words.format(i)}" for i in range(2, 5)]
    completion = RLM(lm=ScriptedLM([*said, "FINAL(done)"])).completion("q", "text")
    assert [line.get("repeats", 0) for line in completion.trajectory[1:]] == [0, 1, 2, 0]


def test_a_child_that_repeats_itself_spends_no_budget_of_its_parent() -> None:
    def reply(messages: Sequence[Message]) -> str:
        if "which child?" in conversation(messages)[0]["content"]:
            return "I think that it is 7."
        return repl("FINAL(rlm_query('which child?', context='x'))")

    completion = RLM(lm=ScriptedLM(reply), max_depth=2).completion("q", "text")
    assert (completion.reason, completion.answer) == ("answer", "I think that it is 7.")


def shared(requests: Sequence[str]) -> list[float]:
    """The part of each request but the last that stands at the beginning of the one after it."""
    found = []
    for one, other in pairwise(requests):
        same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        found.append(same / len(one))
    return found


def twenty_turns(number: int) -> str:
    return f"FINAL({number})" if number == 20 else repl(f"print('{number} ' * 200)")


def as_bytes(messages: list[Message]) -> str:
    return json.dumps(messages)[:-1]  # without the bracket that closes the list


def test_requests_of_a_run_share_their_beginning_with_anthropic_and_mark_it(anthropic_endpoint: Any) -> None:
    turns = iter(range(1, 30))
    anthropic_endpoint.reply = lambda body: twenty_turns(next(turns))
    lm = AnthropicLM("m", base_url=anthropic_endpoint.url, api_key="k")
    assert RLM(lm=lm).completion("q", "text").iterations == 20
    plain = []
    for body in anthropic_endpoint.requests:
        blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
        marked = [i for i, block in enumerate(blocks) if block.pop("cache_control", None)]
        assert marked == [0, len(blocks) - 1]
        plain.append(json.dumps(body["system"]) + as_bytes(body["messages"]))
    assert shared(plain) == [1.0] * 19
    lm.complete([{"role": "user", "content": "one prompt, asked once"}])
    assert "cache_control" not in json.dumps(anthropic_endpoint.requests[-1])


def test_after_a_compaction_the_beginning_is_shared_again() -> None:
    """System prompt and question always; the rest from the next turn on."""
    lm = ScriptedLM([*(repl(f"print('{i} ' * 4_000)") for i in range(14)), "FINAL(1)"])
    completion = RLM(lm=lm, window_tokens=16_000).completion("q", "text")
    compacted = [line["compacted"] for line in completion.trajectory[1:]]
    parts = shared([as_bytes(call) for call in lm.calls])
    assert any(compacted)
    assert [part == 1.0 for part in parts] == [not changed for changed in compacted[1:]]


def test_anthropic_gets_no_empty_message(anthropic_endpoint: Any) -> None:
    AnthropicLM("m", base_url=anthropic_endpoint.url, api_key="k").complete(
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": " \n"}, {"role": "user", "content": "b"}]
    )
    sent = anthropic_endpoint.requests[0]["messages"]
    assert [message["content"][0]["text"] for message in sent] == ["a", "b"]
