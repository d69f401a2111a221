"""Count the turns in which a root model repeats itself, and raise its temperature to end that.

A turn repeats the one before if its code and output are the same, whatever the words around the code: code that
advances, as `next(pages)` does, prints something else each time. A turn without code is compared by its words. A
repeated turn is left out of the history, since the model would copy it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rlm.models.lm import LM
from rlm.prompts.messages import CUT_AND_RUN
from rlm.trajectory.step import Cell, Step

MOST_REPEATS = 4
"""The number of repeated turns in a row that ends a run."""
_LEAST_TEMPERATURE = 0.7
"""The lowest temperature of the reply after a repetition."""
_STEP = 0.4
"""The increase of the temperature, which stays below or at 1 unless the caller set more."""


def count_repeats(previous: Step | None, text: str, cells: Sequence[Cell], notice: str | None) -> int:
    """The number of turns in a row that repeated the one before, including the turn with this reply and these cells."""
    if previous is None:
        return 0
    if cells or previous.cells:
        same = [_shown(cell) for cell in previous.cells] == [_shown(cell) for cell in cells]
    else:
        same = previous.reply.text.strip() == text.strip() and previous.notice == notice
    return previous.repeats + 1 if same else 0


def raise_temperature(lm: LM) -> LM:
    """The model with a higher temperature if its caller has set one, else unchanged: it may not accept any."""
    sampling, change = getattr(lm, "sampling", {}), getattr(lm, "with_sampling", None)
    given = sampling.get("temperature")
    if not callable(change) or not isinstance(given, (int, float)):
        return lm
    return cast(LM, change({"temperature": max(given, min(1.0, max(_LEAST_TEMPERATURE, given + _STEP)))}))


def _shown(cell: Cell) -> tuple[str, str, str]:
    return cell.code.strip(), cell.result.stdout.removesuffix(CUT_AND_RUN), cell.result.stderr
