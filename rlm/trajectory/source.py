"""A source: a place in the context that supports an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

_WORDS_CHARACTERS = 100
"""The longest line of a source in a list."""
NONE_RECORDED = "No sources were recorded for this answer."

_ANCHORS = (
    ("/-/blob/", "L", "-"),  # GitLab
    ("//bitbucket.org/", "lines-", ":"),
    ("/src/commit/", "L", "-L"),  # Gitea
    ("/blob/", "L", "-L"),  # GitHub
)
"""A part of a file's URL, and the text before its first and last line in an anchor of that site."""


@dataclass(frozen=True, slots=True)
class Source:
    """Characters of the context, half-open."""

    start: int
    stop: int
    lines: tuple[int, int] | None
    """The first and last line, from 1, counted within the document if there is one; None if unknown."""
    document: str | None
    """The name of the document; None if the context has none."""
    text: str
    """The text there; head and tail of a long one."""
    how: Literal["cited", "read"]
    """`cited`: the model cited it, and it was read back. `read`: a cell that made the answer read it."""
    generation: int | None = None
    """Generation of a context in storage."""
    sha256: str = ""
    """SHA-256 of the characters as UTF-8; empty if some were not read back."""

    url: str | None = None
    """The URL of these lines, if the document came from git or from a web page."""

    @property
    def place(self) -> str:
        """The document and first line, such as `src/a.py:12`; characters if the lines are unknown."""
        if self.lines is None:
            return f"{self.document or 'characters'}:{self.start}-{self.stop}"
        return f"{self.document or 'line'}:{self.lines[0]}"

    @property
    def reference(self) -> str:
        """The argument for `monocontext cite URL REFERENCE`, which checks whether the context still has this text."""
        generation = "" if self.generation is None else f"@{self.generation}"
        return f"{self.start}-{self.stop}{generation}" + (f"#{self.sha256[:16]}" if self.sha256 else "")

    def markdown(self) -> str:
        """The text as a block of Markdown under its place, which links to `url`."""
        place = f"`{self.place.replace('`', ' ')}`"
        link = f"[{place}](<{self.url}>)" if self.url else place
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", self.text)), default=0))
        return "\n".join([link, "", fence, self.text.strip("\n"), fence])

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self) | {"lines": None if self.lines is None else list(self.lines), "reference": self.reference}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Source:
        """The source for the fields that `to_dict` returned."""
        lines = row.get("lines")
        return cls(
            row["start"], row["stop"], None if lines is None else (lines[0], lines[1]), row.get("document"),
            row["text"], row["how"], row.get("generation"), row.get("sha256", ""), row.get("url"),
        )  # fmt: skip


def link_to(url: str, lines: tuple[int, int] | None) -> str:
    """The URL of a document with an anchor for its lines, in the form of GitHub, GitLab, Gitea or Bitbucket.

    Other sites, and unknown lines, get no anchor.
    """
    if lines is None or "#" in url:
        return url
    first, last = lines
    for part, mark, to in _ANCHORS:
        if part in url:
            return f"{url}#{mark}{first}" + (f"{to}{last}" if last > first else "")
    return url


def format_sources(sources: Sequence[Source]) -> str:
    """A line for each source: its place, how it was found, its reference, and its first words."""
    lines = [f"{each.place}  {each.how}  {each.reference}  {_first_words(each.text)}" for each in sources]
    return "\n".join(["Sources:", *lines]) if lines else NONE_RECORDED


def _first_words(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_CHARACTERS else f"{line[:_WORDS_CHARACTERS]}..."
