"""One table of fences for the parser of replies and for the reader of hints, which may not import each other."""

from __future__ import annotations

import pytest

from monocontext.engine.hints.reply import CodeFinder
from monocontext.engine.hints.statements import BlockSource
from rlm.prompts.replies import parse_reply

TAGS = [
    "repl", "python", "PYTHON", "py", "python3", "py3", "ipython", "{python}", "{.python .cell}", "python3.11",
    "py:a.py",
    "python title=a.py", "tool_code", "",
]  # fmt: skip
CODE = "at = context.find('x')\nprint(context[at:at + 9])"
RUN = [
    *(f"I look:\n{mark}{tag}\n{CODE}\n{mark}\nand see" for tag in TAGS for mark in ("```", "~~~", "````", "~~~~~")),
    f"repl\n{CODE}\n```", f"python\n{CODE}\n```", f"python\n{CODE}", CODE, f"{CODE}\n```",
    f"1. look\n   ```repl\n   {CODE.replace(chr(10), chr(10) + '   ')}\n   ```",
]  # fmt: skip
DO_NOT = ["bash", "json", "text", "javascript", "python3-console", "replay", "pycon", "c", "sql", "pytb"]


class Heard:
    """Stands where the reader of hints is told of blocks."""

    def begin_block(self) -> None: ...
    def read_statement(self, source: str) -> None: ...
    def read_draft(self, source: str, latest: str) -> None: ...
    def end_block(self) -> None: ...


class Source(BlockSource):
    """Keeps the code that it is handed."""

    def __init__(self) -> None:
        super().__init__(Heard())
        self.blocks: list[str] = []

    def open(self) -> None:
        self.blocks.append("")
        super().open()

    def push(self, text: str) -> None:
        self.blocks[-1] += text
        super().push(text)


def hinted(reply: str, size: int) -> list[str]:
    source = Source()
    finder = CodeFinder(source, None)
    for at in range(0, len(reply), size):
        finder.push(reply[at : at + size])
    finder.end()
    return [block.rstrip("\n") for block in source.blocks if block.strip()]


@pytest.mark.parametrize("reply", RUN)
def test_what_runs_is_what_is_hinted(reply: str) -> None:
    assert [block.code for block in parse_reply(reply).blocks] == [CODE]
    assert [hinted(reply, size) for size in (1, 3, 10**6)] == [[CODE]] * 3


@pytest.mark.parametrize("mark", ["```", "~~~", "````"])
@pytest.mark.parametrize("tag", DO_NOT)
def test_other_languages_neither_run_nor_hint(tag: str, mark: str) -> None:
    reply = f"I look:\n{mark}{tag}\n{CODE}\n{mark}\nand see"
    assert parse_reply(reply).blocks == ()
    assert hinted(reply, 3) == []


@pytest.mark.parametrize(
    ("line", "blocks"),
    [
        ("```json", [CODE]),
        ("``` and so on", [CODE]),
        ("print(1) ```json", [f"{CODE}\nprint(1) "]),
        ("```repl", [CODE, "inside(x)"]),
    ],
)
def test_a_closing_fence_with_a_tag_opens_the_next_block(line: str, blocks: list[str]) -> None:
    reply = f"```repl\n{CODE}\n{line}\ninside(x)\n```\nafter(x)\n"
    assert [hinted(reply, size) for size in (1, 2, 3, 10**6)] == [blocks] * 4
