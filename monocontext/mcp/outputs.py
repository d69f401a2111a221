"""Define the replies of the tools that do not read one text.

Annotations are real objects here, not strings: output schemas are made from them.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """A reply without further fields."""

    text: str


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
    """The sessions of a project, or without a project the names of all projects.

    `after` is the argument that continues a list that was cut.
    """

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
    """The answer of a model, its sources with their first words, the reason if it ended early, and its cost.

    Some clients show these fields to their model, and not the text of the reply.
    """

    answer: str
    sources: list[str]
    unfinished: str | None
    dollars: float | None
