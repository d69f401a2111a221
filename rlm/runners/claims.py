"""Read the sources that a model claims for its answer: `FINAL(answer, sources=[(a, b), "quote"])`.

Only their form is checked here, not whether they support the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

Claim = tuple[int, int] | str | None  # characters [start, stop), a quote of the context, or None for anything else

MOST_CLAIMS = 100  # the most citations of one answer
MOST_QUOTE_CHARACTERS = 10_000  # the longest quote


def read_claims(sources: object) -> tuple[Claim, ...]:
    """The claims in the `sources` that a model's code passed. Never raises: an invalid claim becomes None."""
    if (single := _claim(sources)) is not None:
        return (single,)
    if not isinstance(sources, Iterable):
        return () if sources is None else (None,)
    claims: list[Claim] = []
    try:
        for source in islice(sources, MOST_CLAIMS):
            claims.append(_claim(source))
    except Exception:  # the model's own iterator
        claims.append(None)
    return tuple(claims)


def check_claims(value: object) -> tuple[Claim, ...]:
    """The claims that a worker sent, None for an invalid one. Raises ValueError unless it is a list of at most 100."""
    if not isinstance(value, list) or len(value) > MOST_CLAIMS:
        actual = len(value) if isinstance(value, list) else f"a {type(value).__name__}"
        raise ValueError(f"expected a list of at most {MOST_CLAIMS} claims, not {actual}")
    return tuple(_claim(item) for item in value)


def _claim(value: Any) -> Claim:
    match value:
        case str() if len(value.strip()) > 0 and len(value) <= MOST_QUOTE_CHARACTERS:
            return str(value)
        case [int(start), int(stop)] if bool not in (type(start), type(stop)) and 0 <= start < stop < 2**62:
            return int(start), int(stop)
    return None
