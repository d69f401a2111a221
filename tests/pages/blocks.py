"""Take the fenced blocks out of a page of Markdown, each with its language, its line, and its mark."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCED = re.compile(
    r"(?:^[ ]*<!-- not run: (?P<why>[^\n]+?) -->\n)?^(?P<fence> *`{3,})(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=fence) *$",
    re.M | re.S,
)


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences."""

    language: str
    """The word behind the first fence; empty where there is none."""
    line: int
    """Number of the first line of its code in the page, from 1."""
    code: str
    not_run: str | None
    """Why it is not run, as the comment `<!-- not run: why -->` in the line above says."""


def blocks_of(page: str) -> list[Block]:
    return [
        Block(each["info"].strip(), page.count("\n", 0, each.start("code")) + 1, each["code"], each["why"])
        for each in _FENCED.finditer(page)
    ]
