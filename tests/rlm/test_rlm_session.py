"""Several questions in one namespace; a history that grows too long; children; tools; async."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import repl

from rlm import RLM, Budget, InvalidArgument, RLMError, ScriptedLM
from rlm.prompts.system import conversation
from rlm.runners.local import LocalRunner


def test_a_session_keeps_variables_and_history_and_not_the_answer() -> None:
    lm = ScriptedLM([repl("x = 41; FINAL(x)"), repl("print('not yet')"), repl("x += 1; FINAL_VAR('x')"),
                     repl("answer['content'] = 'third'; answer['ready'] = True"), "FINAL(fourth)"])  # fmt: skip
    with RLM(lm=lm).session("text") as session:
        answers = [session.ask(question) for question in ("first?", "second?", "third?", "fourth?")]
    assert [a.answer for a in answers] == ["41", "42", "third", "fourth"]
    assert [a.iterations for a in answers] == [1, 2, 1, 1]
    assert [a.usage.calls for a in answers] == [1, 2, 1, 1]
    told = [message["content"] for message in conversation(lm.calls[-1])]
    assert 'original query: "first?"' in told[0]
    asked = "Now answer another query:"
    assert [asked + text.partition(asked)[2].partition("\n\nTurn 1")[0] for text in told if asked in text] == [
        f'{asked} "{which}?"\n\n`context` and your variables are as you left them.'
        for which in ("second", "third", "fourth")
    ]


def test_the_next_question_says_which_variables_an_interrupt_has_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = ScriptedLM([repl("x = 41; FINAL(x)"), "FINAL(second)"])
    with RLM(lm=lm).session("text") as session:
        session.ask("first?")
        run, note = LocalRunner.run, "Interrupted: the previous cell was ended. The variables are lost: x.\n"
        monkeypatch.setattr(LocalRunner, "run", lambda runner, code: replace(run(runner, code), stderr=note))
        session.ask("second?")
    assert 'another query: "second?"\n\nInterrupted: the previous cell' in lm.calls[-1][-1]["content"]
    assert "as you left them" not in lm.calls[-1][-1]["content"]


def test_persistent_keeps_one_namespace_over_the_context_of_the_first_question() -> None:
    codes = ["x = context; FINAL(1)", "FINAL(x + '!')", "FINAL(x.upper())", "FINAL('x' in globals())"]
    with RLM(lm=ScriptedLM(list(map(repl, codes))), persistent=True) as rlm:
        rlm.completion("first", "text")
        assert rlm.completion("second").answer == "text!"
        assert rlm.completion("third", context="te" + "xt").answer == "TEXT"
        with pytest.raises(ValueError, match="keeps its first context"):
            rlm.completion("fourth", "another")
        options: list[dict[str, Any]] = [{"budget": Budget()}, {"trajectory": "run.jsonl"}]
        for option in options:
            with pytest.raises(InvalidArgument, match=r"takes budget= and trajectory= in RLM\(\.\.\.\)"):
                rlm.completion("fourth", **option)
        rlm.close()
        assert rlm.completion("fifth", "another").answer == "False"


def test_the_trajectory_of_a_session_goes_on_and_can_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    turns = [repl("x = llm_query('paid'); FINAL(x)"), repl("y = x + llm_query('again')"), repl("FINAL(y)")]
    sub = ScriptedLM(str.upper)
    with RLM(lm=ScriptedLM(turns[:2]), sub_lm=sub, trajectory=path).session("text") as session:
        session.ask("first")
        with pytest.raises(RLMError):
            session.ask("second")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("iteration") for line in lines] == [None, 1, 2]
    assert lines[2]["question"] == "second"
    completion = RLM(lm=ScriptedLM(turns[2:]), sub_lm=sub).resume(path)
    assert completion.answer == "PAIDAGAIN"
    assert len(sub.calls) == 2
    assert (completion.iterations, completion.usage.calls) == (2, 3)


def child_root(messages: Any) -> str:
    if isinstance(messages, str):
        return f"<{messages}>"
    question = conversation(messages)[0]["content"]
    if "parent?" in question:
        return repl(
            "import json\none = rlm_query('child?', context=context[:4])\n"
            "FINAL(json.dumps([one, rlm_query_batched(['child?'] * 2, ['a', 'b'])]))"
        )
    return repl("FINAL(f'child of {context!r}: {llm_query(context)} {\"x\" in globals()}')")


def test_rlm_query_is_a_child_run_with_a_context_and_namespace_of_its_own() -> None:
    lm = ScriptedLM(child_root)
    completion = RLM(lm=lm, max_depth=2).completion("parent?", "text and more")
    one, (a, b) = json.loads(completion.answer)
    assert one == "child of 'text': <text> False"
    assert (a, b) == ("child of 'a': <a> False", "child of 'b': <b> False")
    assert completion.usage.calls == 1 + 3 * 2
    calls = completion.trajectory[1]["code_blocks"][0]["result"]["rlm_calls"]
    assert [call["response"] for call in sorted(calls, key=lambda call: call["order"])] == [one, a, b]
    assert calls[0]["iterations"][0]["code_blocks"][0]["code"].startswith("FINAL")
    assert calls[0]["usage_summary"]["model_usage_summaries"]["scripted"]["total_calls"] == 2
    assert "rlm_query(prompt" in lm.calls[0][0]["content"]


def test_at_the_limit_of_depth_rlm_query_asks_as_llm_query_does() -> None:
    lm = ScriptedLM(child_root)
    completion = RLM(lm=lm).completion("parent?", "text and more")
    assert json.loads(completion.answer) == ["<child?\n\ntext>", ["<child?\n\na>", "<child?\n\nb>"]]
    assert "rlm_query" not in lm.calls[0][0]["content"].split("reserved")[0]
    code = repl("try: rlm_query('x', context=[1])\nexcept LLMError as e: FINAL(str(e))")
    assert "max_depth allows no further child run" in RLM(lm=ScriptedLM([code])).completion("q", "t").answer


def test_a_child_that_has_nothing_to_say_raises_in_the_cell() -> None:
    def root(messages: Any) -> str:
        if "child" in conversation(messages)[0]["content"]:
            return repl("x = 1")
        return repl("try: print('child said', rlm_query('child', context='x'))\nexcept LLMError as e: FINAL(str(e))")

    completion = RLM(lm=ScriptedLM(root), max_depth=2, max_iterations=3).completion("q", "t")
    assert completion.answer == "the child run ended without an answer (max_iterations)"


def test_a_long_prompt_becomes_the_context_of_the_child() -> None:
    def root(messages: Any) -> str:
        asked = conversation(messages)[0]["content"]
        return (
            repl("FINAL(len(context))")
            if "beginning of `context`" in asked
            else repl("FINAL(rlm_query('do it: ' + 'x' * 9_000))")
        )

    assert RLM(lm=ScriptedLM(root), max_depth=2).completion("q", "t").answer == "9007"


def test_custom_tools_are_in_the_namespace_and_in_the_prompt() -> None:
    def shout(text: str, times: int = 1) -> str:
        """Say it loudly.

        Not told."""
        return text.upper() * times

    tools = {"shout": shout, "limit": {"tool": 7, "description": "How many at most."}, "pairs": [1, 2],
             "find": {"tool": str.find, "description": "Where it is."}}  # fmt: skip
    lm = ScriptedLM([repl("shout = None"), repl("FINAL((shout('a', times=limit), pairs, find('abc', 'c')))")])
    assert RLM(lm=lm, custom_tools=tools).completion("q", "t").answer == "('AAAAAAA', [1, 2], 2)"
    system = lm.calls[0][0]["content"]
    assert "- `shout(text: 'str', times: 'int' = 1) -> 'str'`: Say it loudly.\n" in system
    assert "- `limit`, a int: How many at most.\n" in system
    assert "- `pairs`, a list\n" in system
    assert "Where it is." in system
    assert "Not told" not in system


@pytest.mark.parametrize("name", ["context", "llm_query", "FINAL", "not a name", "class", ""])
def test_a_tool_whose_name_cannot_be_is_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match="custom tool"):
        RLM(lm=ScriptedLM([]), custom_tools={name: len})


@pytest.mark.parametrize(
    "code", ["llm_query('a')", "llm_query_batched(['a'] * 20)", "rlm_query('a')", "rlm_query_batched(['a', 'b'])",
             "from concurrent.futures import ThreadPoolExecutor as T\nwith T(4) as t: list(t.map(llm_query, 'abcd'))"]
)  # fmt: skip
@pytest.mark.parametrize("depth", [1, 2])
def test_the_context_may_read_ahead_while_any_model_is_waited_for(code: str, depth: int, lazy: Any) -> None:
    during: list[int] = []

    def reply(asked: Any) -> str:
        during.append(lazy.events.count("think") - lazy.events.count("thought"))
        time.sleep(0.005)
        if isinstance(asked, str) or 'original query: "q"' not in conversation(asked)[0]["content"]:
            return "FINAL(x)"
        return "FINAL(end)" if len(conversation(asked)) > 1 else repl(code)

    completion = RLM(lm=ScriptedLM(reply), max_depth=depth).completion("q", lazy)
    assert completion.answer == "end"
    assert len(during) > 2
    assert min(during) >= 1
    assert lazy.events.count("think") == lazy.events.count("thought")


def test_acompletion_does_not_block_the_loop_and_runs_at_once() -> None:
    barrier = threading.Barrier(8, timeout=60)  # passed only when eight runs are under way together

    def root(messages: Any) -> str:
        barrier.wait()
        return repl(f"print(1); FINAL(context + {conversation(messages)[0]['content'].split(chr(34))[1]!r})")

    async def main() -> tuple[list[str], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        rlm = RLM(lm=ScriptedLM(root))
        answers = await asyncio.gather(*(rlm.acompletion(f"q{i}", f"c{i} ") for i in range(8)))
        ticking.cancel()
        return [a.answer for a in answers], ticks

    open_files = len(os.listdir("/proc/self/fd"))
    answers, ticks = asyncio.run(main())
    assert answers == [f"c{i} q{i}" for i in range(8)]
    assert ticks > 1
    assert len(os.listdir("/proc/self/fd")) <= open_files


def test_a_cancelled_task_asks_nothing_more() -> None:
    entered, sub = threading.Event(), ScriptedLM(lambda prompt: time.sleep(0.01) or "x")  # type: ignore[func-returns-value]

    def root(messages: Any) -> str:
        entered.set()
        return repl("while True: llm_query('x')")

    async def main() -> None:
        task = asyncio.create_task(RLM(lm=ScriptedLM(root), sub_lm=sub).acompletion("q", "t"))
        await asyncio.to_thread(entered.wait, 60)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    deadline = time.monotonic() + 60
    while any(thread.name == "rlm-run" for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    calls = len(sub.calls)
    time.sleep(0.1)
    assert len(sub.calls) == calls


def test_a_cancelled_task_that_waits_ends_no_other_and_never_begins() -> None:
    began, go, asked = threading.Event(), threading.Event(), list[str]()

    def root(messages: Any) -> str:
        asked.append(messages[-1]["content"])
        began.set()
        go.wait(60)
        return repl("FINAL('of the first')")

    async def main() -> None:
        with RLM(lm=ScriptedLM(root), runner="local", persistent=True) as rlm:
            first = asyncio.create_task(rlm.acompletion("one?", "text"))
            await asyncio.to_thread(began.wait, 60)
            second = asyncio.create_task(rlm.acompletion("two?"))
            await asyncio.sleep(0.05)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            go.set()
            answered = await first
            assert (answered.answer, answered.finished) == ("of the first", True)
            assert rlm.completion("three?").answer == "of the first"
            assert len(asked) == 2

    asyncio.run(main())


@pytest.mark.parametrize("runner", ["local", "confined"])
def test_closing_ends_the_question_under_way_and_no_other_begins(runner: str) -> None:
    began, go, ended = threading.Event(), threading.Event(), list[Any]()

    def root(messages: Any) -> str:
        began.set()
        go.wait(60)
        return repl("FINAL(len(context))")

    session = RLM(lm=ScriptedLM(root), runner=runner).session("the text")
    asking = threading.Thread(target=lambda: ended.append(session.ask("q")))
    asking.start()
    began.wait(60)
    session.close()
    go.set()
    asking.join(60)
    assert [(completion.answer, completion.reason) for completion in ended] == [("", "cancelled")]
    with pytest.raises(InvalidArgument, match="closed: begin a new one"):
        session.ask("q")


def test_closing_as_a_question_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    session = RLM(lm=(lm := ScriptedLM([])), runner="local").session("the text")
    renew = session.gateway.renew
    monkeypatch.setattr(session.gateway, "renew", lambda usage: (session.close(), renew(usage)))
    with pytest.raises(InvalidArgument, match="closed: begin a new one"):
        session.ask("q")
    assert lm.calls == []
