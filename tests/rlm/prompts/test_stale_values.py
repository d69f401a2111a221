"""Code that was not run, in the shapes of public reports: it runs, or the reply is sent back."""

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
    "It is in x.\nFINAL(x)", "Add 41 to x.\nFINAL(x)",
    "<code>\nx = x + 41\n</code>\nFINAL(x)", "```repl\nx = x + (\n```\nFINAL(x)", f"&lt;code&gt;\n{ADD}\n&lt;/code&gt;",
]  # fmt: skip


@pytest.mark.parametrize("reply", SHAPES)
def test_no_value_of_an_earlier_turn_is_the_answer(reply: str) -> None:
    lm = ScriptedLM(["```repl\nx = 1; d = [1]; print(x)\n```", reply, "FINAL(sent back)", "FINAL(sent back)"])
    assert RLM(lm=lm, runner="local").completion("q", "text").answer in ("42", "sent back")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("FINAL_VAR(x)", "1"), ("FINAL(x)", "1"), ("**FINAL(x)**", "1"), ("FINAL(x + 1)", "2"),
     ("FINAL(d[0])", "1"), ("FINAL(x = 5 is the setting)", "x = 5 is the setting"),
     ("The capital = Paris.\nFINAL(Paris)", "Paris"),
     ("f(x) = 3.\n\nFINAL(f(x) equals 3)", "f(x) equals 3"), ("FINAL(10,000)", "10,000"), ("FINAL(N/A)", "N/A")],
)  # fmt: skip
def test_words_and_names_beside_no_code_are_answers(reply: str, answer: str) -> None:
    lm = ScriptedLM(["```repl\nx = 1; d = [1]; print(x)\n```", reply])
    assert RLM(lm=lm, runner="local").completion("q", "text").answer == answer
