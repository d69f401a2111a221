"""Notice a root model that repeats itself, and get it out of that.

A turn repeats the one before it if both its code and the output are the same, whatever words surround it: code that
advances, as `next(pages)` does, prints something else each time. A turn without code is compared by its words. A
repeated turn leaves nothing in the history, since the model would copy it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rlm.models.lm import LM
from rlm.prompts.messages import CUT_AND_RUN
from rlm.trajectory.step import Cell, Step

MOST_REPEATS = 4
"""Repeated turns in a row that end a run."""
_WARM = 0.7
_MORE = 0.4


def count_repeats(previous: Step | None, text: str, cells: Sequence[Cell], notice: str | None) -> int:
    """How many turns in a row have repeated the one before them, with a turn of this reply, cells and notice."""
    if previous is None:
        return 0
    if cells or previous.cells:
        same = [_shown(cell) for cell in previous.cells] == [_shown(cell) for cell in cells]
    else:
        same = previous.reply.text.strip() == text.strip() and previous.notice == notice
    return previous.repeats + 1 if same else 0


def raise_temperature(lm: LM) -> LM:
    """The model with a higher temperature, if its caller set one: of another it is not known whether it takes any."""
    sampling, change = getattr(lm, "sampling", {}), getattr(lm, "with_sampling", None)
    given = sampling.get("temperature")
    if not callable(change) or not isinstance(given, (int, float)):
        return lm
    return cast(LM, change({"temperature": max(given, min(1.0, max(_WARM, given + _MORE)))}))


def _shown(cell: Cell) -> tuple[str, str, str]:
    return cell.code.strip(), cell.result.stdout.removesuffix(CUT_AND_RUN), cell.result.stderr
