"""Define the replies of the tools: a text for models, and the same as fields for programs.

Annotations are real objects here, not strings: the output schemas of MCP are made of them.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

D = TypeVar("D")


class Reply(str, Generic[D]):
    """The text of a reply, which also has the fields. `Reply[Slice]` as a return type gives a tool its schema."""

    data: D

    def __new__(cls, text: str, data: D) -> "Reply[D]":
        reply = super().__new__(cls, text)
        reply.data = data
        return reply


@dataclass(frozen=True, slots=True)
class Range:
    """Characters [start, stop) to go on with."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Listed:
    """Names; `after` continues a list that was cut."""

    names: list[str]
    after: str | None


@dataclass(frozen=True, slots=True)
class Info:
    """A text: its size, how it begins and ends."""

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
    """Characters [start, stop) of a text of `characters`; `next` continues a part that was cut."""

    text: str
    start: int
    stop: int
    characters: int
    next: Range | None


@dataclass(frozen=True, slots=True)
class Match:
    """Lines: `line` counts from 1 in the document, or in a text without documents. `offset` is the character of the
    whole text at which the match begins; null for words in a memory, where `document` is the key."""

    document: str | None
    line: int
    offset: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    """The results of a search; `next` continues it if it has not come to the end, and `note` says how far it came."""

    hits: list[Match]
    next: Range | None
    note: str


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document: characters [start, stop) of the whole text."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class DocumentList:
    """Documents in the order of the text; `after` goes on with a list that was cut."""

    documents: list[DocumentRow]
    after: str | None


@dataclass(frozen=True, slots=True)
class Outlined:
    """A description of a text out of a few places of it."""

    text: str
