"""The gateway: backoff with jitter, Retry-After, the cache of sub-answers."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import ASK

from rlm import RLM, Backoff, Budget, LLMError, PromptTooLong, RateLimited, Reply, ScriptedLM, SubCache, Usage
from rlm.calls.gateway import Gateway
from rlm.models.retry_wait import retry_after_seconds


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr("rlm.calls.gateway.time.sleep", waits.append)
    return waits


def test_waits_grow_with_full_jitter_up_to_a_most() -> None:
    backoff, busy = Backoff(retries=8, first_seconds=1, most_seconds=10), LLMError("busy", transient=True)
    assert backoff.wait(busy, 9) is None
    for tries, most in enumerate((1, 2, 4, 8, 10, 10, 10, 10), 1):
        column = [backoff.wait(busy, tries) or 0.0 for _ in range(200)]
        assert max(column) <= most
        assert max(column) > 0.8 * most
        assert min(column) < 0.2 * most


def test_what_fails_for_a_while_is_tried_again_and_the_rest_is_not(slept: list[float]) -> None:
    lm = ScriptedLM([LLMError("busy", transient=True), RateLimited("slow down"), "done"])
    assert Gateway(Usage()).ask(lm, ASK).text == "done"
    assert len(slept) == 2
    with pytest.raises(LLMError, match="wrong"):
        Gateway(Usage()).ask(ScriptedLM([LLMError("wrong"), "never"]), ASK)
    assert len(slept) == 2


def test_a_failure_for_a_while_with_a_paid_reply_is_tried_again(slept: list[float]) -> None:
    broken = LLMError("broke off", transient=True)
    broken.reply = Reply("half of it", 5, 3, "m")
    usage = Usage()
    assert Gateway(usage).ask(ScriptedLM([broken, "done"]), ASK).text == "done"
    assert (usage.calls, len(slept)) == (2, 1)


@pytest.mark.parametrize(
    ("seconds", "budget", "waits"), [(7, None, True), (432.5, None, True), (700.0, None, False), (700.0, 3600, True)]
)
def test_a_demanded_wait_is_kept_up_to_the_budget(
    slept: list[float], seconds: float, budget: float | None, waits: bool
) -> None:
    lm = ScriptedLM([RateLimited("later", retry_after_seconds=seconds), "done"])
    gateway = Gateway(Usage(), Budget(iterations=None, seconds=budget))
    if waits:
        assert gateway.ask(lm, ASK).text == "done"
        assert seconds <= slept[0] <= seconds + 0.25
    else:
        with pytest.raises(RateLimited):
            gateway.ask(lm, ASK)


@pytest.mark.parametrize(
    ("prompt", "counted", "cut"),
    [
        ("it is a word " * 7_000, 2_051, True),
        ("x = f(a)\n" * 10_000, 2_051, True),
        ("\u4e00" * 90_000, 2_051, True),
        ("a1" * 45_000, 2_051, True),
        ("a word " * 1_755, 2_051, True),
        ("a word " * 3_510, 4_096, True),
        ("a word " * 7_021, 8_191, True),
        ("a word " * 1_755, 2_060, False),
        ("a word " * 1_185, 2_051, False),
        # runs of one character are one token; a count of less than any window is no count
        ("it is a word " * 700, 2_051, False),
        (" " * 90_000, 750, False),
        ("=" * 80 * 300, 400, False),
        ("internationalization " * 5_000, 5_100, False),
        ("it is a word " * 700, 11, False),
        ("it is a word " * 7_000, 0, False),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_a_prompt_that_the_endpoint_cut_to_a_usual_window_is_too_long(prompt: str, counted: int, cut: bool) -> None:
    sub, gateway = ScriptedLM([]), Gateway(Usage())
    sub.complete = lambda *_, **__: Reply("yes", counted, 1, "m")  # type: ignore[method-assign]
    ask = partial(gateway.ask, sub, [{"role": "user", "content": prompt}], must_be_whole=True)
    if not cut:
        assert ask().text == "yes"
        return
    with pytest.raises(PromptTooLong, match="num_ctx") as caught:
        ask()
    assert (caught.value.window_tokens, gateway.usage.input_tokens) == (counted, counted)  # it was paid


def test_a_root_whose_prompt_was_cut_shortens_its_history() -> None:
    def reply(messages: Any) -> str:
        turn = len(lm.calls)
        return f"```repl\nn = {turn}; print('word ' * 4_000, n)\n```" if turn < 6 else "```repl\nFINAL(n)\n```"

    class Cutting(ScriptedLM):
        def complete(self, messages: Any, **options: Any) -> Any:
            answer = super().complete(messages, **options)
            return replace(answer, input_tokens=min(2_051, answer.input_tokens))

    lm = Cutting(reply)
    completion = RLM(lm=lm, runner="local").completion("q", "t")
    assert completion.finished, completion.reason
    assert any("cut the prompt to its window" in note for note in completion.notes)


def test_an_item_raises_after_the_retries_and_they_are_counted_once(slept: list[float]) -> None:
    sub = ScriptedLM([RateLimited("busy")] * 3)
    code = "```repl\ntry:\n    llm_query('x')\nexcept LLMError as e:\n    FINAL(type(e).__name__ + ' ' + str(e))\n```"
    completion = RLM(lm=ScriptedLM([code]), sub_lm=sub, max_retries=2).completion("q", "t")
    assert completion.answer == "RateLimited busy"
    assert len(sub.calls) == 3
    assert completion.usage.calls == 1
    assert len(completion.trajectory[1]["code_blocks"][0]["result"]["rlm_calls"]) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "2.5"}, 2.5), ({"retry-after-ms": "400", "retry-after": "9"}, 0.4), ({}, None),
     ({"ratelimit": '"default";r=0;t=30'}, 30.0), ({"ratelimit": "limit=9, remaining=0, reset=7"}, 7.0),
     ({"retry-after": "soon"}, None), ({"retry-after": "-3"}, 0.0),
     ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0)],
)  # fmt: skip
def test_retry_after_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


TWICE = "```repl\nFINAL([llm_query('same'), llm_query('same'), llm_query('same', model='other')])\n```"


def test_equal_calls_are_paid_once_when_the_caller_asks_for_it(tmp_path: Path) -> None:
    for keyword in ({"sub_cache": True}, {"sub_cache": tmp_path / "b"},
                    {"sub_cache": SubCache(tmp_path / "c")}):  # fmt: skip
        sub = ScriptedLM(str.upper)
        rlm = RLM(lm=ScriptedLM([TWICE, TWICE]), sub_lm=sub, **keyword)
        first, second = rlm.completion("q", "t"), rlm.completion("q", "t")
        assert first.answer == second.answer == "['SAME', 'SAME', 'SAME']"
        assert len(sub.calls) == 2  # one for each model
        assert (first.usage.calls, second.usage.calls) == (3, 1)
        calls = second.trajectory[1]["code_blocks"][0]["result"]["rlm_calls"]
        assert [(call["cached"], call["prompt_tokens"], call["dollars"]) for call in calls] == [(True, 0, 0.0)] * 3


def test_a_cache_outlives_the_process_and_survives_damage(tmp_path: Path) -> None:
    RLM(lm=ScriptedLM([TWICE]), sub_lm=ScriptedLM(str.upper), sub_cache=tmp_path).completion("q", "t")
    sub = ScriptedLM(str.upper)
    RLM(lm=ScriptedLM([TWICE]), sub_lm=sub, sub_cache=tmp_path).completion("q", "t")
    assert sub.calls == []
    files = list(tmp_path.rglob("*.json"))
    assert len(files) == 2
    assert not any("same" in file.read_text() for file in files)  # answers, no prompts
    for file in files:
        file.write_text('{"text": "SA')
    RLM(lm=ScriptedLM([TWICE]), sub_lm=sub, sub_cache=tmp_path).completion("q", "t")
    assert len(sub.calls) == 2


def test_logging_is_told_of_tries_but_not_what_an_endpoint_said(
    slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rlm")
    lm = ScriptedLM([RateLimited("limit of organization org-123"), LLMError("busy", transient=True), "done"], model="m")
    assert Gateway(Usage()).ask(lm, ASK).text == "done"
    assert [(record.name, record.levelname) for record in caplog.records] == [("rlm", "INFO")] * 2
    assert [message.partition(" asked")[0] for message in caplog.messages] == ["m: RateLimited;", "m: LLMError;"]
    assert [message[-12:] for message in caplog.messages] == ["(try 2 of 6)", "(try 3 of 6)"]


def test_a_sub_answer_that_cannot_be_kept_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tmp_path)

    caplog.set_level("DEBUG", "rlm")
    cache = SubCache(tmp_path)
    monkeypatch.setattr(Path, "write_text", fail)
    assert Gateway(Usage(), cache=cache).ask(ScriptedLM(["paid"]), ASK).text == "paid"
    assert "WARNING a sub-answer was not kept: No space left on device" in [
        f"{record.levelname} {record.getMessage()}" for record in caplog.records
    ]
