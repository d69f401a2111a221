"""The run as a whole: errors, concurrency, the classes callers use, what importing costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import repl

from rlm import RLM, RLM_REPL, Completion, LLMError, ScriptedLM, ScriptExhausted


def test_a_failing_root_ends_the_run(complete: Callable[..., Completion]) -> None:
    with pytest.raises(LLMError, match="endpoint down"):
        complete([repl("1"), LLMError("endpoint down")])
    with pytest.raises(ScriptExhausted, match="script of 1 replies has no reply number 2"):
        complete([repl("1")])


def test_rlm_repl_logs_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert RLM_REPL(enable_logging=True, lm=ScriptedLM([repl("1"), "FINAL(a)"])).completion("ctx", "q") == "a"
    shown = capsys.readouterr()
    assert "turn 1" in shown.err
    assert shown.out == ""


def test_scripted_lm_function_gets_prompt_or_messages() -> None:
    seen: list[Any] = []
    lm = ScriptedLM(lambda asked: seen.append(asked) or "FINAL(1)")
    lm.complete([{"role": "user", "content": "alone"}])
    RLM(lm=lm).completion("q", "text")
    assert seen[0] == "alone"
    assert [message["role"] for message in seen[1]] == ["system", *["user", "assistant"] * 2, "user"]
    with pytest.raises(TypeError, match="not one str"):
        ScriptedLM("one reply")


@pytest.mark.parametrize(
    ("query", "context", "error", "words"),
    [
        (["what?"], "text", TypeError, r"must be a str, not list.*completion\(query, context\)"),
        (None, "text", TypeError, "must be a str, not NoneType"),
        (" \n", "text", ValueError, "the question is empty"),
        ("x" * 100_001, "what?", ValueError, r"100,001 characters.*12,500 tokens.*completion\(query"),
        ("what?", "s3://bucket/text", ValueError, r"address, not a text: pass Monocontext.open\('s3://bucket/text'\)"),
        ("what?", __file__, ValueError, "the name of a file, not its text"),
    ],
)
def test_a_wrong_question_or_context_asks_no_model(
    query: object, context: str, error: type[Exception], words: str
) -> None:
    lm = ScriptedLM(["```repl\nFINAL(1)\n```"])
    with pytest.raises(error, match=words):
        RLM(lm=lm, runner="local", window_tokens=12_500).completion(query, context)  # type: ignore[arg-type]
    assert not lm.calls


def test_a_context_may_name_what_is_no_place() -> None:
    for context in ("https://example.org/", str(Path(__file__).parent), "no/such/file.txt", "s3://a and s3://b"):
        lm = ScriptedLM(["```repl\nprint(context)\n```", "```repl\nFINAL(len(context))\n```"])
        assert RLM(lm=lm, runner="local").completion("what is this?", context).answer == str(len(context))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"model": ScriptedLM([])}, "model must be a name.*pass lm="),
     ({"sub_model": ScriptedLM([])}, "sub_model must be a name.*pass sub_lm="),
     ({"lm": ScriptedLM}, r"lm must be an object with complete\(messages\), not <class"),
     ({"sub_lm": print}, r"sub_lm must be an object with complete\(messages\)"),
     ({"custom_tools": [print]}, "custom_tools must be a dict.*not list")],
)  # fmt: skip
def test_an_option_of_the_wrong_kind_names_the_right_one(options: dict[str, object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        RLM(**options)  # type: ignore[arg-type]
