"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlm.usage import Usage


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a run, and how it came about. `str(completion)` is the answer."""

    answer: str
    finished: bool
    """True when the model gave the answer by itself, False when it was forced after the last turn."""
    reason: Literal["answer", "max_iterations"]
    """Why the run ended."""
    iterations: int
    """Turns taken, without the call for a forced answer."""
    usage: Usage
    """Calls and tokens per model, sub-calls included."""
    io: dict[str, float] | None
    """What the run read from storage: gets, bytes, hits, ms waited. None where the context does not count."""
    seconds: float
    """Wall clock."""
    trajectory: list[dict[str, Any]]
    """The lines of the trajectory: one of metadata, then one per call of the root model."""
    trajectory_path: Path | None
    """The file that holds them, if one was asked for."""

    def __str__(self) -> str:
        return self.answer
