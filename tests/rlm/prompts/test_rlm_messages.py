"""The messages of a run: roles alternate, what is the same for each context comes first, and none is untrue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import repl

from rlm import RLM, LLMError, ScriptedLM
from rlm.models.lm import Message
from rlm.prompts.notices import UNSEEN


def roles(call: list[Message]) -> list[str]:
    return [message["role"] for message in call]


def alternate(call: list[Message]) -> bool:
    wanted = ["system", *["user", "assistant"] * len(call)][: len(call)]
    return roles(call) == wanted and call[-1]["role"] == "user"


LOOK = repl("print(1)")
RUNS: list[list[Any]] = [
    [LOOK, "no code", LOOK, LOOK, repl("print(2)"), "FINAL(1)"],  # notice, repeated turn
    ["FINAL(1)", "FINAL(1)"],  # refused once
    ["", LOOK, "", "FINAL(1)"],  # empty replies
    [repl("1") + repl("2"), repl("# nothing"), "```repl\nprint('cut", "FINAL(1)"],
    [repl("FINAL(None)"), repl("1/0"), "FINAL(1)"],
]


@pytest.mark.parametrize("context", ["text", ["a"], {"a": 1}, None, 7])
@pytest.mark.parametrize("replies", RUNS)
def test_roles_alternate_strictly(context: object, replies: list[Any]) -> None:
    lm = ScriptedLM([*replies, "FINAL(1)"])
    RLM(lm=lm).completion("q", context)
    assert all(map(alternate, lm.calls))


def test_roles_alternate_in_a_forced_answer_and_over_questions_one_of_which_fails() -> None:
    lm = ScriptedLM([LOOK, LOOK, "It is 1."])
    RLM(lm=lm, max_iterations=2).completion("q", "text")
    assert alternate(lm.calls[-1])
    lm = ScriptedLM([LOOK, "FINAL(1)", LLMError("lost"), LOOK, LLMError("lost"), repl("FINAL(2)")])
    with RLM(lm=lm).session("text") as session:
        session.ask("first")
        for _ in range(2):
            with pytest.raises(LLMError):
                session.ask("next")
        session.ask("last")
    assert all(map(alternate, lm.calls))
    assert "The query before was broken off" in lm.calls[-1][-1]["content"]


@pytest.mark.parametrize(
    "nothing", ["I would search it.", repl("# find it"), "```repl\nprint('cut", repl("print('no python"), ""]
)
@pytest.mark.parametrize("context", ["text", None])
def test_an_output_is_spoken_of_only_where_code_has_run(nothing: str, context: object) -> None:
    lm = ScriptedLM([nothing, nothing + " ", LOOK, "FINAL(1)", "FINAL(1)"])
    RLM(lm=lm).completion("q", context)
    told = [call[-1]["content"] for call in lm.calls]
    assert ["the output above" in text for text in told[:4]] == [False, False, False, True]
    assert ["seen nothing of it yet" in text for text in told[:4]] == [context is not None] * 3 + [False]
    assert all("q" in text for text in told)


def test_an_answer_in_words_before_any_code_is_refused_once() -> None:
    lm = ScriptedLM(["FINAL(Service Desk)", "Let me think.", "FINAL(Service Desk)"])
    completion = RLM(lm=lm).completion("q", "text")
    assert (completion.answer, completion.reason, completion.iterations) == ("Service Desk", "answer", 3)
    assert [line.get("refusal") for line in completion.trajectory[1:]] == ["unseen", None, None]
    assert UNSEEN in lm.calls[1][-1]["content"]


@pytest.mark.parametrize("more", [{}, {"cut": True}, {"called": "python"}])
def test_an_answer_is_refused_once_whatever_else_its_notice_says(tmp_path: Path, more: dict[str, Any]) -> None:
    class Noticed(ScriptedLM):
        def complete(self, messages: Any, *, model: Any = None, on_delta: Any = None) -> Any:
            return replace(super().complete(messages, model=model), **more)

    said = "FINAL(1)\n" if more else "FINAL(1)\n\nTurn 2/30: Go on."
    assert RLM(lm=Noticed([said])).completion("q", "text").answer == "1"
    with pytest.raises(LLMError):
        RLM(lm=Noticed([said, LLMError("down")]), trajectory=tmp_path / "run.jsonl").completion("q", "text")
    completion = RLM.resume_run(tmp_path / "run.jsonl", lm=Noticed([said] * 9))
    assert (completion.answer, completion.iterations) == ("1", 2)


@pytest.mark.parametrize(
    ("replies", "context", "options"),
    [
        ([repl("FINAL(1)")], "text", {}), ([LOOK, "FINAL(1)"], "text", {}), (["FINAL(1)"], None, {}),
        (["FINAL(1)"], "", {}), (["FINAL(1)"], [], {}), (["FINAL(1)"], "text", {"max_iterations": 1}),
        (["FINAL(1)"], "text", {"max_calls": 1}),
    ],
)  # fmt: skip
def test_other_answers_are_taken_at_once(replies: list[str], context: object, options: dict[str, Any]) -> None:
    lm = ScriptedLM(replies)
    completion = RLM(lm=lm, **options).completion("q", context)
    assert (completion.answer, completion.finished, len(lm.calls)) == ("1", True, len(replies))


def test_a_refused_answer_stands_where_a_replay_has_no_reply_after_it() -> None:
    completion = RLM(lm=ScriptedLM(["FINAL(1, sources=['text'])"])).completion("q", "text")
    assert (completion.answer, completion.finished) == ("1", True)
    assert [source.text for source in completion.sources] == ["text"]


def test_code_of_an_earlier_question_has_run(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    lm = ScriptedLM([LOOK, "FINAL(1)", "FINAL(2)", "no code", LLMError("lost")])
    with RLM(lm=lm, trajectory=path).session("text") as session:
        assert [session.ask(query).answer for query in ("first", "second")] == ["1", "2"]
        with pytest.raises(LLMError):
            session.ask("third")
    resumed = ScriptedLM(["FINAL(3)"])
    assert RLM.resume_run(path, lm=resumed).answer == "3"
    assert "the output above" in resumed.calls[0][-1]["content"]
