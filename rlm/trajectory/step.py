"""Define a turn of the loop, as it is printed, recorded and passed to `on_step`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rlm.models.lm import Message, Reply
from rlm.runners.claims import Claim
from rlm.runners.runner import CellResult

Refusal = Literal["", "unseen", "to come"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One code block and the result of running it."""

    code: str
    result: CellResult
    io: dict[str, float] | None = None
    """What the cell read from storage: `gets`, `bytes`, `hits`, `ms` waited. None without lazy texts."""
    ranges: Sequence[Sequence[int]] | None = None
    """Character ranges [start, stop) that were read, also by searches. None if the context does not record them."""
    start_seconds: float = 0.0
    """Seconds from the beginning of the run to its start."""
    calls_seconds: float = 0.0
    """Seconds of its execution during which at least one sub-call was in progress."""
    ahead: dict[str, float] | None = None
    """The part of `io` that was read ahead: `gets`, `bytes`. None without lazy texts."""
    handed: Sequence[Sequence[int]] | None = None
    """Character ranges [start, stop) that its code received. None if the context does not record them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: a call of the root model, and the cells that its reply ran."""

    iteration: int
    """The number of the turn, from 1; a forced answer has the number after the last turn."""
    prompt: tuple[Message, ...]
    """All messages of the call."""
    reply: Reply
    cells: tuple[Cell, ...]
    """The blocks that ran, in order. Blocks after a final answer do not run."""
    final_answer: str | None
    """The answer that this turn gave; None if it gave none."""
    notice: str | None
    """A notice for the model, for example that it wrote no code, or that its answer was refused."""
    thinking_seconds: float
    """Seconds in which the root model replied."""
    seconds: float
    """Seconds of the whole turn."""
    reason: str | None = None
    """Why the run ended with this step: `answer`, `repetition`, or the keyword of a budget. None while it goes on."""
    start_seconds: float = 0.0
    """Seconds from the beginning of the run to its start."""
    compacted: int = 0
    """The number of messages of earlier turns that were shortened before this call."""
    ahead: dict[str, float] | None = None
    """What was read ahead while the root replied: `gets`, `bytes`. None without lazy texts."""
    claims: tuple[Claim, ...] = ()
    """The model's citations for its answer; not checked."""
    refusal: Refusal = ""
    """Why an answer in words does not count unless the model repeats it: no code has run (`unseen`), or the reply says
    that the answer is still to come (`to come`)."""
    repeats: int = 0
    """The number of turns in a row, up to this one, that repeated the reply and the output of the turn before."""
