"""`search(rerank=)`: one call of a model says which of the best passages come first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monocontext import Monocontext, publish
from monocontext.stores.memory import forget
from monocontext.text.search.reranking import RERANKED, reorder
from rlm import RLM, ScriptedLM

PLACE = "memory://reranking"
TEXT = "".join(f"Harbor number {n} has {'copper ' * (n % 7)}cranes.\n" + "filler of a line\n" * 40 for n in range(80))


@pytest.fixture
def context() -> Iterator[Monocontext]:
    publish(TEXT, PLACE, frame_bytes=4096)
    yield Monocontext.open(PLACE)
    forget("reranking")


def test_one_call_puts_passages_in_order(context: Monocontext) -> None:
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return "3, 1, 3, 999"

    plain = context.search("copper harbor", k=RERANKED)
    found = context.search("copper harbor", k=4, rerank=ask)
    assert found == [plain[2], plain[0], plain[1], plain[3]]
    assert len(prompts) == 1
    assert prompts[0].count("\n[") == RERANKED
    assert f"[1]\n{plain[0].text.strip()}" in prompts[0]
    assert "query best: copper harbor\n" in prompts[0]


def test_nothing_to_order_is_not_asked(context: Monocontext) -> None:
    def ask(prompt: str) -> str:
        raise AssertionError(prompt)

    assert context.search("zeppelin", rerank=ask) == []
    assert len(context.search('"number 17 has"', rerank=ask)) == 1
    with pytest.raises(ValueError, match="k must be at least 1"):
        context.search("copper", k=0, rerank=ask)


def test_a_reply_without_a_number_is_an_error(context: Monocontext) -> None:
    with pytest.raises(ValueError, match=r"rerank= must return numbers of passages from 1 to 50, not 'None of them\.'"):
        context.search("copper harbor", rerank=lambda prompt: "None\nof them.")
    assert reorder(["a", "b", "c"], "[2]") == ["b", "a", "c"]


@pytest.mark.parametrize("runner", ["local", "subprocess"])
def test_in_a_cell_it_is_a_sub_call(context: Monocontext, runner: str) -> None:
    cell = "FINAL([p.line for p in context.search('copper harbor', k=2, rerank=llm_query)])"
    expected = [context.search("copper harbor")[number].line for number in (1, 0)]
    lm = ScriptedLM([f"```repl\n{cell}\n```\n"])
    with RLM(lm=lm, sub_lm=ScriptedLM(lambda prompt: "2, 1"), runner=runner) as rlm:
        done = rlm.completion("Where is the copper?", context)
    assert done.answer == str(expected)
    assert done.usage.calls == 2
