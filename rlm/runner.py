"""What the loop asks of a place where code runs, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rlm.subcalls import SubCall

DEFAULT_RUNNER = "subprocess"
"""Where code runs when nobody says where."""


@dataclass(frozen=True, slots=True)
class CellResult:
    """What running one code block gave."""

    stdout: str = ""
    """What it printed, cut, and the repr of its last expression."""
    stderr: str = ""
    """Tracebacks and warnings; empty when all went well."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The namespace after the cell: name -> repr, cut to about 200 characters."""
    calls: tuple[SubCall, ...] = ()
    """The sub-calls that it made, in the order of their ends."""
    final_answer: str | None = None
    """The answer, if the cell gave it."""
    execution_seconds: float = 0.0
    """Wall clock, sub-calls included."""


class Runner(Protocol):
    """One namespace that code blocks run in, one after another."""

    def run(self, code: str) -> CellResult:
        """Run one block. What its code raises comes back as text; only a real Ctrl-C is raised here."""
        ...

    def variable(self, name: str) -> str:
        """The text of a variable, for an answer. Raises AnswerRefused."""
        ...

    def close(self) -> None:
        """End what runs and free what is held."""
        ...
