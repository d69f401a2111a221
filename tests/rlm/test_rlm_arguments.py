"""An argument of the wrong kind is an error before a model is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm import RLM, ScriptedLM


@pytest.mark.parametrize(
    ("query", "context", "error", "words"),
    [
        (["what?"], "text", TypeError, r"must be a str, not list.*completion\(query, context\)"),
        (None, "text", TypeError, "must be a str, not NoneType"),
        (" \n", "text", ValueError, "the question is empty"),
        (
            "x" * 100_001,
            "what?",
            ValueError,
            r"100,001 characters.*12,500 tokens.*completion\(query",
        ),
        ("what?", "s3://bucket/text", ValueError, r"address, not a text: give Monocontext.open\('s3://bucket/text'\)"),
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
    [({"model": ScriptedLM([])}, "model must be a name.*give lm="),
     ({"sub_model": ScriptedLM([])}, "sub_model must be a name.*give sub_lm="),
     ({"lm": ScriptedLM}, r"lm must be an object with complete\(messages\), not <class"),
     ({"sub_lm": print}, r"sub_lm must be an object with complete\(messages\)"),
     ({"custom_tools": [print]}, "custom_tools must be a dict.*not list")],
)  # fmt: skip
def test_an_option_of_the_wrong_kind_names_the_right_one(options: dict[str, object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        RLM(**options)  # type: ignore[arg-type]
