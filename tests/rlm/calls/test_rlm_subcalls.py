"""`llm_query` and `llm_query_batched`: order, concurrency, failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from rlm import Budget, LLMError, ScriptedLM, Usage
from rlm.calls.gateway import Gateway
from rlm.calls.sub_cache import SubCache
from rlm.calls.subcalls import SubCalls
from rlm.calls.waiting import WaitClock


def failing_on(*bad: str) -> Callable[[str], str]:
    def reply(prompt: str) -> str:
        if prompt in bad:
            raise LLMError(f"no luck with {prompt}")
        time.sleep(0.001 * (12 - len(prompt)))
        return prompt.upper()

    return reply


def test_a_batch_keeps_its_order_whatever_ends_first() -> None:
    calls, prompts = SubCalls(ScriptedLM(failing_on()), Usage()), ["a" * (1 + i % 9) + str(i) for i in range(40)]
    assert calls.llm_query_batched(prompts) == [prompt.upper() for prompt in prompts]


def test_a_batch_is_bounded_to_16_at_once() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def reply(prompt: str) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return "yes"

    SubCalls(ScriptedLM(reply), Usage()).llm_query_batched([str(i) for i in range(50)])
    assert 2 <= most <= 16


def test_a_failed_slot_raises_after_all_have_ended_and_is_never_a_string() -> None:
    usage = Usage()
    calls = SubCalls(ScriptedLM(failing_on("b")), usage)
    kept = r"\(return_exceptions=True keeps the other answers\)$"
    with pytest.raises(LLMError, match=rf"1 of 3 calls failed; the first was prompts\[1\]: no luck with b {kept}"):
        calls.llm_query_batched(["a", "b", "c"])
    assert usage.calls == 2
    assert {(r.prompt, r.reply.text, r.error) for r in calls.drain()} == {
        ("a", "A", None), ("b", "", "no luck with b"), ("c", "C", None),
    }  # fmt: skip
    assert calls.drain() == ()
    with pytest.raises(LLMError, match=r"no luck with b$"):  # there are no other answers
        calls.llm_query_batched(["b", "b"])
    spent = SubCalls(ScriptedLM(["A"]), usage, gateway=Gateway(usage, Budget(iterations=None, calls=3)))
    with pytest.raises(LLMError, match=r"answer from what you have$"):  # nor may the calls be made again
        spent.llm_query_batched(["a", "b"])
    faulty = SubCalls(ScriptedLM(["A"]), usage, gateway=Gateway(usage, cache=SubCache(__file__)))  # not a directory
    assert str(faulty.llm_query_batched(["a"], return_exceptions=True)[0]).startswith("NotADirectoryError: ")


def test_what_is_no_prompt_is_a_type_error_before_any_call() -> None:
    lm = ScriptedLM(str.upper)
    calls = SubCalls(lm, Usage())
    with pytest.raises(TypeError, match="a list of prompts, not one str"):
        calls.llm_query_batched("abc")
    with pytest.raises(TypeError, match="a prompt must be a str, not int"):
        calls.llm_query_batched(["a", 1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a prompt must be a str, not list"):
        calls.llm_query(["a"])  # type: ignore[arg-type]
    assert lm.calls == []


@pytest.mark.slow
def test_what_is_remembered_of_failed_calls_is_bounded() -> None:
    """They cost nothing that a budget counts, and a cell may make them without end."""
    calls = SubCalls(ScriptedLM(["a"]), Usage(), gateway=Gateway(Usage(), Budget(calls=1)))
    calls.llm_query("x" * 50_000)
    for _ in range(10_050):
        with pytest.raises(LLMError):
            calls.llm_query("y" * 10_001)
    records = calls.drain()
    assert len(records[0].prompt) == 50_000
    assert len(records) == 10_001
    assert max(len(record.prompt) for record in records[1:]) < 10_100
    with pytest.raises(LLMError):
        calls.llm_query("z")
    assert [record.prompt for record in calls.drain()] == ["z"]


def test_an_interrupt_while_waits_are_counted_counts_none_twice() -> None:
    class Lock:
        def locked(self) -> bool:
            raise KeyboardInterrupt

    clock, started = WaitClock(), time.perf_counter()
    with clock.running(Lock()):  # type: ignore[arg-type]
        for _ in range(10):
            time.sleep(0.001)
            with pytest.raises(KeyboardInterrupt):
                _ = clock.seconds
        Lock.locked = lambda self: True  # type: ignore[method-assign]
        assert 0.01 <= clock.seconds <= time.perf_counter() - started
