"""Budgets over the whole tree, prices, and what comes back when one is spent."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest
from rlm_replies import repl

from rlm import RLM, Budget, ModelUsage, Reply, ScriptedLM, Usage
from rlm.calls.gateway import Gateway
from rlm.prompts.system import conversation

MANY = repl("answer['content'] = 'a draft'\nfor i in range(50):\n    last = llm_query(f'q{i}')\n    print(last)")


@pytest.mark.parametrize("way", ["keyword", "budget", "batch"])
def test_calls_never_go_over_root_and_sub_calls_together(way: str) -> None:
    sub = ScriptedLM(str.upper)
    limit: dict[str, Any] = {"budget": Budget(calls=5)} if way == "budget" else {"max_calls": 5}
    code = repl("llm_query_batched([str(i) for i in range(50)])") if way == "batch" else MANY
    completion = RLM(lm=ScriptedLM([code] * 9), sub_lm=sub, **limit).completion("q", "text")
    assert (completion.finished, completion.reason, completion.iterations) == (False, "max_calls", 1)
    assert len(sub.calls) == 4
    assert completion.usage.calls == 5
    assert "max_calls is reached" in completion.trajectory[-1]["code_blocks"][0]["result"]["stderr"]
    assert completion.trajectory[-1]["reason"] == "max_calls"


def test_the_best_partial_answer_is_the_draft_then_what_was_said_never_words_of_the_library() -> None:
    def partial(*replies: str) -> str:
        lm = ScriptedLM([*replies, *["nothing"] * 9])
        return RLM(lm=lm, sub_lm=ScriptedLM(str.upper), max_calls=3).completion("q", "text").answer

    assert partial(MANY) == "a draft"
    assert partial("first", "second", "third thought") == "third thought"
    assert partial("A thought.", repl("x = 1"), repl("1 / 0")) == "A thought."
    asked = "for i in range(9): {}llm_query(f'q{{i}}'){}"
    for code in (asked.format("print(", ")"), asked.format("x = ", ""), "x = 1", "1 / 0", "# nothing", "context = 1"):
        assert partial(*[repl(code)] * 3) == "", code
    assert partial("FINAL_VAR(unknown)", "FINAL()", "FINAL(answer)") in ("", "FINAL()")


def test_dollars_by_a_table_of_ones_own_and_unknown_prices_say_so() -> None:
    lm = ScriptedLM([MANY], model="mine")
    priced = RLM(lm=lm, sub_lm=ScriptedLM(lambda p: "x" * 4000, model="sub"), max_dollars=0.0105,
                 prices={"mine": (0, 0), "sub": (0, 1.0)}).completion("q", "t")  # fmt: skip
    assert priced.reason == "max_dollars"
    assert priced.cost == pytest.approx(0.011)
    assert priced.notes == ()
    assert priced.usage.models["sub"] == ModelUsage(11, 11, 11_000, pytest.approx(0.011))
    unknown = RLM(lm=ScriptedLM(["FINAL(1)"])).completion("q", "t")
    assert unknown.cost is None
    assert unknown.notes == ("no price is known for scripted: the cost is not known (see `prices`)",)
    assert unknown.usage.to_dict()["total_cost"] is None
    assert "no price is known for scripted" in repr(unknown.usage)


@pytest.mark.slow
def test_seconds_end_a_run_between_calls_and_in_a_cell() -> None:
    def slow(prompt: str) -> str:
        time.sleep(0.05)
        return "x"

    completion = RLM(lm=ScriptedLM([MANY]), sub_lm=ScriptedLM(slow), max_seconds=0.3).completion("q", "t")
    assert (completion.reason, completion.answer) == ("max_seconds", "a draft")
    lm = ScriptedLM([repl("answer['content'] = 'kept'\nwhile True: pass")])
    loop = RLM(lm=lm, max_seconds=0.3).completion("q", "t")
    assert (loop.reason, loop.answer) == ("max_seconds", "kept")
    assert "after 120 s" not in loop.trajectory[1]["code_blocks"][0]["result"]["stderr"]  # that is `cell_timeout`


def test_nothing_is_asked_when_the_budget_is_nothing() -> None:
    for limit in ({"max_calls": 0}, {"max_tokens": 0}, {"max_seconds": 0}, {"max_dollars": 0}):
        lm = ScriptedLM(["FINAL(1)"])
        completion = RLM(lm=lm, **limit).completion("q", "t")
        assert (completion.reason, completion.answer, lm.calls) == (next(iter(limit)), "", [])


def test_the_whole_tree_shares_calls() -> None:
    lm = ScriptedLM(
        lambda asked: "x" if isinstance(asked, str) else repl("while True: llm_query('a')")
        if "child" in conversation(asked)[0]["content"] else repl("rlm_query('child', context='x')")
    )  # fmt: skip
    completion = RLM(lm=lm, max_depth=3, max_calls=10).completion("q", "t")
    assert (completion.reason, len(lm.calls)) == ("max_calls", 10)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"iterations": 0}, ValueError), ({"calls": -1}, ValueError), ({"dollars": float("nan")}, ValueError),
     ({"iterations": 2.5}, ValueError),
     ({"tokens": "9"}, TypeError), ({"seconds": True}, TypeError)],
)  # fmt: skip
def test_a_budget_that_is_none(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"max_{next(iter(wrong))}"):
        Budget(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["local", "subprocess"])
def test_a_process_does_not_wait_at_its_end_for_calls_that_nobody_waits_for(runner: str) -> None:
    """A model may take minutes to answer what was interrupted."""
    code = f"""
import os, signal, threading, time
from rlm import RLM, ScriptedLM

def sub(prompt):
    if prompt == "2":
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    time.sleep(100)
    return prompt

root = lambda prompt: "```repl\\nllm_query_batched(['0', '1', '2'])\\n```"
try:
    RLM(lm=ScriptedLM(root), sub_lm=ScriptedLM(sub), runner={runner!r}).completion("q", "text")
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr


@pytest.mark.parametrize("call", ["llm_query('x', model='gpt-99')", "llm_query_batched(['x'] * 4, model='gpt-99')"])
def test_a_cell_does_not_get_round_the_dollars_by_naming_a_model(call: str) -> None:
    sub = ScriptedLM(str.upper, model="gpt-5-nano")
    code = repl(f"for i in range(50):\n    try: {call}\n    except LLMError as exc: print(exc)\nFINAL('done')")
    completion = RLM(
        lm=ScriptedLM([code], model="gpt-5"), sub_lm=sub, sub_model="gpt-5-nano", max_dollars=1
    ).completion("q", "text")
    assert completion.answer == "done"
    assert sub.calls == []
    told = completion.trajectory[1]["code_blocks"][0]["result"]["stdout"]
    assert "the model gpt-99 is not allowed under max_dollars, since prices= has no price for it" in told


@pytest.mark.parametrize("dollars", [None, 1.0])
def test_models_lists_what_cells_may_name(dollars: float | None) -> None:
    """Beside the model that they have anyway; priced or not."""
    code = repl(
        "told = []\nfor name in ('mine', 'sub', 'gpt-5-nano', None):\n"
        "    try: told.append(llm_query('x', model=name))\n"
        "    except LLMError as exc: told.append(str(exc))\nFINAL(told)"
    )
    sub = ScriptedLM(str.upper, model="sub")
    rlm = RLM(lm=ScriptedLM([code], model="root"), sub_lm=sub, models=["mine"], max_dollars=dollars)
    refusal = "the model gpt-5-nano is not allowed in this run (allowed: mine): leave `model` out"
    assert rlm.completion("q", "text").answer == repr(["X", "X", refusal, "X"])
    with pytest.raises(TypeError, match="models= must be a list of names"):
        RLM(lm=ScriptedLM([]), models="gpt-5")


@pytest.mark.parametrize("model", ["5", "['gpt-5']", "b'gpt-5'", "True"])
def test_what_names_no_model_is_refused(model: str) -> None:
    lm = ScriptedLM([repl(f"try: llm_query('x', model={model})\nexcept Exception as exc: FINAL(type(exc).__name__)")])
    assert RLM(lm=lm).completion("q", "text").answer == "TypeError"
    assert len(lm.calls) == 1


NONSENSE = [float("nan"), float("inf"), float("-inf"), -1, -1_000_000, None, "12", True, 10**30, [5]]


class Telling(ScriptedLM):
    """One that tells of its usage what it likes."""

    def __init__(self, script: Any, *told: Any, **options: Any) -> None:
        super().__init__(script, **options)
        self.told = told

    def complete(self, messages: Any, *, model: Any = None, on_delta: Any = None) -> Reply:
        reply = super().complete(messages, model=model, on_delta=on_delta)
        return Reply(reply.text, *self.told[:2], reply.model, *self.told[2:])


@pytest.mark.parametrize("nonsense", NONSENSE, ids=repr)
@pytest.mark.parametrize("limit", ["max_tokens", "max_dollars"])
def test_usage_that_is_none_switches_no_budget_off(nonsense: Any, limit: str) -> None:
    sub = Telling(lambda prompt: "é" * 500, nonsense, nonsense, nonsense, model="sub")
    most = {"max_tokens": 5_000, "max_dollars": 0.005}[limit]
    completion = RLM(lm=ScriptedLM([MANY]), sub_lm=sub, prices={"scripted": (0, 0), "sub": (1, 1)},
                     **{limit: most}).completion("q", "t")  # fmt: skip
    assert completion.reason == limit
    assert len(sub.calls) <= 5  # of 50: each is a kilobyte
    used = completion.usage.models["sub"]
    assert used == ModelUsage(len(sub.calls), 2 * len(sub.calls), 1_000 * len(sub.calls),
                              pytest.approx(1_002e-6 * len(sub.calls)), len(sub.calls))  # fmt: skip
    assert completion.notes == ("some calls of sub reported no tokens: each byte is counted as a token",)


@pytest.mark.parametrize(
    ("told", "counted"),
    [((7, 3), (7, 3, 0)), ((7.0, 3.0), (7, 3, 0)), ((0, 3), (2, 3, 1)), ((7, 0), (7, 1_000, 1)),
     ((7, float("nan")), (7, 1_000, 1)), ((-7, 3), (2, 3, 1)), ((0.5, 3), (2, 3, 1))],
)  # fmt: skip
def test_what_is_told_counts_and_the_rest_is_estimated(told: tuple[Any, Any], counted: tuple[int, int, int]) -> None:
    usage = Usage()
    Gateway(usage).ask(Telling(lambda prompt: "é" * 500, *told), [{"role": "user", "content": "hi"}])
    used = usage.models["scripted"]
    assert (used.input_tokens, used.output_tokens, used.estimated_calls) == counted
