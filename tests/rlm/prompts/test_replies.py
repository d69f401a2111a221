"""What a reply asks for, as tables: code that runs, answers in words, and what is sent back to the model."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from rlm.models.thinking import split_thinking
from rlm.prompts.replies import parse_reply
from rlm.prompts.written_calls import codes_of_json
from rlm.runners.syntax import compiles

ADD = "x = x + 41\nFINAL(x)"
JSON = '{"name": "python", "arguments": {"code": "x = x + 41\\nFINAL(x)"}}'
TAGS = ["REPL", "Python", " repl", "python title=a.py", "py", "python3", "ipython", "{python}", "{.python .cell}",
        "Python3.11", "py:a.py", "tool_code", ""]  # fmt: skip

RUNS: dict[str, list[str]] = {
    # --- fences ---
    **{f"I look:\n{mark}{tag}\n{ADD}\n{mark}\nand see": [ADD] for tag in TAGS for mark in ("```", "~~~", "````")},
    "```repl\na\n```\ntext\n```python\nb\n```\n```repl\nc\n```": ["a", "b", "c"],
    "```repl\r\nx = '''a\r\nb'''\r\n```": ["x = '''a\nb'''"],
    "```repl\n```\n```repl\nprint(2)\n```": ["", "print(2)"],
    "1. look\n   ```repl\n   if 1:\n       a = 1\n   ```": ["if 1:\n    a = 1"],
    "- ```repl\n  a = 1\n  ```": ["a = 1"],
    "  ```repl\na = 1\n  ```": ["a = 1"],
    "```repl\n    a = 1\n    b = 2\n```": ["a = 1\nb = 2"],
    "```repl\na = 1```\nok": ["a = 1"],
    "I look: ```repl\nprint(1)\n```": ["print(1)"],
    "```repl\na = 1\n```python\nb = 2\n```": ["a = 1", "b = 2"],
    '```repl\np = """\n```python\ninner\n```\n"""\nprint(p)\n```': ['p = """\n```python\ninner\n```\n"""\nprint(p)'],
    "~~~repl\nx = '''\n```\n'''\n~~~": ["x = '''\n```\n'''"],
    "```repl\na = 1  # as in ```\nb = 2\n```": ["a = 1  # as in ```\nb = 2"],
    "```repl\na = 1  # done```\ntext (b": ["a = 1  # done"],
    "```repl\na = (\n```\ntext\n```repl\nb\n```": ["a = (", "b"],
    "```text\nout\n```\n```repl\na\n```": ["a"],
    '```json\n{"a": 1}```\n```repl\na\n```': ["a"],
    "```\nprint(1)\n```\n```repl\na\n```": ["a"],
    "```\nFINAL(x)\n```": ["FINAL(x)"],
    "```\nrepl\nprint(1)\n```": ["print(1)"],
    # --- a mark of another kind behind the code ---
    **{f"```python\n{ADD}{end}": [ADD] for end in ("\n```<end_code>", "```<end_code>", "\n</code>", "\n<end_code>",
                                                   "\n```</code>", "\n```<|im_end|>", "\n``` </s>")},
    # --- cut ---
    "```repl\na = 1\nprint(a)": ["CUT a = 1\nprint(a)"],
    "```repl\na = 1\n``": ["CUT a = 1"],
    '```repl\na = """tex': ['CUT! a = """tex'],
    "FINAL(1)\n```repl\na = (": ["CUT! a = ("],
    "text\n```repl": ["CUT "],
    # --- code between other marks, or without any ---
    **{f"So:\n{one}\n{ADD}\n{other}": [ADD] for one, other in (
        ("<code>", "</code>"), ("<tool_code>", "</tool_code>"), ("<execute_python>", "</execute_python>"),
        ("[PYTHON]", "[/PYTHON]"), ("<|python_tag|>", "<|eom_id|>"), ("'''repl", "'''"), ("repl", "```"),
        ("`python`", "```"), ("<code>", "<end_code>"))},
    f"<code>\n{ADD}\n</code": [ADD],
    **{f"<code>\n{ADD}\n```{end}": [ADD] for end in ("<end_code>", "\n</code>", "\nObservation: 5", "`")},
    f"```python\n{ADD}\n</code></s>": [ADD],
    '<code>\np = """\n```\n"""\n</code>': ['p = """\n```\n"""'],
    f"<code>\n{ADD}": [f"CUT {ADD}"],
    "<code>FINAL(len(context))</code>": ["FINAL(len(context))"],
    "<code>\n```python\na\n```\n</code>": ["a"],
    "python\nprint(1)": ["print(1)"],
    "repl\n```\nprint(1)\n```": ["print(1)"],
    ADD: [ADD],
    "    y = 1\n    FINAL(y)": ["y = 1\nFINAL(y)"],
    **{f"```python{space}x = x + 41\nFINAL(x)\n```": [ADD] for space in (" ", "\u2028", " \u2029")},
    "```python title=a.py\nFINAL(x)\n```": ["FINAL(x)"], "```py x=42\nFINAL(str(x))\n```": ["x=42\nFINAL(str(x))"],
    "```py x=x+41\nFINAL(x)\n```": ["x=x+41\nFINAL(x)"] ,
    "```py x = (\n1)\nFINAL(x)\n```": ["x = (\n1)\nFINAL(x)"],
    f"{ADD}\n```\n\nThis adds.": [ADD],
    "print(len(context))": ["print(len(context))"],
    # --- calls ---
    **{call: [ADD] for call in (
        f'<invoke name="repl">\n<parameter name="code">\n{ADD}\n</parameter>\n</invoke>',
        f'I look.\n<x:function_calls>\n<x:invoke name="a">\n<x:parameter name="b">{ADD}</x:parameter>\n</x:invoke>',
        f"<tool_call>\n{JSON}\n</tool_call>", f"Now:<tool_call>{JSON}", f"[TOOL_CALLS][{JSON}]", JSON,
        f"```json\n{JSON}\n```",
        f"<tool_call>\n<function=python>\n<parameter=code>\n{ADD}\n</parameter>\n</function>\n</tool_call>",
        f"<tool_call>python\n<arg_key>code</arg_key>\n<arg_value>{ADD}</arg_value>\n</tool_call>",
        '<function=python>{"code": "x = x + 41\\nFINAL(x)"}</function>',
        '[TOOL_CALLS]python[ARGS]{"code": "x = x + 41\\nFINAL(x)"}',
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>python\n```json\n{JSON}\n```<｜tool▁call▁end｜>",
        f'<|tool_call_begin|>functions.python:0<|tool_call_argument_begin|>{JSON}<|tool_call_end|>',
        f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="a">\n<｜DSML｜parameter name="b" string="true">{ADD}'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", f"<|python_tag|>{JSON}<|eom_id|>",
        f"<|START_ACTION|>[{JSON}]<|END_ACTION|>", f"<invoke name='repl'>\n{ADD}\n</invoke>",
        f'{{"tool_calls": [{JSON}]}}'[15:-1],
        '{"type": "function", "function": {"name": "a", "arguments": "{\\"code\\": \\"x = x + 41\\\\nFINAL(x)\\"}"}}',
    )},
    f'<invoke name="a">\n<parameter name="b">y = 1</parameter>\n</invoke>\n<invoke name="a">\n<parameter name="b">{ADD}'
    "</parameter>\n</invoke>": ["y = 1", ADD],
    # --- a turn that the reply invents, and drafts ---
    **{f"```repl\nprint(n)\n```\n{shown}\n```repl\nFINAL(9)\n```": ["print(n)"] for shown in (
        "Turn 2/4: The output is 5.", "\nOutput:\n```\n5\n```", "REPL output:\n5", "**Output**\n9", "### Output\n9",
        "Result:\n9", "Out[1]: 9", "<output>\n9\n</output>", "```output\n9\n```")},
    **{f"```repl\nprint(n)\n```\n{words}\n```repl\nFINAL(9)\n```": ["print(n)", "FINAL(9)"] for words in (
        "Result: as above", "The output follows.", "Output it.", "```json\n{}\n```")},
    "Turn 2/4. I look.\n```repl\na\n```": ["a"],
    "<plan>\n```repl\nFINAL(41)\n```\n</plan>\n```repl\na\n```": ["a"],
    "<plan>\n```repl\na\n```\n</plan>": ["a"],
    '```repl\nx = "<plan>"\ny = "</plan>"\n```': ['x = "<plan>"\ny = "</plan>"'],
    # --- code, and answers beside it ---
    "FINAL(42)\n```repl\na\n```": ["a"],
    "```repl\na\n```\nFINAL(42)": ["a"],
    "```\ncount = len(context)\n```\nFINAL(count)": ["count = len(context)"],
    "FINAL(Run this:\n```python\nprint(1)\n```\nand wait)": ["print(1)"],
}  # fmt: skip
ANSWERS: dict[str, str] = {
    "FINAL(42)": "42",
    "I am done.\n\nFINAL(The answer is 42)": "The answer is 42",
    "FINAL(f(x) is (a (b)) c)": "f(x) is (a (b)) c",
    "FINAL(one\ntwo (2)\nthree)\nbye": "one\ntwo (2)\nthree",
    'FINAL("a ) b")': "a ) b",
    r'FINAL("say \"hi\"\n:)")': 'say "hi"\n:)',
    'FINAL("""a\n) b""")': "a\n) b",
    'FINAL("one " "two)")': "one two)",
    "FINAL(It's Peter's (old) dog) thanks": "It's Peter's (old) dog",
    "FINAL(42) is my answer, I hope this helps :)": "42",
    "FINAL(happy :))": "happy :)",
    "FINAL(sad :( )\nmore text": "sad :(",
    "FINAL(The answer is 42) (see above)": "The answer is 42",
    "FINAL(It is 42)\nI used steps 1) and 2)": "It is 42",
    "FINAL(Paris (France)\n)": "Paris (France)",
    "FINAL(東京（日本）)": "東京（日本）",
    "FINAL（東京（日本））": "東京（日本）",
    "  **FINAL(42)**": "42",
    "`FINAL(42)`": "42",
    "\ufeffFINAL(42)\r\n": "42",
    "Final('it is (42)')\n": "it is (42)",
    'FINAL({\'a\': [1, (2)], "b": "c)"}) done': '{\'a\': [1, (2)], "b": "c)"}',
    "FINAL(answer='a) b')": "a) b",
    "SUBMIT(city='Paris', year=1900)": "{'city': 'Paris', 'year': 1900}",
    "SUBMIT(the answer = is 42 (probably))": "the answer = is 42 (probably)",
    "FINAL_VAR ( result )": "result",
    'FINAL_VAR("result")': "result",
    "FINAL(None)": "None",
    "FINAL(42)\nFINAL(42)": "42",
    "FINAL(a :\nFINAL(42)": "42",
    "I saw\n```\nx\n```\nFINAL(42)": "42",
    "```text\nout\n```\nFINAL(42)": "42",
    "```python3-console\nx\n```\nFINAL(42)": "42",
    "FINAL(Run:\n```bash\nls (x)\n```\nand see)": "Run:\n```bash\nls (x)\n```\nand see",
    "In millions:\nRevenue = 42\nFINAL(42)": "42",
    "<plan>\nFINAL(41)\n</plan>\nFINAL(42)": "42",
    "FINAL(42)\nTurn 3/4: x\n```repl\nb\n```": "42",
}
SENT_BACK: dict[str, str] = {
    # --- code that was not run ---
    "I count.\n\ncount = len(context.split())\nFINAL(count)": "your code has no line ```repl",
    "I count.\n\ncount = len(context.split())\nFINAL_VAR(count)": "your code has no line ```repl",
    "x = context.count('a')\n\nFINAL(The count is x)": "your code has no line ```repl",
    ">>> four = len(context\nFINAL(four)": "your code has no line ```repl",
    "I print it.\nprint(len(context))\nFINAL(It is 5)": "your code has no line ```repl",
    "for line in context:\n  n += 1\nso FINAL comes\nFINAL(n)": "your code has no line ```repl",
    "x = context.find('a'\nprint(x)": "your code has no line ```repl before it and no ``` after it (line 1",
    "repl\nprint(1\n```": "your code has no line ```repl",
    "```bash\nls\n```": "fenced as ```bash",
    '<code class="language-sh">\nls = 1\n</code>': "your code has no line ```repl",
    "```\nx = (\n```": "is not code (line 1",
    "```text\nFINAL(42)\n```": "stands in a block",
    '<tool_call>\n{"name": "search", "arguments": {"query": "two words"}}\n</tool_call>': "there are no tools",
    "```repl print(1) ```": "must begin a line",
    "```repl\nFINAL(2024-10-12)\n```": 'FINAL("2024-10-12")',
    "```repl\nx = 1\n```\n```repl\nFINAL(10/12/2024, sources=[(0, 5)])\n```": 'FINAL("10/12/2024")',
    # --- answers that may be another ---
    "FINAL(1)\nFINAL(2)": "several answers",
    "FINAL(41) would be wrong: it counts the header.\nFINAL(42)": "several answers",
    "FINAL(41)\n\nWait, that is wrong. Let me recount.": "takes its answer back",
    "FINAL(The list:\n1) one\n2) two\n3) three)": "do not pair",
    "FINAL(see option b) of it\nand of c)": "do not pair",
    "FINAL(It is in [0, 1))\nSee (a).": "do not pair",
    "FINAL(Intervals:\n[0, 1)\n[2, 3)\n)": "do not pair",
    "FINAL(42": "do not pair",
    "The answer: FINAL(42)": "at the start of a line only",
    "`FINAL(x)` is how to end.": "at the start of a line only",
    "> FINAL(42)": "at the start of a line only",
    # --- nothing ---
    "I think that it is so.": "",
    "": "", "Paris": "", "42": "", "Paris (France)": "", "FINAL 42": "", "FINAL_VARIABLE(x)\nFINALLY(y)": "",
}  # fmt: skip


@pytest.mark.parametrize("reply", RUNS)
def test_code_runs(reply: str) -> None:
    parsed = parse_reply(reply)
    shown = [
        f"{'CUT' if b.cut else ''}{'!' if b.cut and not compiles(b.code) else ''}{' ' if b.cut else ''}{b.code}"
        for b in parsed.blocks
    ]
    assert (shown, parsed.final) == (RUNS[reply], None)


@pytest.mark.parametrize("reply", ANSWERS)
def test_an_answer_in_words(reply: str) -> None:
    parsed = parse_reply(reply)
    assert parsed.final
    assert (parsed.final.text, parsed.final.is_name, parsed.fault) == (ANSWERS[reply], "FINAL_VAR" in reply, "")


@pytest.mark.parametrize("reply", SENT_BACK)
def test_what_does_not_count_is_told(reply: str) -> None:
    parsed = parse_reply(reply)
    assert parsed.blocks == ()
    assert SENT_BACK[reply] in parsed.fault
    assert bool(parsed.fault) == bool(SENT_BACK[reply])
    assert parsed.fault or parsed.final is None


def test_sources_stand_beside_a_dict() -> None:
    final = parse_reply('FINAL({"a": "b)"}, sources=[(0, 5), "q)"])').final
    assert final
    assert (final.text, final.claims) == ('{"a": "b)"}', ((0, 5), "q)"))


def test_a_call_with_one_argument_is_code() -> None:
    assert list(codes_of_json('{"code": "print(1)"}')) == ["print(1)"]
    others = ("", "{", '{"q": "two words"}', '{"a": "x = 1", "b": "y = 2"}')
    assert [list(codes_of_json(other)) for other in others] == [[]] * 4


def test_a_reply_is_cut_where_it_invents_a_turn() -> None:
    assert parse_reply("```repl\na\n```\n\nTurn 2/4: x").own_text == "```repl\na\n```\n"
    assert parse_reply("a\r\nb").own_text == "a\nb"


def test_invalid_escapes_in_code_warn_nobody(recwarn: pytest.WarningsRecorder) -> None:
    parse_reply("```repl\nre.findall('\\d', context)\n```")
    assert not recwarn.list


@pytest.mark.parametrize(
    "part",
    ["court ", "a", " ", "`", "```\n", "```repl\nx = (\n```\n", "~~~python\n", "```repl\n</code>\n", "<", "<plan>\n",
     "<code>\nx\n", "<invoke name=x>\n", "<parameter name=x>", "{", "python\n", "FINAL(", "FINAL(\n", "FINAL(a) ",
     "FINAL(x\n1) y\n", "FINAL([)\n", "x(", "a , ", "(", "*", "- ", "print(1)\nno code\n", "x = (\n", "\n",
     "x <think>\n", "x <think> y ", "</think>", "<think>", "<|im_end|>\n", "</think>```\n"],
)  # fmt: skip
def test_a_long_reply_costs_linear_time(part: str) -> None:
    """Four times the text costs four times the CPU, where a quadratic step takes sixteen times."""
    for read, end in ((parse_reply, " x"), (split_thinking, "</think>")):
        short, long = ((part * length)[:length] + end for length in (1_000, 4_000))
        spent = ((cpu_seconds(read, short), cpu_seconds(read, long)) for _ in range(5))
        assert any(more < 8 * less + 0.002 for less, more in spent)  # the first try decides, unless it was disturbed


def cpu_seconds(read: Callable[[str], object], text: str) -> float:
    started = time.thread_time()
    read(text)
    return time.thread_time() - started
