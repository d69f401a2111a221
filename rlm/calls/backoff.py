"""Decide how long a failed model call waits before it is made again."""

from __future__ import annotations

from dataclasses import dataclass
from random import SystemRandom

from rlm.errors import LLMError, RateLimited

PATIENCE_SECONDS = 600.0  # the longest wait that an endpoint may demand of a run without a limit of time
# A separate generator: calls must not disturb the sequence of code that seeds the module `random`.
_random = SystemRandom()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with full jitter, so that the calls of a batch that failed together do not return together."""

    retries: int = 5  # tries after the first one
    first_seconds: float = 1.0  # the longest first wait; each later one may take twice as long
    most_seconds: float = 30.0  # the longest wait, unless the endpoint demands a longer one

    def wait(self, error: LLMError, tries: int, patience_seconds: float = PATIENCE_SECONDS) -> float | None:
        """The seconds to wait after `error`, before another try; None for no other try. `tries`: those made so far.
        `patience_seconds`: the longest wait that an endpoint may demand; a longer one ends the call with its error."""
        if not error.transient or tries > self.retries:
            return None
        own_seconds = _random.uniform(0, min(self.most_seconds, self.first_seconds * 2 ** (tries - 1)))
        if isinstance(error, RateLimited) and error.retry_after_seconds is not None:
            demanded = error.retry_after_seconds
            return None if demanded > patience_seconds else max(demanded, 0.0) + own_seconds / 4
        return own_seconds
