"""Replies that are no answers: cut, refused, empty, a call of a tool; and text that cannot be sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rlm_replies import repl as code

from rlm import RLM, LLMError, ReplyRefused
from rlm.models.lm import Message, Reply
from rlm.prompts.notices import CUT, CUT_AND_RUN, CUT_NOT_RUN, EMPTY


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.calls.gateway.time.sleep", lambda seconds: None)


class Ending:
    """A model that follows a list of replies and errors."""

    def __init__(self, *replies: str | Reply | BaseException, model: str = "m") -> None:
        self.replies = list(replies)
        self.model = model
        self.calls: list[list[Message]] = []

    def complete(self, messages: Sequence[Message], **_: Any) -> Reply:
        for message in messages:
            message["content"].encode()  # as a request is
        self.calls.append([dict(message) for message in messages])
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return said(reply) if isinstance(reply, str) else reply


def said(text: str, **ends: Any) -> Reply:
    return Reply(text, 10, 5, "m", **ends)


def refused(words: str = "it refused: no", reason: Any = "refusal", text: str = "") -> ReplyRefused:
    error = ReplyRefused(words, reason=reason)
    error.reply = said(text)
    return error


def run(root: Any, sub: Any = None, context: str = "text", **options: Any) -> Any:
    """`context`: an empty one may be answered in words at once."""
    return RLM(lm=root, sub_lm=sub, prices={"m": (1, 1)}, **options).completion("q", context)


@pytest.mark.parametrize(
    ("reply", "words"),
    [(said("half a lis", cut=True), "was cut by the limit of tokens after 10 characters: 'half a lis'"),
     (said("", cut=True, thinking="hm"), "was cut by the limit of tokens after 0 characters"),
     (said("", called="python"), "called the tool 'python'"),
     (said("Let me see.", called="python"), "called the tool 'python'"), (refused(), "it refused: no")],
)  # fmt: skip
def test_what_is_no_answer_is_an_error_in_the_cell(reply: Any, words: str, tmp_path: Path) -> None:
    cell = code("try:\n    FINAL(llm_query('x'))\nexcept LLMError as error:\n    FINAL(f'error: {error}')")
    sub = Ending(reply)
    done = run(Ending(cell), sub, trajectory=tmp_path / "run.jsonl")
    assert done.answer.startswith("error: ")
    assert words in done.answer
    assert "\n" not in done.answer
    assert len(sub.calls) == 1
    assert (done.usage.calls, done.usage.input_tokens) == (2, 20)  # it was paid for
    call = done.trajectory[1]["code_blocks"][0]["result"]["rlm_calls"][0]
    assert (call["response"], call["prompt_tokens"], words in call["error"]) == ("", 10, True)
    again = RLM(lm=Ending(), sub_lm=Ending(), prices={"m": (1, 1)}).resume(tmp_path / "run.jsonl", "text")
    assert (again.answer, again.usage.input_tokens, again.cost) == (done.answer, 20, done.cost)


@pytest.mark.parametrize(
    "reply",
    [None, "FINAL(1)", Reply(None, 1, 1, "m"), Reply(b"x", 1, 1, "m"), Reply("x", 1, 1, None)],  # type: ignore[arg-type]
)
def test_what_a_model_returns_that_is_no_reply_is_an_error(reply: Any) -> None:
    with pytest.raises(LLMError, match="not a Reply"):
        run(SimpleNamespace(complete=lambda *_, **__: reply))


@pytest.mark.parametrize("empty", [said(""), said(" \n"), said("\ufeff\u200b \0"), said("", thinking="hm")])
def test_an_empty_answer_is_asked_for_once_more(empty: Reply) -> None:
    cell = code("FINAL(llm_query('x'))")
    assert run(Ending(cell), sub := Ending(empty, "yes")).answer == "yes"
    assert len(sub.calls) == 2
    cell = code("try: llm_query('x')\nexcept LLMError as error: FINAL(str(error))")
    assert "it gave an empty answer" in run(Ending(cell), sub := Ending(*[empty] * 9)).answer
    assert len(sub.calls) == 2


def test_the_cache_keeps_no_half_answer(tmp_path: Path) -> None:
    cell = code("try: FINAL(llm_query('x'))\nexcept LLMError: FINAL('no')")
    assert run(Ending(cell), Ending(said("hal", cut=True)), sub_cache=tmp_path).answer == "no"
    assert run(Ending(cell), Ending("half"), sub_cache=tmp_path).answer == "half"


def test_a_child_whose_model_refuses_is_a_failed_call() -> None:
    cell = code("try: rlm_query('x', 'y')\nexcept LLMError as error: FINAL(str(error))")
    done = run(Ending(cell, refused("it refused: never")), max_depth=2)
    assert (done.answer, done.reason) == ("it refused: never", "answer")


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
def test_a_refusal_at_the_root_ends_the_run(reason: str, tmp_path: Path) -> None:
    root = Ending(code("answer['content'] = 'a draft'"), refused("it refused: no", reason, "I can"), "FINAL(1)")
    done = run(root, trajectory=tmp_path / "run.jsonl")
    assert (done.finished, done.reason, done.answer) == (False, reason, "a draft")
    assert "it refused: no" in done.notes
    assert (len(root.calls), done.usage.calls, done.iterations) == (2, 2, 2)
    assert RLM(lm=Ending()).resume(tmp_path / "run.jsonl", "text").reason == reason


def told(root: Ending) -> str:
    return root.calls[1][-1]["content"]


@pytest.mark.parametrize(
    ("first", "words", "not_words"),
    [(said("Let me think about", cut=True), CUT, "Nothing was run"),
     (said(code("print(1)") + "\nAnd then", cut=True), CUT, CUT_AND_RUN),
     (said("```repl\nprint(1)\n", cut=True), CUT_AND_RUN, CUT),
     (said("```repl\nprint((1\n", cut=True), CUT_NOT_RUN, CUT), (said(""), EMPTY, CUT),
     (said("", called="python"), "you called the tool python", CUT), (said("FINAL(...)", cut=True), CUT, "")],
)  # fmt: skip
def test_the_model_is_told_how_its_reply_ended(first: Reply, words: str, not_words: str, tmp_path: Path) -> None:
    root = Ending(first, "FINAL(done)")
    done = run(root, context="", trajectory=tmp_path / "run.jsonl")
    assert (done.answer, done.finished) == ("done", True)
    assert told(root).count(words.strip()) == 1
    assert not not_words or not_words.strip() not in told(root)
    line = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[1])
    assert (line.get("cut", False), line.get("called", "")) == (first.cut, first.called)


@pytest.mark.parametrize(
    ("text", "answer"),
    [("FINAL(42)\nFor the log says", "42"), ("I found it.\nFINAL('42')", "42"),
     ("FINAL(The list:\n1) one\n2) tw", "done"), ("FINAL(two things: a) disk and b) ne", "done"),
     ("FINAL(Paris is the ca", "done"), ("FINAL(The items are (a)\nand (b)", "done"),
     ("FINAL（第一（甲）\n第二（乙）", "done"),
     ("FINAL(see (a)\nand (b))", "see (a)\nand (b)")],
)  # fmt: skip
def test_an_answer_that_may_be_half_is_none(text: str, answer: str) -> None:
    assert run(Ending(said(text, cut=True), "FINAL(done)"), context="").answer == answer


def test_a_forced_answer_that_was_cut_says_so() -> None:
    done = run(Ending(code("x = 1"), said("The list is a, b and", cut=True)), max_iterations=1)
    assert (done.answer, done.reason) == ("The list is a, b and", "max_iterations")
    assert "the forced answer was cut by a token limit" in done.notes


@pytest.mark.parametrize(
    "error", [ValueError("no\nway"), KeyError("x"), ConnectionError("down"), RecursionError("deep")]
)
def test_whatever_an_lm_raises_is_an_llm_error(error: Exception) -> None:
    with pytest.raises(LLMError, match=rf"model 'm': {type(error).__name__}: ") as caught:
        run(Ending(error))
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is error
    cell = code("try: llm_query('x')\nexcept LLMError as error: FINAL(str(error))")
    assert type(error).__name__ in run(Ending(cell), Ending(error)).answer


def test_a_refused_field_is_in_the_notes_of_each_run(endpoint: Any) -> None:
    words = "Unsupported value: 'temperature' does not support 0 with this model."
    endpoint.reply = lambda body: (400, words) if "temperature" in body else "FINAL(1)"
    with RLM("m", base_url=endpoint.url, api_key="k", sampling={"temperature": 0}) as rlm:
        for _ in range(2):
            notes = [note for note in rlm.completion("q", "").notes if "temperature" in note]
            assert [note.partition(" refuses ")[2] for note in notes] == ["temperature: left out"]
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize("runner", ["local", "confined"])
def test_half_a_pair_reaches_no_request(tmp_path: Path, runner: str) -> None:
    first = code("import json\nprint(json.loads('\"cut \\\\ud83d\"'))\nprint(llm_query('half \\ud83d'))")
    root = Ending(first + "\n\ud83d", code("1 / len('\\udc00'[1:])\n# \ud83d"), code("FINAL('done')"))
    sub = Ending("sub \ud83d")
    path = tmp_path / "run.jsonl"
    with RLM(lm=root, sub_lm=sub, runner=runner, trajectory=path) as rlm:
        done = rlm.completion("which \ud83d?", "text")
    assert (done.answer, done.finished) == ("done", True)
    assert "which \\ud83d?" in root.calls[0][-1]["content"]
    assert "cut \\ud83d" in root.calls[1][-1]["content"]
    assert sub.calls[0][0]["content"] == "half \\ud83d"
    assert done.trajectory[1]["code_blocks"][0]["result"]["rlm_calls"][0]["prompt"] == "half \\ud83d"
    assert [line["prompt"] for line in done.trajectory[1:]] == root.calls
    again = RLM(lm=Ending(), sub_lm=Ending()).resume(path, "text")
    assert again.answer == "done"


def test_a_recorded_call_with_half_a_pair_is_not_paid_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(LLMError, match="down"):
        run(Ending(code("x = llm_query('half \\ud83d')"), LLMError("down")), Ending("yes"), trajectory=path)
    with RLM(lm=Ending(code("FINAL(x)")), sub_lm=(sub := Ending())) as rlm:
        assert rlm.resume(path, "text").answer == "yes"
    assert sub.calls == []


@pytest.mark.parametrize(
    ("thinking", "answer"),
    [("```python\nn = 'new'\n```", "new"), ("n.append('new')", "new"), ("n is what I want.", "old")],
)
def test_code_in_thinking_did_not_run_so_a_name_that_it_sets_is_not_looked_up(thinking: str, answer: str) -> None:
    root = Ending(code("n = 'old'\nprint(n)"), said("FINAL(n)", thinking=thinking), code("FINAL('new')"))
    assert run(root, runner="local").answer == answer
