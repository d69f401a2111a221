"""One turn of the loop, as it is shown, recorded and handed to `on_step`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm.lm import Message, Reply
from rlm.runner import CellResult


@dataclass(frozen=True, slots=True)
class Cell:
    """One code block and what running it gave."""

    code: str
    result: CellResult
    io: dict[str, float] | None = None
    """What it read from storage: gets, bytes, hits, ms waited. None where the context does not count."""
    ranges: Sequence[Sequence[int]] | None = None
    """Half-open character ranges that it read. None where the context does not say."""
    start_seconds: float = 0.0
    """On the clock of the run."""
    calls_seconds: float = 0.0
    """Of its execution, the time during which at least one sub-call was waited for."""
    ahead: dict[str, float] | None = None
    """What was read ahead meanwhile: gets, bytes. None where the context does not count."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the root model, and the code that it asked for."""

    iteration: int
    """From 1; a forced answer has the number after the last turn."""
    prompt: tuple[Message, ...]
    """All messages of the call, copied."""
    reply: Reply
    cells: tuple[Cell, ...]
    """The blocks that ran, in order; blocks behind a final answer are not among them."""
    final_answer: str | None
    notice: str | None
    """What else the model is told: it wrote no code, or its answer was refused."""
    thinking_seconds: float
    """Waiting for the root model."""
    seconds: float
    """The whole turn."""
    reason: str | None = None
    """Why the run ended with this step: `answer`, or the keyword of a budget. None while it goes on."""
    start_seconds: float = 0.0
    """On the clock of the run."""
    compacted: int = 0
    """Messages of earlier turns that were shortened before this call."""
    ahead: dict[str, float] | None = None
    """What was read ahead while the root was waited for: gets, bytes. None where the context does not count."""
