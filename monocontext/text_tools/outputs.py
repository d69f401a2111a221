"""Types of tool replies: a text for models, which has the same content as fields for programs.

MCP makes output schemas from annotations as objects, so this module does not import `annotations`.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

D = TypeVar("D")


class ToolReply(str, Generic[D]):
    """The text of a reply, with its fields in `data`. The return type `ToolReply[Slice]` gives a tool its schema."""

    data: D

    def __new__(cls, text: str, data: D) -> "ToolReply[D]":
        reply = super().__new__(cls, text)
        reply.data = data
        return reply


@dataclass(frozen=True, slots=True)
class Range:
    """The characters [start, stop) to continue with."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Text:
    """A reply without further fields."""

    text: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows, each of which begins with a name. `after` continues a list that was cut, and is null at the end."""

    rows: list[str]
    after: str | None


@dataclass(frozen=True, slots=True)
class Info:
    """The size of a text, its beginning and its end. `documents` is 0 for a text that is not divided."""

    context: str
    url: str
    generation: int
    characters: int
    lines: int
    documents: int
    head: str
    tail: str


@dataclass(frozen=True, slots=True)
class Slice:
    """Characters [start, stop) of a text of `characters`. `next` continues a part that was cut."""

    text: str
    start: int
    stop: int
    characters: int
    next: Range | None


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """A matching line or passage. `line` counts from 1 in the document, or in a text without documents.

    `offset` is the character of the whole text at which the match begins. In a memory it is null, and `document` is the
    key.
    """

    document: str | None
    line: int
    offset: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    """The results of a search. `note` says how far the search came; `next` continues it, and is null at the end."""

    hits: list[MatchedLine]
    next: Range | None
    note: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A text that was kept: its name, its size and how it begins."""

    name: str
    bytes: int
    lines: int
    head: str
