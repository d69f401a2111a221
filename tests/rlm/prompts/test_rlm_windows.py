"""The root's window: how tokens are estimated, how an endpoint's counts correct that, and what is shortened by it."""

from __future__ import annotations

from typing import Any

import pytest
from rlm_replies import repl

from rlm import RLM, LLMError, ScriptedLM
from rlm.errors import PromptTooLong
from rlm.models.lm import Message, Reply, estimate_text_tokens
from rlm.prompts.messages import NOTE, OUTPUT_SHARE, PROMPT_SHARE, ModelWindow, compact, fit_output

PROSE = "The quick brown fox jumps over the lazy dog and goes home again, as it does each day. " * 50
LOG = "2026-03-01T12:33:07.482Z 10.24.118.6 e2517 hit 7b977ec83513 age 70471 s\n" * 50


def turns(*contents: str) -> list[Message]:
    """A system prompt, a question, then replies and outputs by turns."""
    said = [("system", "s"), ("user", 'Answer the original query: "q"')]
    said += [("user" if i % 2 else "assistant", content) for i, content in enumerate(contents)]
    return [{"role": role, "content": content} for role, content in said]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (PROSE, 3.5, 4.5), ("def find(text, word):\n    return text.index(word)\n" * 50, 3.5, 4.5), (LOG, 1.2, 2.2),
        ("日本語の文章はここにあります。" * 50, 0.9, 1.1), ("한국어 문장은 여기에 있습니다 " * 50, 0.9, 1.5),
        ("Это предложение по-русски, оно короткое. " * 50, 1.8, 2.6), ("\ud83d" * 100, 0.9, 2.1),
    ],
)  # fmt: skip
def test_characters_of_a_token_by_script(text: str, least: float, most: float) -> None:
    assert least <= len(text) / estimate_text_tokens(text) <= most


BOTH = ("tokens", "window_tokens")


class Counting(ScriptedLM):
    """An endpoint that counts a token for each `per_token` characters, and refuses prompts above its window."""

    def __init__(self, script: Any, *, per_token: float, window: int, says: tuple[str, ...] = BOTH):
        super().__init__(script, model="counting")
        self.per_token, self.window, self.says = per_token, window, says
        self.window_tokens = window
        self.counted: list[int] = []
        self.refused = 0

    def complete(self, messages: Any, *, model: Any = None, on_delta: Any = None) -> Reply:
        tokens = int(sum(len(message["content"]) for message in messages) / self.per_token)
        if tokens > self.window:
            self.refused += 1
            counts = {name: {"tokens": tokens, "window_tokens": self.window}[name] for name in self.says}
            raise PromptTooLong(f"request ({tokens} tokens) exceeds the context size ({self.window} tokens)", **counts)
        self.counted.append(tokens)
        reply = super().complete(messages, model=model, on_delta=on_delta)
        return Reply(reply.text, tokens, 9, self.model)


@pytest.mark.parametrize("per_token", [0.7, 1.35, 4.0, 7.0])
def test_no_prompt_passes_the_window_as_the_endpoint_counts_it(per_token: float) -> None:
    """Outputs of 8,000 characters a turn, as in a log, with a window that holds a few of them."""
    window = int(60_000 / per_token)
    text = LOG * 3
    lm = Counting([*[repl(f"v{i} = {i}; print(context[:8000])") for i in range(12)], repl("FINAL(sum([v0, v5, v11]))")],
                  per_token=per_token, window=window)  # fmt: skip
    completion = RLM(lm=lm).completion("q", text)
    assert completion.answer == "16"
    assert lm.refused == 0, completion.notes
    assert max(lm.counted) > 0.4 * window, "nor is it shortened long before"
    assert sum(NOTE in message["content"] for message in lm.calls[-1]) == 1


@pytest.mark.parametrize("says", [BOTH, BOTH[:1], BOTH[1:], ()])
def test_a_prompt_that_is_too_long_is_shortened_and_asked_again_once_with_a_note(says: tuple[str, ...]) -> None:
    replies = [*[repl(f"v{i} = {i}; print({i}, 'word ' * 1500)") for i in range(5)], repl("FINAL(v0 + v4)")]
    lm = Counting(replies, per_token=4.0, window=6_000, says=says)
    completion = RLM(lm=lm, window_tokens=128_000).completion("q", "text")
    assert completion.answer == "4"
    assert lm.refused >= 1
    (note,) = completion.notes[: lm.refused][-1:]
    assert "exceeds the context size (6000 tokens): the call was repeated with a shorter history" in note
    assert any(line["compacted"] for line in completion.trajectory[1:])
    if "window_tokens" in says:
        assert lm.refused == 1, "the window is known from then on"


def test_what_is_too_long_even_then_is_one_line() -> None:
    lm = Counting([repl("print('word ' * 3000)")] * 9, per_token=0.5, window=7_000)
    with pytest.raises(LLMError, match=r"^request \(\d+ tokens\) exceeds the context size \(7000 tokens\)$"):
        RLM(lm=lm, window_tokens=128_000).completion("q" * 4_000, "text")
    refusal = ScriptedLM([repl("print('word ' * 3000)"), PromptTooLong("too long"), PromptTooLong("still too long")])
    with pytest.raises(PromptTooLong, match=r"^still too long$"):
        RLM(lm=refusal).completion("q", "text")


def test_without_compaction_the_refusal_is_the_error() -> None:
    lm = ScriptedLM([repl("print('word ' * 3000)"), PromptTooLong("too long"), "FINAL(1)"])
    with pytest.raises(PromptTooLong, match=r"^too long$"):
        RLM(lm=lm, compaction=False).completion("q", "text")


@pytest.mark.parametrize("scale", [1.0, 2.5])
@pytest.mark.parametrize("text", [PROSE * 9, LOG * 9, "日本語" * 9_000, "1" * 30_000])
def test_an_output_fills_at_most_a_quarter_of_the_window(text: str, scale: float) -> None:
    window = ModelWindow(8_000, scale)
    shown = fit_output(text, window)
    assert scale * estimate_text_tokens(shown) <= OUTPUT_SHARE * 8_000
    assert scale * estimate_text_tokens(shown) >= 0.7 * OUTPUT_SHARE * 8_000
    assert "characters omitted" in shown
    assert shown[:50] == text[:50]
    assert fit_output("short", window) == "short"


def test_newest_turns_stay_whole_where_they_fit_and_are_cut_last() -> None:
    prompt = turns("code 1", PROSE, "code 2", PROSE, "code 3", PROSE)
    out = compact(prompt, ModelWindow(int(3_000 / PROMPT_SHARE)))
    assert out != prompt
    assert out[-1] == prompt[-1]
    tight = compact(prompt, ModelWindow(int(700 / PROMPT_SHARE)))
    assert len(tight[-1]["content"]) < len(PROSE)
    assert tight[:2] == prompt[:2]
    few = compact(turns("code 1", PROSE, "code 2", PROSE, "code 3", PROSE * 3), ModelWindow(int(5_600 / PROMPT_SHARE)))
    assert [len(message["content"]) > 2_000 for message in few[3::2]] == [True, True, True] or few[-1] == prompt[-1]


@pytest.mark.parametrize(
    ("counts", "fits"),
    [({"tokens": 12_702, "window_tokens": 8_192}, "11,608"), ({}, "10,000"), ({"tokens": 9}, "10,000")],
)
def test_a_sub_call_that_is_too_long_says_what_fits(counts: dict[str, int], fits: str) -> None:
    sub = ScriptedLM([PromptTooLong("too long", **counts)])
    code = repl("try: llm_query('x' * 20_000)\nexcept LLMError as e: FINAL(str(e))")
    answer = RLM(lm=ScriptedLM([code]), sub_lm=sub).completion("q", "text").answer
    assert answer == f"too long; this prompt has 20,000 characters, and about {fits} fit"
