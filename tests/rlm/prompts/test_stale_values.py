"""What a careful reader takes for the answer; where a reader would ask, or code was not run, it is sent back."""

from __future__ import annotations

import pytest

from rlm import RLM, ScriptedLM

ADD = "x = x + 41\nFINAL(x)"
SHAPES = [
    f"Now add.\n\n{ADD}", f"Now add. {ADD}", "`x = x + 41`\nFINAL(x)", "Do x = x + 41 and then\nFINAL(x)", f"> {ADD}",
    f'<pre><code class="language-python">\n{ADD}\n</code></pre>', f"<script>\n{ADD}\n</script>", f"Code:\n{ADD}",
    f"<action>\n{ADD}\n</action>", f"Action: python\nAction Input: {ADD}", f"```jupyter\n{ADD}\n```", f"- {ADD}",
    ">>> x = x + 41\n>>> FINAL(x)", "```bash\npython -c 'x = x + 41'\n```\nFINAL(x)", f"```\n{ADD}", f"``\n{ADD}\n``",
    "```pycon\n>>> x = x + 41\n```\nFINAL(x)", "```javascript\nlet x = x + 41;\n```\nFINAL(x)", f"repl: {ADD}",
    *(f"So:\n{code}\nFINAL({answer})" for code, answer in [
        ("x += 41", "x"), ("print(x := x + 41)", "x"), ("x.a = 5", "x"), ("d[0] = 42", "d"), ("d.append(42)", "d"),
        ("for x in range(43): pass", "x"), ("import x", "x"), ("del x", "x"), ("a = 1; x = 2", "x"),
        ("x: int = 42", "x"),
        ("x = (\n  x\n  + 41)", "x"), ("x = 42", "f'{x}'"), ("x = 42", "str(x)"), ("x = 42", "It is {x}"),
        ("x\u00a0=\u00a042", "x"), ("x ＝ 42", "x"), ("x <- 42", "x"), ("# x = 42", "x"),
        ("with a() as x:\n  pass", "x"),
    ]),
    "FINAL(x)\nx = x + 41", "FINAL(x)\n\nwhere\nx = x + 41", "So:\nx = 42\nFINAL_VAR(x)", "So:\nx = 42\nFINAL_VAR('x')",
    f'<invoke name="a"><parameter name="code">{ADD}</parameter><parameter name="seconds">5</parameter></invoke>',
    '{"name": "python", "arguments": {"code": "x = x + 41"}}\nFINAL(x)', "<code>\nx = x + (\nFINAL(x)\n</code",
    "It is in x.\nFINAL(x)", "The answer is 42.\nFINAL_VAR(x)",
    "Add 41 to x.\nFINAL(x)", "FINAL(f'{x}')\n```\nx = 42\n```",
    "<code>\nx = x + 41\n</code>\nFINAL(x)", "```repl\nx = x + (\n```\nFINAL(x)", f"&lt;code&gt;\n{ADD}\n&lt;/code&gt;",
]  # fmt: skip


@pytest.mark.parametrize("reply", SHAPES)
def test_no_value_of_an_earlier_turn_is_the_answer(reply: str) -> None:
    lm = ScriptedLM(["```repl\nx = 1; d = [1]; print(x)\n```", reply, "FINAL(sent back)", "FINAL(sent back)"])
    assert RLM(lm=lm, runner="local").completion("q", "text").answer in ("42", "sent back")


SEEN = "```repl\nresult = 'Paris'; rows = ['a', 'b']; count = 12; name = 'result'; print(count)\n```"
READ: dict[str, str | None] = {
    # --- words that are Python too ---
    **{f"FINAL({words})": words for words in (
        "count is 12", "n/a", "not found", "x-ray", "count of rows", "1, 2", "2024-01-02", "'It's 5 o'clock'", "42%",
        "See (1), (2) and (3)", "| a |\n|---|\n| (2) |", "\\(x\\) and $y$", "🎉", "unknown", "Alpha\n\nBeta")},
    **dict.fromkeys(("FINAL(result in rows)", "FINAL(not result)", "FINAL(name or result)", "FINAL(count + more)",
                     "FINAL('result')", "FINAL(rows[0], rows[1])", "FINAL(rows[0])",
                     "FINAL((result))", "FINAL(count + 1)", "FINAL([r for r in rows])",
                     "FINAL('{result}')", "FINAL(your answer here)")),
    # --- code, and names ---
    "FINAL(', '.join(rows))": "a, b", "FINAL('Total: %d' % count)": "Total: 12", "FINAL(name)": "result",
    "So:\nFINAL(', '.join(rows))": None, "FINAL(42)\nFINAL(', '.join(rows))": None,
    "FINAL_VAR(name)": "result", "FINAL_VAR(`name`)": "result", "FINAL_VAR(result, sources=[(0, 2)])": "Paris",
    "FINAL_VAR(result.upper())": None, "FINAL_VAR(result), which is Paris": None, "FINAL_VAR(The answer)": None,
    "So the result becomes Rome.\nFINAL_VAR('result')": None, "FINAL_VAR(result) and FINAL_VAR(count)": None,
    "FINAL_VAR(count)": "12", "FINAL(count)": "12", "**FINAL(count)**": "12", "FINAL(str(count))": "12",
    "FINAL(count = 5 is the setting)": "count = 5 is the setting", "FINAL_VAR(count)\nFINAL_VAR(count)": "12",
    "Here is the final answer:\n\nFINAL_VAR(count)": "12", "FINAL_VAR(count)\n\nThis is the answer.": "12",
    "The capital = Paris.\nFINAL(Paris)": "Paris", "f(x) = 3.\n\nFINAL(f(x) equals 3)": "f(x) equals 3",
    "FINAL(10,000)": "10,000", "FINAL(N/A)": "N/A",
    "I could not verify this. " * 40 + "It is Rome.\nFINAL(Rome)": "Rome",
    # --- an answer that is given, and one that is not ---
    "Based on the output, it is Rome.\n\n**FINAL(Rome)**\n\nLet me know if you need more!": "Rome",
    "I see that count = 12.\n\nFINAL(12)": "12", "Use `FINAL(x)` to answer.\nFINAL(Rome)": "Rome",
    "FINAL(12)\n\nThis is an estimate.": "12", "FINAL(12)\n\nI checked it twice.": "12",
    "When the code ran, it printed 12, so I will answer:\nFINAL(12)": "12", "I will answer now:\nFINAL(12)": "12",
    "When I counted, I saw 12:\nFINAL(12)": "12",
    **{f"FINAL(41){words}": None for words in (
        " or FINAL(42)", "\n\nActually, FINAL(42)", "\n\nHmm, let me check again.",
        "\n\nOn reflection this is not right.",
        "\n\nNo wait, it should be 42.", "\n\nBut I should verify this first.", "\n\nI will verify it next turn.",
        "\n\nCorrection: it is 42.", "? Not sure yet.")},
    **{f"{words}\nFINAL(41)": None for words in (
        "Once I know the number I will write:", "For example:", "Example:\n", "Draft:", "I could write",
        "Next step: if the count is 12, then", "The format is")},
    "<draft>\nFINAL(41)\n</draft>\nNow I check.": None, "<draft>\nFINAL(42)\n</draft>": "42",
    # --- calls, thinking, and what a reply invents ---
    "<think>\nI set count = 42.\n</think>\nFINAL(count)": None, "<think>\nFINAL(41)\n": None,
    "```repl\nprint('a')\n```\nUser: REPL output: a\nAssistant: FINAL(41)": None,
    "```tool_code\nprint(default_api.repl(code='FINAL(41)'))\n```": None,
    "execute_code('count = 42')\nFINAL(count)": None,
    "<|channel|>analysis<|message|>FINAL(41)<|end|><|start|>assistant<|channel|>final<|message|>FINAL(42)": "42",
    "```repl\nfor r in rows:\n    FINAL(r)\n```": "a", "```repl\nprint('FINAL(41)')\n```": None,
    "```repl\ncount = 42\n```\n```repl\n1/0\n```\n```repl\nFINAL(count)\n```": None,
    "```repl\nx = \"\"\"\n```repl\nFINAL(41)\n```\n\"\"\"\nFINAL(42)\n```": "42",
    "````markdown\n```repl\nFINAL(41)\n```\n````\n```repl\nFINAL(42)\n```": "42",
}  # fmt: skip


QUOTED = "```repl\nprint('It calls get_user(id) and db.load(key=1).'); rows = [1]\n```"


@pytest.mark.parametrize(
    ("seen", "reply", "answer"),
    [(QUOTED, "FINAL(get_user(id))", "get_user(id)"), (QUOTED, "**FINAL(db.load(key=1))**", "db.load(key=1)"),
     (QUOTED, "The call:\nFINAL(get_user(id))", "get_user(id)"), (QUOTED, "FINAL(load(key=1))", "load(key=1)"),
     (QUOTED, "FINAL(get_user(rows))", None), (QUOTED, "FINAL(find_user(id))", None),
     (QUOTED, "x = get_user(id)\nFINAL(x)", None), (QUOTED, "FINAL(as_tool(id))", "ran"),
     (QUOTED.replace("get_user", "as_tool"), "FINAL(as_tool(id))", "ran"),
     (QUOTED.replace("get_user(id)", "as_tool(nope)"), "FINAL(as_tool(nope))", None),
     (QUOTED.replace("db.load(key=1)", "sorted(rows)"), "FINAL(sorted(rows))", "[1]"),
     ("```repl\nx = get_user(id)\n```", "FINAL(get_user(id))", None),
     ("```repl\nFINAL(get_user(id))\n```", "FINAL(get_user(id))", None)],
)  # fmt: skip
def test_code_of_unknown_names_is_words_where_the_output_showed_it(seen: str, reply: str, answer: str | None) -> None:
    """It runs, which can only fail; of other such code nobody knows whether it was meant to run."""
    lm = ScriptedLM([seen, reply, "FINAL(sent back)", "FINAL(sent back)"])
    rlm = RLM(lm=lm, runner="local", custom_tools={"as_tool": lambda value: "ran"})
    assert rlm.completion("Is it get_user(id) or find_user(id)?", "text").answer == (answer or "sent back")


@pytest.mark.parametrize("reply", READ)
def test_what_a_careful_reader_takes(reply: str) -> None:
    lm = ScriptedLM([SEEN, reply, "FINAL(sent back)", "FINAL(sent back)"])
    assert RLM(lm=lm, runner="local").completion("q", "text").answer == (READ[reply] or "sent back")


def test_an_answer_that_is_only_announced_counts_when_the_model_insists() -> None:
    lm = ScriptedLM([SEEN, "As an example:\nFINAL(12)", "As an example:\nFINAL(12)", "FINAL(sent back)"])
    assert RLM(lm=lm, runner="local").completion("q", "text").answer == "12"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("```python\ncount = 42\n```\n\n```\nFINAL(count)\n```", "42"), ("```repl\ncount = 1/0\n```\nFINAL(count)", ""),
     ("```repl\n1/0\n```\nFINAL(42)", "42"), ("<think>\nI set count = 42.\n</think>\nFINAL(count)", ""),
     ("FINAL(41)\n\nNo wait, it is 42.", "FINAL(41)\n\nNo wait, it is 42."), ("FINAL_VAR(count)", "12"),
     ("FINAL(The list:\n1) one\n2) two)", "The list:\n1) one\n2) two"),
     ("```bash\nx = 2\n```\nFINAL(count)\n```repl\na = 1\n```", ""), ("FINAL(rows[0])\n\nRome", "Rome"),
     ("It is Rome.\n\nFINAL_VAR(result)", "It is Rome."), ("FINAL('Rome')\n```\nx = 'a'\n```", "Rome"),
     ("```bash\nx = 2\n```\nFINAL(count)\n```\na = 1\n```", ""),
     ("</tool_code>\nFINAL_VAR(result)", ""), ("Here is the answer:\nFINAL_VAR(result)", "Paris"),
     ("I could not verify this, but my best answer is:\n\nFINAL_VAR('result')", "Paris"), ("- FINAL(count)", "12"),
     ("Answer: FINAL_VAR(result)", "Paris"), ("The answer:\n```text\nFINAL_VAR(result)\n```", "Paris"),
     ("FINAL_VAR(result)\nFINAL_VAR(result)", "Paris"), ("Here it is:\nFINAL(rows[0])", "a"),
     ("```repl\nrows[0] = 'z'\n```\nFINAL(rows[0])", "z"),
     ("So the result becomes Rome:\nFINAL_VAR(result)", ""), ("Add 1: FINAL(count)", "Add 1: FINAL(count)"),
     ("The answer:\n```js\nlet count = 42\n```\nFINAL_VAR(count)", ""), ("It becomes:\nFINAL(rows[0])", ""),
     ("```repl\n1/0\n```\nIt is Rome.\nFINAL(count)", "It is Rome.")],
)  # fmt: skip
def test_a_forced_answer_is_no_value_of_before_either(reply: str, answer: str) -> None:
    assert RLM(lm=ScriptedLM([SEEN, reply]), runner="local", max_iterations=1).completion("q", "t").answer == answer
