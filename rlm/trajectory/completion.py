"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm.calls.usage import Usage
from rlm.trajectory.source import Source


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a run, with its reason, usage and record. `str(completion)` is the answer."""

    answer: str
    finished: bool
    """Whether the model gave the answer by itself. False if it was demanded, or is the best answer when a budget ran
    out."""
    reason: str
    """Why the run ended: `answer`; the spent budget: `max_iterations`, `max_calls`, `max_tokens`, `max_dollars` or
    `max_seconds`; `refusal` if the model declined, `content_filter` if a filter of its maker did (`notes` says why);
    `repetition` if the model kept repeating itself; `cancelled`."""
    iterations: int
    """Turns taken, without the call for a forced answer."""
    usage: Usage
    """Calls, tokens and dollars per model, sub-calls and child runs included."""
    io: dict[str, float] | None
    """The cost of reading from storage: gets, bytes, hits, ms waited. None if the context does not count."""
    seconds: float
    """Seconds on the wall clock."""
    trajectory: list[dict[str, Any]]
    """The lines of the trajectory: one of metadata, then one per call of the root model."""
    trajectory_path: Path | None
    """The file of these lines, if there is one."""
    notes: tuple[str, ...] = ()
    """Notes on the figures: models without a known price, cells that printed something else when replayed."""

    sources: tuple[Source, ...] = ()
    """The evidence of the answer: the model's confirmed citations, then the reads of its cells."""

    def __str__(self) -> str:
        return self.answer

    def _repr_html_(self) -> str:
        """For notebooks: the answer, its sources, the reason for the end of the run, and its costs."""
        from rlm.trajectory.card import draw

        usage, io = self.usage, self.io or {}
        facts = [
            f"{self.iterations:,} turns", f"{usage.calls:,} calls", f"{usage.input_tokens:,} tokens in",
            f"{usage.output_tokens:,} out", "cost not known" if usage.dollars is None else f"${usage.dollars:.4f}",
            f"{self.seconds:.1f} s", *(f"{io[name]:,.0f} {name}" for name in ("gets", "bytes") if name in io),
        ]  # fmt: skip
        return draw(self.answer, self.sources, [f"Ended by {self.reason}: {', '.join(facts)}", *self.notes])

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
        """Seconds, under the name that rlms gives them."""
        return self.seconds

    @property
    def root_model(self) -> str:
        """The name of the root model."""
        return str(self.trajectory[0]["root_model"])
