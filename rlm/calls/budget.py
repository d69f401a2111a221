"""Limit the spending of a run, with all its sub-calls and child runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run, with its sub-calls and child runs; None for no limit.

    They are checked before each call and after each turn. Calls in progress when tokens or dollars reach their limit
    still count, so these may exceed it by the cost of 16 calls. Iterations and calls never exceed their limits.

    Raises TypeError for a limit that is not a number, ValueError for one that is too low or not whole.
    """

    iterations: int | None = 30
    """Turns of the root and of child runs together. Then the root gets one more call, which demands an answer."""
    calls: int | None = None
    """Calls of models: those of the root and sub-calls together. Replies from the cache or a recording do not count."""
    tokens: int | None = None
    """Input and output tokens together."""
    dollars: float | None = None
    """The cost. A model without a known price counts as free, and the run notes it; code may not ask for it."""
    seconds: float | None = None
    """Wall-clock seconds."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is None:
                continue
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise TypeError(f"max_{name} must be a number or None, not {type(value).__name__}")
            least = 1 if name == "iterations" else 0
            if not value >= least:
                raise ValueError(f"max_{name} must be at least {least}, not {value}")
            if name in ("iterations", "calls", "tokens") and value % 1:
                raise ValueError(f"max_{name} must be a whole number, not {value}")

    def reduced_by(self, *, calls: int, tokens: int, dollars: float, seconds: float) -> Budget:
        """A budget whose limits are lower by these amounts, but not below 0. A limit of None stays None."""
        used = {"calls": calls, "tokens": tokens, "dollars": dollars, "seconds": seconds}
        limits = {name: getattr(self, name) for name in used}
        return replace(self, **{key: max(0, limit - used[key]) for key, limit in limits.items() if limit is not None})


def describe_end(reason: str) -> str:
    """A clause for messages that says why no more calls are made, such as `max_calls is reached`."""
    if reason == "cancelled":
        return "the run was cancelled"
    return f"{reason} is reached" if reason.startswith("max_") else reason
