"""Define the result of a run, which `RLM.completion` returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm.calls.usage import Usage
from rlm.trajectory.source import Read, Source


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a run, why the run ended, what it cost and its record. `str(completion)` is the answer."""

    answer: str
    finished: bool
    """Whether the model decided to answer. False for an answer that was demanded, or is the best one at a limit."""
    reason: str
    """Why the run ended: `answer`; the limit that was reached, as `max_iterations`, `max_calls`, `max_tokens`,
    `max_dollars` or `max_seconds`; `refusal` if the model declined, `content_filter` if a filter of its provider did
    (`notes` says why); `repetition` if the model kept repeating itself; `cancelled`."""
    iterations: int
    """Turns taken, without the call for a forced answer."""
    usage: Usage
    """Calls, tokens and dollars per model, sub-calls and child runs included."""
    io: dict[str, float] | None
    """What reading from storage cost: `gets`, `bytes`, `hits`, and `ms` waited. None without lazy texts."""
    seconds: float
    """Wall-clock seconds of the run."""
    trajectory: list[dict[str, Any]]
    """The lines of the trajectory: one of metadata, then one per call of the root model."""
    trajectory_path: Path | None
    """The file of these lines, if there is one."""
    notes: tuple[str, ...] = ()
    """Sentences for the user, as on models without a known price, or on cells that printed something else on resume."""
    sources: tuple[Source, ...] = ()
    """The sources that the model named for its answer, `FINAL(x, sources=[...])`, without those that were not found."""
    reads: tuple[Read, ...] = ()
    """The first 200 ranges of a lazy text that code received, in order, such as slices and matches, but not the text
    that a search passed over. Empty for plain data."""

    def __str__(self) -> str:
        return self.answer

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values, without `trajectory`, `trajectory_path` and `reads`."""
        return {
            "answer": self.answer, "finished": self.finished, "reason": self.reason, "iterations": self.iterations,
            "seconds": round(self.seconds, 3), "usage": self.usage.to_dict(), "cost": self.cost, "io": self.io,
            "notes": list(self.notes), "sources": [source.to_dict() for source in self.sources],
        }  # fmt: skip

    @property
    def response(self) -> str:
        """The answer, under the name that rlms gives it."""
        return self.answer

    @property
    def cost(self) -> float | None:
        """The cost in dollars; None if the price of a used model is not known."""
        return self.usage.dollars

    @property
    def usage_summary(self) -> Usage:
        """The usage, under the name that rlms gives it."""
        return self.usage

    @property
    def execution_time(self) -> float:
        """The seconds, under the name that rlms gives them."""
        return self.seconds

    @property
    def root_model(self) -> str:
        """The name of the root model."""
        return str(self.trajectory[0]["root_model"])
