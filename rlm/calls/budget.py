"""Limit the spending of a run, with all its sub-calls and child runs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run, with its sub-calls and child runs; None for no limit.

    They are checked before each call and after each turn. Calls in progress when a limit is reached still end and
    count, so tokens and dollars may exceed it by the cost of 16 calls; iterations and calls never do.

    Raises TypeError for a limit that is not a number, ValueError for a negative one.
    """

    iterations: int | None = 30
    """Turns of the root and of child runs together. Reaching it allows one more call, for a forced answer."""
    calls: int | None = None
    """Calls of models, root and sub-calls together; replies from the cache or a recording are free."""
    tokens: int | None = None
    """Input and output together."""
    dollars: float | None = None
    """By the price table. A model without a known price counts nothing, and a note of the run says so; code in a cell
    may not name such a model."""
    seconds: float | None = None
    """Wall clock of the run."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise TypeError(f"max_{field.name} must be a number or None, not {type(value).__name__}")
            if field.name == "iterations" and value < 1:
                raise ValueError(f"max_iterations must be at least 1, not {value}")
            if not value >= 0:
                raise ValueError(f"max_{field.name} must not be negative, not {value}")

    def less(self, *, calls: int, tokens: int, dollars: float, seconds: float) -> Budget:
        """A budget whose limits are lower by these amounts, but not below 0; what has no limit keeps none."""
        used = {"calls": calls, "tokens": tokens, "dollars": dollars, "seconds": seconds}
        limits = ((name, getattr(self, name), amount) for name, amount in used.items())
        return replace(self, **{name: max(0, limit - amount) for name, limit, amount in limits if limit is not None})


def describe_end(reason: str) -> str:
    """Why no more calls are made, in words: `max_calls is reached`, `the run was cancelled`."""
    if reason == "cancelled":
        return "the run was cancelled"
    return f"{reason} is reached" if reason.startswith("max_") else reason
