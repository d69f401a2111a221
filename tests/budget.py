"""How much a property test tries: a little in `make test`, the same each time; much and at random in `make fuzz`."""

from __future__ import annotations

import os

FUZZ = float(os.environ.get("MONOCONTEXT_FUZZ", "0"))
"""How many times the number of examples that a test names; 0: a tenth of it."""


def examples(count: int) -> int:
    """How many of `count` examples, seeds or cases to try now; never under 8, or `count` if that is less."""
    return max(min(count, 8), round(count * (FUZZ or 0.1)))
