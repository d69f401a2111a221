"""Where the parenthesis of an answer in text closes, as a table: text -> answer."""

from __future__ import annotations

import time

import pytest

from rlm.prompts.finals import find_final

CASES: dict[str, str | None] = {
    # --- Python first ---
    'FINAL( {"a": "b)"})': '{"a": "b)"}',
    'FINAL(\n{"a": "b)"})': '{"a": "b)"}',
    'FINAL({"a": "b)"}, sources=[(0, 5)])': '{"a": "b)"}',
    'SUBMIT(answer="a :) b")': "a :) b",
    "SUBMIT(a='x)', b=(1, 2))": "{'a': 'x)', 'b': (1, 2)}",
    'FINAL(f"a) {x}")': 'f"a) {x}"',
    'FINAL(r"a) \\d")': "a) \\d",
    'FINAL("one " "two)")': "one two)",
    'FINAL("a) b", sources=["x)"])': "a) b",
    'FINAL("""1) a\n2) b :)""")': "1) a\n2) b :)",
    'FINAL("He said \\"hi :)\\" (loudly)")': 'He said "hi :)" (loudly)',
    "FINAL(42) I hope this helps :)": "42",
    "FINAL(-0.5) (see above)": "-0.5",
    "FINAL(1, 2, 3)": "1, 2, 3",
    "FINAL(FINAL(42))": "FINAL(42)",
    "FINAL('a '\n 'b')": "a b",
    "FINAL(answer='a) b')": "a) b",
    "FINAL(answer == 42)": "answer == 42",
    "FINAL(“a) b”)": "a) b",
    # --- Python by accident ---
    "FINAL(\n- a (x)\n- b) y\n- c\n)": "- a (x)\n- b) y\n- c",
    "FINAL(Paris (France)\n)": "Paris (France)",
    # --- parentheses without a partner ---
    "FINAL(Intervals:\n[0, 1)\n[2, 3)\n)": "Intervals:\n[0, 1)\n[2, 3)",
    "FINAL(It is in [0, 1))\nSee (a).": "It is in [0, 1)",
    "FINAL(The pattern is \\) or \\()": "The pattern is \\) or \\(",
    "FINAL(see option b) of it)\nThis is (as I think) so.": "see option b) of it",
    "FINAL(see option b) of it\nand of c)": "see option b) of it\nand of c",
    # --- items of lists ---
    "FINAL(The list:\n1) one\n2) two\n3) three)": "The list:\n1) one\n2) two\n3) three",
    "FINAL(The list:\n\n1) one\n\n2) two)\n\nThanks (really)": "The list:\n\n1) one\n\n2) two",
    "FINAL(Use a) disk and b) net)": "Use a) disk and b) net",
    "FINAL(1) one\n2) two)": "1) one\n2) two",
    "FINAL(a) one b) two)": "a) one b) two",
    "FINAL(i) one ii) two iii) three)": "i) one ii) two iii) three",
    "FINAL(- a) one\n- b) two\n)": "- a) one\n- b) two",
    "FINAL(Step 1) boil. Step 2) drink.)": "Step 1) boil. Step 2) drink.",
    "FINAL(Options are a) or b))": "Options are a) or b)",
    "FINAL((a) one (b) two)": "(a) one (b) two",
    "FINAL(Choose plan b)": "Choose plan b",
    "FINAL(1)\n2) foo": "1",
    "FINAL(It is 42)\nI used steps 1) and 2)": "It is 42",
    # --- smileys and strays ---
    "FINAL(It is 42) I hope this helps :)": "It is 42",
    "FINAL(42 :)": "42 :",
    "FINAL(happy :))": "happy :)",
    "FINAL(sad :( )\nmore text": "sad :(",
    "FINAL(see step 3) and that)": "see step 3) and that",
    "FINAL(case a) echo;; esac)": "case a) echo;; esac",
    "FINAL(The answer is 42) (see above)": "The answer is 42",
    "FINAL(12) and FINAL(13)": "12",
    "FINAL(unclosed (see a\n\nmore text)": "unclosed (see a\n\nmore text",
    "FINAL(a :\nFINAL(42)": "42",
    "FINAL(42": None,
    "FINAL(a\n\nb)\n\nFINAL(Use a) this)": "a\n\nb",
    # --- taken back ---
    "FINAL(41)\n\nWait, that is wrong.\n\nFINAL(42)": "42",
    "FINAL(41) would be wrong: it counts the header.\nFINAL(42)": "42",
    "FINAL(40)\nNo, I miscounted.\nFINAL(41)\nActually:\nFINAL(42)": "42",
    "FINAL(42)\nWait for the next question.": "42",
    "FINAL(42)\nNow the next question.\nFINAL(43)": "42",
    # --- marks around it ---
    "**FINAL(42)**": "42",
    "`FINAL(42)`": "42",
    "`FINAL(x)` is how to end.": None,
    "**FINAL(x)** ends the run": None,
    "FINAL（東京（日本））": "東京（日本）",
    "FINAL(東京（日本）)": "東京（日本）",
    # --- words that look like code ---
    "FINAL(print(x) prints x)": "print(x) prints x",
    "FINAL(os.path.join)": "os.path.join",
    "FINAL(it's Bob's (old) dog) thanks": "it's Bob's (old) dog",
    "FINAL(Use this:\n```python\nprint((1)\n```\ndone) ok": "Use this:\n```python\nprint((1)\n```\ndone",
}


@pytest.mark.parametrize("text", CASES)
def test_an_answer_in_text(text: str) -> None:
    final = find_final(text)
    assert (final and final.text) == CASES[text]


def test_sources_stand_beside_a_dict() -> None:
    final = find_final('FINAL({"a": "b)"}, sources=[(0, 5), "q)"])')
    assert final is not None
    assert final.claims == ((0, 5), "q)")


@pytest.mark.parametrize(
    "text", ["FINAL(a) ", "FINAL(a :) ", "FINAL(x (", "FINAL(x 1) 2) ", "a) b) ", "FINAL(x\n1) y\n"]
)
def test_a_text_of_many_costs_little(text: str) -> None:
    started = time.process_time()
    find_final("FINAL(" + text * 5_000)
    assert time.process_time() - started < 5
