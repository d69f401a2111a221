"""Replies that are assembled from parts in any order are parsed into the parts that assembled them."""

from __future__ import annotations

import os
import random

from rlm.models.thinking import split_thinking
from rlm.prompts.replies import parse_reply

REPLIES = int(os.environ.get("ASSEMBLED_REPLIES", "400"))

PROSE = [
    "I look first.", "Let me see (again).", "The `<think>` tag, or `FINAL(x)`, is spoken of here.",
    "- an item\n- another", "See https://x.y/z?a=(b)",
    "Then I call FINAL(x) at the end.", "Hmm :)", "A sum: 1 + 1 = 2", "Der Text (日本) 🙂 — so",
    "It costs < 5 > 3 [see 1].",
    "> quoted", "# A heading", "1. one\n2. two", "The tags <b> and </b> are bold.", "Why? Because f(x) = y.",
    "Step 3) is last", "a assistant final", "analysis: fine", "Turn to the end.", "the output: nothing",
]  # fmt: skip
CODE = [
    "print(1)", "x = context.find('a')\nprint(x)", "for i in range(3):\n    print(i)\n\nprint('done')", "FINAL(x)",
    'p = """\n```python\ninner\n```\n"""\nprint(p)', "print('</think>', '<think>')", "answer['ready'] = True",
    "x = '''\n</think>\n'''", "# FINAL(41)\nx = 1", "print(context.count('~~~'))", "if x:\n    y = {'a': (1, 2)}",
    "s = 'Turn 2/4: x'", "print('''\nREPL output:\n''')", "x = context[\n    1:2\n]", "print(f'{x} :)')", "y = '```'",
]  # fmt: skip
OTHER = [
    ("bash", "ls -l\necho 1"), ("json", '{"a": "FINAL(41)"}'), ("text", "<think>\na\n</think>"), ("text", "FINAL(41)"),
    ("text", "b\n</think>"), ("sql", "SELECT 1"), ("", "1 of it (all)"), ("html", "<code>x</code>"), ("js", "f(1)"),
]  # fmt: skip
FINALS = [
    ("42", "42"), ("It is 42 (probably)", "It is 42 (probably)"), ('"a ) b"', "a ) b"), ("'x'", "x"),
    ("The list:\n1) one\n2) two\n3) three", None), ("Use a) disk and b) net", None),
    ('{"a": "b)"}',) * 2, ("The tags:\n<think> opens\n</think> closes",) * 2, ("it's Peter's (old) dog",) * 2,
    ('"""a\n) b"""', "a\n) b"), ("happy :)",) * 2, ("東京（日本）",) * 2, ("Run:\n```bash\nls (x)\n```\nand see",) * 2,
    ("os.path.join",) * 2, ("a\n\nb",) * 2, ("[1, (2), 'x)']",) * 2,
]  # fmt: skip
THOUGHTS = [
    "No.", "FINAL(41)\nNo.", "```python\nprint(41)\n```\nNo, better:", "```repl\nFINAL(41)\n",
    "The `</think>` tag ends it.",
    "~~~\nx\n~~~", "SUBMIT(41)\n\n1) a\n2) b", "I should say FINAL(41) :(", "Turn 2/4: x\nOutput: 5", "def f(:\n  `",
]  # fmt: skip
MARKS = [
    ("<think>", "</think>"), ("<think>\n", "\n</think>"), ("<thinking>", "</thinking>"), 
    ("<thought>\n", "\n</thought>\n"),
    ("<reasoning a='b'>", "</reasoning>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"),
    ("<THINK>\n", "\n</Think>"),
    ("<|channel>thought\n", "\n<channel|>"),
]  # fmt: skip
TAGS = ["repl", "python", "py", "Python3", "{python}", "ipython", "repl title=1"]


class Assembled:
    """A reply, and what it holds."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.parts: list[str] = []
        self.blocks: list[str] = []
        self.finals: list[str | None] = []
        self.thoughts: list[str] = []
        opening = rng.randrange(6)
        if opening == 0:  # the chat template wrote the opening
            self.thoughts.append(thought := rng.choice([each for each in THOUGHTS if "`</think>`" not in each]))
            self.parts.append(f"{thought}\n</think>\n")
        for _ in range(rng.randint(1, 6)):
            getattr(self, rng.choice(["prose", "prose", "code", "other", "final", "thought"]))()
        if rng.randrange(10) == 0:
            self.thoughts.append(thought := rng.choice(THOUGHTS))
            self.parts.append(f"<think>\n{thought}")
        self.text = "\n\n".join(self.parts)
        if opening == 1 and not any("<|" in part for part in self.parts):
            self.thoughts.insert(0, thought := rng.choice(THOUGHTS))
            start = f"<|channel|>analysis<|message|>{thought}<|end|>"
            self.text = f"{start}<|start|>assistant<|channel|>final<|message|>{self.text}"

    def prose(self) -> None:
        self.parts.append(self.rng.choice(PROSE))

    def code(self) -> None:
        code, tag = self.rng.choice(CODE), self.rng.choice(TAGS)
        mark = self.rng.choice(["```", "```", "````", "~~~"])
        if mark in code and '"""' not in code:
            mark = "`````" if "~" in code else "~~~~"
        indent = self.rng.choice(["", "", "  "]) if "'''" not in code and '"""' not in code else ""
        self.parts.append("\n".join(indent + line for line in f"{mark}{tag}\n{code}\n{mark}".split("\n")))
        self.blocks.append(code)

    def other(self) -> None:
        tag, inside = self.rng.choice(OTHER)
        mark = self.rng.choice(["```", "~~~", "````"])
        self.parts.append(f"{mark}{tag}\n{inside}\n{mark}")

    def final(self) -> None:
        written, answer = self.rng.choice(FINALS)
        mark, behind = self.rng.choice(
            [("", ""), ("", " I hope this helps :)"), ("**", ""), ("", " (as said)"), ("", ".")]
        )
        self.parts.append(f"{mark}FINAL({written}){mark}{behind}")
        self.finals.append(answer)

    def thought(self) -> None:
        (opening, closing), thought = self.rng.choice(MARKS), self.rng.choice(THOUGHTS)
        self.parts.append(f"{opening}{thought}{closing}")
        self.thoughts.append(thought)


def test_a_reply_is_parsed_into_the_parts_that_assembled_it() -> None:
    """An answer may be sent back, where a parenthesis behind it leaves a doubt; it is never another one."""
    sent_back = 0
    for seed in range(REPLIES):
        made = Assembled(random.Random(seed))
        said, thought = split_thinking(made.text)
        parsed = parse_reply(said)
        held = ([block.code for block in parsed.blocks], thought)
        assert held == (made.blocks, "\n\n".join(each.strip() for each in made.thoughts)), (seed, made.text)
        answer = made.finals[0] if len(set(made.finals)) == 1 and not made.blocks else None
        final = parsed.final.text if parsed.final and not parsed.fault else None
        assert final in (answer, None), (seed, made.text)
        sent_back += final != answer
    assert sent_back <= REPLIES // 100
