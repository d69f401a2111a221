"""Decide how long to wait before a failed model call is made again."""

from __future__ import annotations

from dataclasses import dataclass
from random import SystemRandom

from rlm.errors import LLMError, RateLimited

PATIENCE_SECONDS = 600.0  # the longest wait that an endpoint may demand of a run without a limit of time
# A separate generator: calls must not disturb the sequence of code that seeds the module `random`.
_random = SystemRandom()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow exponentially, with full jitter, so that calls that failed together are not retried together."""

    retries: int = 5  # tries after the first one
    first_seconds: float = 1.0  # the longest first wait; each later one may take twice as long
    most_seconds: float = 30.0  # the longest wait, unless the endpoint demands a longer one

    def wait(self, error: LLMError, tries: int, patience_seconds: float = PATIENCE_SECONDS) -> float | None:
        """The seconds to wait before the next try; None if there should be none. `tries`: how many have failed, the
        last with `error`. `patience_seconds`: the longest wait that the endpoint may demand."""
        if not error.transient or tries > self.retries:
            return None
        jitter_seconds = _random.uniform(0, min(self.most_seconds, self.first_seconds * 2 ** (tries - 1)))
        if isinstance(error, RateLimited) and error.retry_after_seconds is not None:
            demanded_seconds = error.retry_after_seconds
            return None if demanded_seconds > patience_seconds else max(demanded_seconds, 0.0) + jitter_seconds / 4
        return jitter_seconds
