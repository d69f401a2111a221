"""Define what the tools reply: a text for models, and the same as fields for programs.

Annotations are real objects here, not strings: the output schemas are made of them.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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
class Text:
    """A reply that is text alone."""

    text: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Names; `after` is what goes on with a list that was cut."""

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
    head: str
    tail: str


@dataclass(frozen=True, slots=True)
class Slice:
    """Characters [start, stop) of a text that has so many; `next` where the part was cut."""

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
class Session:
    """A session of an agent."""

    id: str
    agent: str | None
    started: str | None
    turns: int
    title: str


@dataclass(frozen=True, slots=True)
class SessionList:
    """The sessions of a project; without a project the names of all. `after` goes on with a list that was cut."""

    project: str | None
    projects: list[str]
    sessions: list[Session]
    after: str | None


@dataclass(frozen=True, slots=True)
class MemoryReply:
    """The envelope of the memory's protocol."""

    success: bool
    output: Any
    error: str | None
    metadata: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model, what it rests on, and why it ended early where it did."""

    answer: str
    sources: list[str]
    unfinished: str | None
