"""What a reply asks for, as a table: reply -> blocks (code, cut) and textual final (text, is_name)."""

from __future__ import annotations

import time

import pytest

from rlm.prompts.replies import CodeBlock, TextFinal, parse_reply

FENCE = "```"
CASES: dict[str, tuple[str, list[str], tuple[str, bool] | None]] = {
    # --- fences ---------------------------------------------------------------------------------------------------
    "one repl block": ("Look:\n```repl\nprint(1)\n```\nok", ["print(1)"], None),
    "python tag": ("```python\nprint(1)\n```", ["print(1)"], None),
    "upper-case tag": ("```REPL\nprint(1)\n```", ["print(1)"], None),
    "mixed-case python tag": ("```Python\nprint(1)\n```", ["print(1)"], None),
    "space before the tag": ("``` repl\nprint(1)\n```", ["print(1)"], None),
    "more words after the tag": ("```python title=a.py\nprint(1)\n```", ["print(1)"], None),
    "several blocks in order": ("```repl\na\n```\ntext\n```python\nb\n```\n```repl\nc\n```", ["a", "b", "c"], None),
    "CRLF": ("```repl\r\na = 1\r\nb = 2\r\n```\r\n", ["a = 1\nb = 2"], None),
    "CRLF inside a string": ('```repl\r\nx = """a\r\nb"""\r\n```', ['x = """a\nb"""'], None),
    "empty block followed by a second block": ("```repl\n```\n```repl\nprint(2)\n```", ["", "print(2)"], None),
    "blank block": ("```repl\n\n```", [""], None),
    "indented fence in a list item": (
        "1. look\n   ```repl\n   if 1:\n       a = 1\n   ```",
        ["if 1:\n    a = 1"],
        None,
    ),
    "fence behind a list marker": ("- ```repl\n  a = 1\n  ```", ["a = 1"], None),
    "indented fence, code at column 0": ("  ```repl\na = 1\n  ```", ["a = 1"], None),
    "tab-indented fence": ("\t```repl\n\ta = 1\n\t```", ["a = 1"], None),
    "fence at column 0, code indented evenly": ("```repl\n    a = 1\n    b = 2\n```", ["a = 1\nb = 2"], None),
    "string reaching to column 0 in an indented block": (
        "  ```repl\n  x = '''\nzero\n'''\n  ```",
        ["x = '''\nzero\n'''"],
        None,
    ),
    "longer fence": ("````repl\na = 1\n````", ["a = 1"], None),
    "closing fence longer than the opening": ("```repl\na = 1\n`````", ["a = 1"], None),
    "closing fence on the last code line": ("```repl\na = 1\nprint(a)```", ["a = 1\nprint(a)"], None),
    "closing fence on the last code line, then a block": ("```repl\na```\n```repl\nb```", ["a", "b"], None),
    "closing fence inside a triple-quoted string": (
        '```repl\nx = """\n```\ninside\n```\n"""\nprint(x)\n```\nafter',
        ['x = """\n```\ninside\n```\n"""\nprint(x)'],
        None,
    ),
    "whole fenced block inside a triple-quoted string": (
        "```repl\np = '''do\n```python\ncode\n```\ndone'''\n```\nthen\n```repl\nb\n```",
        ["p = '''do\n```python\ncode\n```\ndone'''", "b"],
        None,
    ),
    "string ending in a fence on its line": ('```repl\nx = """a\nb ```\nc"""\n```', ['x = """a\nb ```\nc"""'], None),
    "comment that ends with a fence": ("```repl\na = 1  # as in ```\nb = 2\n```", ["a = 1  # as in ```\nb = 2"], None),
    "closing fence behind a comment": ("```repl\na = 1  # done```\ntext (b", ["a = 1  # done"], None),
    "closing fence behind a comment, then a block": ("```repl\na # x```\n\n```repl\nb\n```", ["a # x", "b"], None),
    "syntax error ends at its first fence": ("```repl\na = (\n```\ntext\n```repl\nb\n```", ["a = (", "b"], None),
    "return outside a function is the runner's business": ("```repl\nreturn 1\n```", ["return 1"], None),
    "fence in a single-quoted string": ("```repl\nx = '```'\ny = 1\n```", ["x = '```'\ny = 1"], None),
    # --- unclosed -------------------------------------------------------------------------------------------------
    "reply ends without a closing fence": ("```repl\na = 1\nprint(a)", ["CUT a = 1\nprint(a)"], None),
    "reply ends in the closing fence": ("```repl\na = 1\n``", ["CUT a = 1"], None),
    "reply ends inside a string": ('```repl\na = """tex', ['CUT! a = """tex'], None),
    "reply ends inside a call": ("```repl\nprint(\n", ["CUT! print(\n"], None),
    "reply ends after a string with fences": (
        "```repl\nx = '''\n```\n'''\ny = 1",
        ["CUT x = '''\n```\n'''\ny = 1"],
        None,
    ),
    "second block is cut": ("```repl\na\n```\n```repl\nb", ["a", "CUT b"], None),
    "opening fence is the last line": ("text\n```repl", ["CUT "], None),
    # --- other languages never run ---------------------------------------------------------------------------------
    "other language": ("```bash\nrm -rf /\n```", [], None),
    "json": ('```json\n{"a": 1}\n```', [], None),
    "no language, and no code": ("```\nout of it\n```", [], None),
    "no language, beside words": ("I saw\n```\nx\n```\nFINAL(42)", [], ("42", False)),
    "other fences that name Python": (
        "".join(
            f"```{tag}\n{i}\n```\n"
            for i, tag in enumerate(
                ["py", "python3", "ipython", "{python}", "{.python .cell}", "Python3.11", "py:a.py", "tool_code"]
            )
        ),
        [*"01234567"],
        None,
    ),
    "tildes": ("~~~python\nFINAL(len(context))\n~~~", ["FINAL(len(context))"], None),
    "tildes around backticks": ("~~~repl\nx = '''\n```\n'''\n~~~", ["x = '''\n```\n'''"], None),
    "tildes, cut": ("~~~repl\na = 1\n~~", ["CUT a = 1"], None),
    "a tag of HTML": ("Look:\n<code>\nprint(1)\n</code>\nok", ["print(1)"], None),
    "a tag of HTML, on one line": ("<code>FINAL(len(context))</code>", ["FINAL(len(context))"], None),
    "a tag of HTML, no Python": ('<code class="language-sh">\nls = 1\n</code>', [], None),
    "a tag of HTML around a fence": ("<code>\n```python\na\n```\n</code>", ["a"], None),
    # --- code without a fence, or with half of one -----------------------------------------------------------------
    "no language": ("```\nprint(1)\n```", ["print(1)"], None),
    "no language, beside a block": ("```\nprint(1)\n```\n```repl\na\n```", ["a"], None),
    "no language, an answer": ("```\nFINAL(42)\n```", [], ("42", False)),
    "bare tag, closed": ("repl\nat = context.find('x')\nprint(at)\n```", ["at = context.find('x')\nprint(at)"], None),
    "bare tag within a fence": ("```\nrepl\nprint(1)\n```", ["print(1)"], None),
    "code, then a lone fence, then words": ("print(1)\n```\n\nThis prints.", ["print(1)"], None),
    "bare tag, open": ("python\nprint(1)", ["print(1)"], None),
    "bare tag, then a fence": ("repl\n```\nprint(1)\n```", ["print(1)"], None),
    "bare tag behind words": ("I look.\n\nrepl\nprint(1)\n```\nThen I see.", ["print(1)"], None),
    "bare tag in one backtick": ("`repl`\nprint(1)\n```", ["print(1)"], None),
    "bare tag, broken code": ("repl\nprint(1\n```", [], None),
    "code, then a lone fence": ("x = 1\nprint(x)\n```", ["x = 1\nprint(x)"], None),
    "code that answers": ("x = context.count('a')\nFINAL(x)", ["x = context.count('a')\nFINAL(x)"], None),
    "code, then an answer in words": (
        "x = context.count('a')\n\nFINAL(The count is x)",
        ["x = context.count('a')"],
        None,
    ),
    "a word that compiles": ("Paris", [], None),
    "a number": ("42", [], None),
    "a name with its country": ("Paris (France)", [], None),
    "a word before an answer": ("Done\nFINAL(42)", [], ("42", False)),
    "a block within an answer": (
        "FINAL(Run this:\n```python\nprint(1)\n```\nand wait)",
        [],
        ("Run this:\n```python\nprint(1)\n```\nand wait", False),
    ),
    # --- invented turns ----------------------------------------------------------------------------------------------
    "an invented turn": ("```repl\na\n```\nTurn 2/4: The output is 5.\n```repl\nFINAL(5)\n```", ["a"], None),
    "an invented output": ("```repl\na\n```\n\nOutput:\n```\n5\n```\n```repl\nFINAL(5)\n```", ["a"], None),
    "REPL output": ("repl\nprint(1)\n```\nREPL output:\n5\nFINAL(5)", ["print(1)"], None),
    "an invented turn behind an answer": ("FINAL(42)\nTurn 3/4: x\n```repl\nb\n```", [], ("42", False)),
    "the turn said again": ("Turn 2/4. I look.\n```repl\na\n```", ["a"], None),
    "an output in a string": (
        "```repl\nx = '''\nREPL output:\n'''\n```\n```repl\nb\n```",
        ["x = '''\nREPL output:\n'''", "b"],
        None,
    ),
    "tag that starts like ours": ("```python3-console\nx\n```\n```replay\ny\n```", [], None),
    "repl fence inside a text block": ("````text\n```repl\nx\n```\n````", [], None),
    "other language, then ours": ("```text\nout\n```\n```repl\na\n```", ["a"], None),
    "other language closed on its last line": ('```json\n{"a": 1}```\n```repl\na\n```', ["a"], None),
    "no fence at all, reply is plain code": ("print(len(context))", ["print(len(context))"], None),
    "inline code": ("Use ```repl print(1)``` or `FINAL(1)` later.", [], None),
    "empty reply": ("", [], None),
    # --- FINAL in text --------------------------------------------------------------------------------------------
    "final": ("FINAL(42)", [], ("42", False)),
    "final after prose": ("I am done.\n\nFINAL(The answer is 42)", [], ("The answer is 42", False)),
    "final with nested parentheses": ("FINAL(f(x) is (a (b)) c)", [], ("f(x) is (a (b)) c", False)),
    "final over several lines": ("FINAL(one\ntwo (2)\nthree)\nbye", [], ("one\ntwo (2)\nthree", False)),
    "final, quoted, with a lone parenthesis": ('FINAL("a ) b")', [], ("a ) b", False)),
    "final, quoted, with escapes": (r'FINAL("say \"hi\"\n:)")', [], ('say "hi"\n:)', False)),
    "final, triple-quoted": ('FINAL("""a\n) b""")', [], ("a\n) b", False)),
    "final with an apostrophe": ("FINAL(It's Peter's (old) dog)", [], ("It's Peter's (old) dog", False)),
    "final that starts with an apostrophe": ("FINAL('tis so)", [], ("'tis so", False)),
    "final that is an expression": ('FINAL("a" + b(1))', [], ('"a" + b(1)', False)),
    "final never closed": ("FINAL(sad :( )\nmore text", [], ("sad :(", False)),
    "final of None": ("FINAL(None)", [], ("None", False)),
    "final with text behind": ("FINAL(42) is my answer.", [], ("42", False)),
    "indented final": ("  FINAL(42)", [], ("42", False)),
    "final_var": ("FINAL_VAR(result)", [], ("result", True)),
    "final_var, quoted": ('FINAL_VAR("result")', [], ("result", True)),
    "submit": ("SUBMIT(42)", [], ("42", False)),
    "submit, quoted": ('SUBMIT("it (is)")', [], ("it (is)", False)),
    "submit with a keyword": ('SUBMIT(answer="Paris (France)")', [], ("Paris (France)", False)),
    "submit with keywords": ("SUBMIT(city='Paris', year=1900)", [], ("{'city': 'Paris', 'year': 1900}", False)),
    "submit that is prose": ("SUBMIT(the answer = is 42 (probably))", [], ("the answer = is 42 (probably)", False)),
    "submit of names": ("SUBMIT(answer=result)", [], ("answer=result", False)),
    "submit in the code of a block": ("```repl\nSUBMIT(a=1, b=(2))\n```", ["SUBMIT(a=1, b=(2))"], None),
    "submit in prose": ("Then I SUBMIT(x).", [], None),
    "final as a comment": ("# FINAL(42)", [], None),
    "final quoted in markdown": ("> FINAL(42)", [], None),
    "final twice": ("FINAL(1)\nFINAL(2)", [], ("1", False)),
    "final in inline code": ("I end with `FINAL(42)` now.", [], None),
    "final_var with spaces": ("FINAL_VAR ( result )", [], ("result", True)),
    "final with a brace and brackets": ("FINAL({'a': [1, (2)]})", [], ("{'a': [1, (2)]}", False)),
    "final with a parenthesis inside a string": (
        'FINAL({"a": "b)", "c": [1, (2)]}) done',
        [],
        ('{"a": "b)", "c": [1, (2)]}', False),
    ),
    "final, a list of sentences": ("FINAL(['a :(', 'b)'])", [], ("['a :(', 'b)']", False)),
    "final that only begins as a list": ("FINAL([1] (see :) )", [], ("[1] (see :)", False)),
    "final in prose": ("I will call FINAL(x) when ready.", [], None),
    "final in the middle of a line": ("Answer: FINAL(42)", [], None),
    "lower case": ("final(42)", [], None),
    "title case, the whole reply": ("\nFinal('it is (42)')\n", [], ("it is (42)", False)),
    "title case in a sentence": ("Final(ly) it is (42), said as\nFINAL(43)", [], ("43", False)),
    "title case before a sentence": ("Final(42) is what I would say.", [], None),
    "title case behind a sentence": ("It is 42.\nFinal(42)", [], None),
    "empty final": ("FINAL() is how to end.", [], None),
    "final without parentheses": ("FINAL 42", [], None),
    "final_variable is another word": ("FINAL_VARIABLE(x)\nFINALLY(y)", [], None),
    "final in a comment of a block": ("```repl\n# FINAL(42)\na\n```", ["# FINAL(42)\na"], None),
    "final in the code of a block": ("```repl\nFINAL(x)\n```", ["FINAL(x)"], None),
    "answer then code": ("FINAL(42)\n```repl\na\n```", ["a"], None),
    "code then answer": ("```repl\na\n```\nFINAL(42)", ["a"], None),
    "cut code then nothing": ("FINAL(1)\n```repl\na = (", ["CUT! a = ("], None),
    "final inside another language": ("```text\nFINAL(42)\n```", [], None),
    "final behind another language": ("```text\nout\n```\nFINAL(42)", [], ("42", False)),
    "a draft in tags": ("<analysis>\nFINAL(41)\n</analysis>\nFINAL(42)", [], ("42", False)),
    "two drafts, the second of code": (
        "I look.\n<plan>\nFINAL(40)\n</plan>\n<draft>\n```repl\nFINAL(41)\n```\n</draft>\n```repl\na\n```",
        ["a"],
        None,
    ),
    "a draft that a web page folds": (
        '<details type="reasoning" done="true">\n<summary>Thought</summary>\nFINAL(41)\n</details>\nFINAL(42)',
        [],
        ("42", False),
    ),
    "tags that were escaped": ("&lt;think&gt;\nFINAL(41)\n&lt;/think&gt;\nFINAL(42)", [], ("42", False)),
    "a draft with nothing behind": ("<plan>\n```repl\na\n```\n</plan>", ["a"], None),
    "tags of a draft in a block": ('```repl\nx = "<plan>"\ny = "</plan>"\n```', ['x = "<plan>"\ny = "</plan>"'], None),
    "a date in code": ("```repl\nFINAL(2024-10-12)\n```", ['FINAL("2024-10-12")'], None),
    "a number with commas in code": (
        "```repl\nFINAL(1,234, sources=[(0, 5)])\n```",
        ['FINAL("1,234", sources=[(0, 5)])'],
        None,
    ),
    "a sum in code": ("```repl\nFINAL(2024-10)\n```", ["FINAL(2024-10)"], None),
    "final with CRLF": ("done\r\nFINAL(42)\r\n", [], ("42", False)),
}


@pytest.mark.parametrize("name", CASES)
def test_reply(name: str) -> None:
    reply, codes, final = CASES[name]
    parsed = parse_reply(reply)
    shown = [f"{'CUT' if b.cut else ''}{'' if b.may_run else '!'}{' ' if b.cut else ''}{b.code}" for b in parsed.blocks]
    assert shown == codes
    assert parsed.final == (TextFinal(*final) if final else None)


def test_there_are_at_least_forty_cases() -> None:
    assert len(CASES) >= 40


def test_a_block_that_is_not_cut_runs_even_when_it_is_wrong() -> None:
    assert CodeBlock("a = (").may_run
    assert not CodeBlock("a = (", cut=True).may_run


def test_a_reply_of_broken_blocks_costs_little() -> None:
    reply = "```repl\nx = (\n```\n" * 150
    started = time.process_time()
    assert len(parse_reply(reply).blocks) == 150
    assert time.process_time() - started < 5


def test_a_long_line_of_spaces_costs_little() -> None:
    started = time.process_time()
    parse_reply(" " * 50_000 + "x")
    assert time.process_time() - started < 5


def test_invalid_escapes_in_code_warn_nobody(recwarn: pytest.WarningsRecorder) -> None:
    parse_reply("```repl\nre.findall('\\d', context)\n```")
    assert not recwarn.list


@pytest.mark.slow
def test_a_reply_that_repeats_itself_costs_little() -> None:
    """20,000 of them took minutes: each was looked for to the end of the reply."""
    started = time.process_time()
    assert parse_reply("FINAL(\n" * 20_000).final is None
    assert parse_reply("FINAL([)\n" * 2_000).final is not None
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (
            "repl\nprint(1\n```",
            "first line of your reply was `repl`; it must be ```repl. Its code has a mistake (line 1",
        ),
        ("```bash\nls\n```", "fenced as ```bash"),
        ("```\nx = (\n```", "no tag, and is no code (line 1"),
        ("```text\nFINAL(42)\n```", "stands in a block"),
        ("x = context.find('a'\nprint(x)", "no line ```repl before it"),
        ("The answer: FINAL(42)", "at the start of a line only"),
        ("I think that it is so.", ""),
        ('<tool_call>\n{"name": "python", "arguments": {"code": "print(1)"}}\n</tool_call>', "there are no tools"),
        ("<|python_tag|>print(1)", "there are no tools"),
        ("Let us look:```repl\nprint(1)\n```", "must begin a line"),
        ("```repl print(1) ```", "must begin a line"),
    ],
)
def test_what_did_not_count_is_told(reply: str, fault: str) -> None:
    parsed = parse_reply(reply)
    assert (parsed.blocks, parsed.final) == ((), None)
    assert fault in parsed.fault
    assert bool(fault) == bool(parsed.fault)


def test_a_reply_is_cut_where_it_invents_a_turn() -> None:
    assert parse_reply("```repl\na\n```\n\nTurn 2/4: x").own_text == "```repl\na\n```\n"
    assert parse_reply("a\r\nb").own_text == "a\nb"


@pytest.mark.parametrize(
    "shown",
    ["**Output**\n9", "### Output\n9", "Result:\n9", "Out[1]: 9", "<output>\n9\n</output>", "```output\n9\n```"],
)
def test_an_invented_output_ends_the_reply(shown: str) -> None:
    parsed = parse_reply(f"```repl\nprint(n)\n```\n{shown}\n```repl\nFINAL(9)\n```\n")
    assert [block.code for block in parsed.blocks] == ["print(n)"]


def test_words_behind_code_are_no_output() -> None:
    for words in ("Result: as above", "The output follows.", "Output it.", "```json\n{}\n```"):
        assert len(parse_reply(f"```repl\nprint(n)\n```\n{words}\n```repl\nFINAL(9)\n```\n").blocks) == 2


@pytest.mark.parametrize("unseen", ["\ufeff", "\u200b", "\u00a0"])
def test_characters_that_are_not_seen_hide_nothing(unseen: str) -> None:
    final = parse_reply(f"{unseen}FINAL(42)").final
    assert final
    assert final.text == "42"
