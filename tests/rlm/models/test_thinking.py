"""Thinking is neither code nor answer, in whatever marks an endpoint sends it."""

from __future__ import annotations

import pytest

from rlm import RLM, ScriptedLM, Usage
from rlm.calls.gateway import Gateway
from rlm.models.lm import Reply
from rlm.models.thinking import split_thinking

DRAFT = "```python\nFINAL(41)\n```"
HARMONY = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}"

THOUGHT: dict[str, tuple[str, str, str]] = {
    "think": ("<think>\nFINAL(41)\nNo.\n</think>\nFINAL(42)", "FINAL(42)", "FINAL(41)\nNo."),
    "a draft in a block": (f"<think>\n{DRAFT}\n</think>\n\n```repl\na\n```", "```repl\na\n```", DRAFT),
    "a draft in a block that never closes": ("<think>\n```python\nx\n</think>\nFINAL(42)", "FINAL(42)", "```python\nx"),
    "a block behind it on its line": (
        "<think>41</think>```repl\ns = '''\n<think>\n'''\n```", "```repl\ns = '''\n<think>\n'''\n```", "41",
    ),
    "empty": ("<think>\n\n</think>\n\nFINAL(42)", "FINAL(42)", ""),
    "on one line": ("<think>41?</think>42", "42", "41?"),
    "upper case, attributes": ("<THINK mode='x'>41</Think> 42", "42", "41"),
    "thinking": ("<thinking>41</thinking>\n42", "42", "41"),
    "thought": ("<thought>41</thought>\n42", "42", "41"),
    "reasoning": ("<reasoning>41</reasoning>\n42", "42", "41"),
    "a prefix": ("<seed:think>41</seed:think>42", "42", "41"),
    "brackets": ("[THINK]41[/THINK]42", "42", "41"),
    "kimi": ("◁think▷41◁/think▷42", "42", "41"),
    "cohere": ("<|START_THINKING|>41<|END_THINKING|>42", "42", "41"),
    "open thoughts": ("<|begin_of_thought|>41<|end_of_thought|>\n42", "42", "41"),
    "gemma": ("<|channel>thought\n41\n<channel|>42", "42", "41"),
    "closed by another name": ("<think>\nFINAL(41)\n</thinking>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "cut": ("<think>\nFINAL(41)\n", "", "FINAL(41)"),
    "cut, behind words": ("I look.\n<think>\nFINAL(41)\n", "I look.\n", "FINAL(41)"),
    "the template wrote the opening": ("FINAL(41)\nNo.\n</think>\nFINAL(42)", "FINAL(42)", "FINAL(41)\nNo."),
    "the same, on one line": ("so 391.</think>391", "391", "so 391."),
    "the same, with a block": (f"{DRAFT}\nNo.\n</think>\nFINAL(42)", "FINAL(42)", f"{DRAFT}\nNo."),
    "the same, with a block that never closes": (
        "```python\nprint(1)\n\nNo.\n</think>\n```repl\nprint(2)\n```",
        "```repl\nprint(2)\n```",
        "```python\nprint(1)\n\nNo.",
    ),
    "nothing behind it": ("FINAL(41)\n</think>", "", "FINAL(41)"),
    "several": ("<think>a</think>\n```repl\nx\n```\n<think>b</think>\ny", "```repl\nx\n```\ny", "a\n\nb"),
    "several in a row": ("<think>a</think><think>b</think>42", "42", "a\n\nb"),
    "nested": ("<think>a <think>b</think> c</think>\n42", "42", "a <think>b\n\nc"),
    "behind words, on its own lines": (
        "Sure. <think>\nFINAL(41)\n</think>\nFINAL(42)", "FINAL(42)", "Sure. <think>\nFINAL(41)",
    ),
    "its end quoted in it": ("<think>`</think>` ends\nFINAL(41)\n</think>\n42", "42", "`</think>` ends\nFINAL(41)"),
    "its end in a string of a draft": (
        "<think>\nprint('</think>')\nNo\n</think>\nFINAL(42)", "FINAL(42)", "print('</think>')\nNo",
    ),
    "harmony": (HARMONY.format("FINAL(41)", "FINAL(42)") + "<|return|>", "FINAL(42)", "FINAL(41)"),
    "harmony, opened by the template": (HARMONY.format("x", "42").partition("<|message|>")[2], "42", "x"),
    "harmony, only analysis": ("<|channel|>analysis<|message|>FINAL(41)", "", "FINAL(41)"),
    "harmony, cut in its mark": ("<|channel|>analysis", "", ""),
    "harmony, a call of a tool": (
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>", "", "{}",
    ),
    "harmony, words before a tool": ("<|channel|>commentary<|message|>I look.<|end|>", "I look.", ""),
    "harmony, tokens left out": ("analysisWe say 41.assistantfinalFINAL(42)", "FINAL(42)", "We say 41."),
    "harmony, tokens left out, cut": ("analysisWe say 41", "", "We say 41"),
    "harmony, the beginning left out": ("We say it.assistantfinalParis", "Paris", "We say it."),
    "harmony behind tags": ('<think>a</think>assistantfinal{"y": 2}', '{"y": 2}', "a"),
    "harmony, a call of a tool named by the role": (
        "<|start|>assistant to=python<|channel|>commentary<|message|>FINAL(1)<|call|>", "", "FINAL(1)",
    ),
    "longcat": ("<longcat_think>\nFINAL(41)\n</longcat_think>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "longcat, cut": ("<longcat_think>\nFINAL(41)\n", "", "FINAL(41)"),
    "medgemma": ("<unused94>thought\nFINAL(41)\n<unused95>FINAL(42)", "FINAL(42)", "FINAL(41)"),
    "pipes": ("<|think|>\nFINAL(41)\n<|/think|>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "solar": ("<|think|>\nFINAL(41)\n<|end|><|begin|>assistant<|content|>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "a process": ("<thought_process>\nFINAL(41)\n</thought_process>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "a monologue": ("<inner_monologue>\nFINAL(41)\n</inner_monologue>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "a scratchpad": ("<scratchpad>\nFINAL(41)\n</scratchpad>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "spaces in a tag": ("< think >\nFINAL(41)\n</ think>\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "granite": ("Here is my thought process:\nFINAL(41)\nHere is my response:\nFINAL(42)", "FINAL(42)", "FINAL(41)"),
    "granite, cut": ("Here's my thought process:\nFINAL(41)\n", "", "FINAL(41)"),
    "apriel": ("FINAL(41)\n[BEGIN FINAL RESPONSE]\nFINAL(42)\n[END FINAL RESPONSE]", "FINAL(42)", "FINAL(41)"),
    "harmony, a message without a channel": ("<|start|>assistant<|message|>FINAL(42)<|return|>", "FINAL(42)", ""),
    "cohere, its response": (
        "<|START_THINKING|>41<|END_THINKING|><|START_RESPONSE|>FINAL(42)<|END_RESPONSE|>", "FINAL(42)", "41",
    ),
    "a box": ("<think>41</think>\n<|begin_of_box|>42<|end_of_box|>", "42", "41"),
    "a token at the end": ("42<|return|>", "42", ""),
    "another token at the end": ("```repl\nx\n```<|im_end|>", "```repl\nx\n```", ""),
    "a token of deepseek": ("42<｜end▁of▁sentence｜>", "42", ""),
    "an old token": ("42</s>", "42", ""),
    "nothing but a token": ("<|im_end|>\n", "", ""),
}  # fmt: skip

SPOKEN_OF = [
    "FINAL(The tags:\n<think> opens\n</think> closes)",
    "FINAL(The template is\n</think>\nand so on)",
    "<s>struck</s>",
    "</s>",
    "The token is </s>",
    "<no_think>\nFINAL(42)",
    "It says: Here is my thought process:\nFINAL(42)",
    "The log has [BEGIN FINAL RESPONSE] in it.",
    "Use `<think>draft</think>` as the tag.",
    "The <think> tag opens and </think> closes it.",
    "A thought ends with </think> in this format.",
    "<think>: opens a thought.",
    "```repl\nprint(context.count('</think>'))\n```",
    "```python\nat = context.find('<think>')\nprint(context[at:at + 9], '<|channel|>final<|message|>')\n```",
    '```repl\nx = """\n<think>\na\n</think>\n"""\nprint(x)\n```',
    '```repl\nx = """\n</think>\n"""\nprint(x)\n```',
    "It says:\n```text\n<think>\na\n</think>\nb\n```\nFINAL(ok)",
    "It says:\n```text\nb\n</think>\n```\nFINAL(ok)",
    "~~~python\nprint('a </think> b')\n~~~",
    'FINAL("</think>")',
    'repl\nprint(context.count("a </think> b"))\n```',
    "x = context.find('<think>')\nprint(x)",
    "```repl\nx = message.assistantfinal\n```",
    "The analysis is done. FINAL(analysis)",
    "analysisResult = context.count('x')\nprint(analysisResult)",
    "if a[think] < b:",
    "I print `assistantfinal` next.",
]


@pytest.mark.parametrize("name", THOUGHT)
def test_thinking_is_taken_out(name: str) -> None:
    text, said, thought = THOUGHT[name]
    assert split_thinking(text) == (said, thought)
    assert split_thinking(said) == (said, "")


@pytest.mark.parametrize("text", SPOKEN_OF)
def test_what_speaks_of_thinking_stays(text: str) -> None:
    assert split_thinking(text) == (text, "")


def test_thinking_of_the_endpoint_stands_before_that_of_the_text() -> None:
    lm = ScriptedLM([])
    lm.complete = lambda *_, **__: Reply("<think>b</think>42", 1, 1, "m", thinking="a")  # type: ignore[method-assign]
    reply = Gateway(Usage()).ask(lm, [{"role": "user", "content": "q"}])
    assert (reply.text, reply.thinking) == ("42", "a\n\nb")


def test_a_reply_of_thinking_alone_is_told_so() -> None:
    lm = ScriptedLM(["<think>FINAL(41)", "FINAL(42)"])
    assert RLM(lm=lm).completion("q", "text").answer == "42"
    assert "inside its thinking" in lm.calls[1][-2]["content"] + lm.calls[1][-1]["content"]
