"""Define the protocol of runners, and the result of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rlm.errors import RunnerUnavailable

if TYPE_CHECKING:
    from rlm.calls.records import SubCall
    from rlm.runners.claims import Claim

DEFAULT_RUNNER = "confined"  # `subprocess`, or `wasm` on a machine that cannot confine a process


class NothingConfines(RunnerUnavailable):
    """No mechanism that confines a process works on this machine."""


@dataclass(frozen=True, slots=True)
class CellResult:
    """The result of one code block."""

    stdout: str = ""  # printed text and the repr of the last expression, shortened
    stderr: str = ""  # tracebacks and warnings; empty when all went well
    variables: Mapping[str, str] = field(default_factory=dict)  # name -> repr after the cell, about 200 characters
    calls: tuple[SubCall, ...] = ()  # sub-calls, in the order in which they were made
    final_answer: str | None = None  # None if the cell gave no answer
    execution_seconds: float = 0.0  # wall clock, sub-calls included
    raised: bool = False  # whether the cell failed or its answer was refused: then no later block of its reply runs
    claims: tuple[Claim, ...] = ()  # the model's citations for the answer; not checked


AFTER_CLOSE = CellResult(stderr="Closed: this runner has been closed and runs no more code.\n", raised=True)
"""What `run` returns after `close`."""


class Runner(Protocol):
    """One namespace in which code blocks run, one after another."""

    def run(self, code: str) -> CellResult:
        """Run one block. An exception of its code is text in the result. Raises KeyboardInterrupt for a Ctrl-C of the
        user, and ChannelAbuse or RunnerUnavailable if the worker broke the protocol, or a new one cannot start."""

    def close(self) -> None:
        """End the code that is running, and free the namespace."""
