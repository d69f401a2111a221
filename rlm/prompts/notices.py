"""Word the notices to the root model about a reply that cannot be used as it is, and choose one. Does no I/O."""

from __future__ import annotations

from collections.abc import Sequence

from rlm.context.excerpt import shorten
from rlm.models.lm import Reply
from rlm.trajectory.step import Cell

UNSEEN = (
    "Not taken as the answer yet: no code has run, so you have seen nothing of `context`. Search it in a ```repl "
    "block; if the answer needs nothing from it, give it again."
)
"""For the first answer in words if no code has run."""
NO_CODE = (
    "Nothing was run: your reply has no block of Python between a line ```repl and a line ```. Write one; FINAL(value) "
    "in it gives the answer."
)
ONLY_THINKING = (
    "Nothing was run: your reply ended inside its thinking. Think less, and write a block between a line ```repl and a "
    "line ```."
)
INVENTED = (
    "Your reply went on to write the next turn itself. That part was left out: outputs come from the REPL alone. End "
    "your reply after a block."
)
SKIPPED = "The later blocks of your reply ({}) were not run: the one before them raised, or was refused."
FORCED = (
    "All {turns} turns are used; you will see no more output. Give your best answer now, as plain text, from what you "
    "have found so far, and say what is uncertain about it."
)
"""Opens the last call, after the last turn."""

CUT_AND_RUN = "[your reply was cut off before the closing fence; the block was complete and ran as it stood]\n"
"""Ends the output of a block that was cut and ran all the same."""
CUT_NOT_RUN = "Not run: your reply was cut off inside this block. Send it again, shorter or in parts.\n"
"""The error output of a block that was cut and did not run."""
CUT = (
    "Your reply was cut off by the limit of tokens; what was to follow is lost. Say less at once: shorter code, and no "
    "long thoughts before it."
)
EMPTY = "Nothing was run: your reply was empty. Write a ```repl block; FINAL(value) in it gives the answer."
_CALLED = (
    "Nothing was run: you called the tool {name}, and there are no tools. Write the code itself into a ```repl block."
)


def combine_notices(reply: Reply, cells: Sequence[Cell], notice: str | None) -> str | None:
    """The notice to send: that the reply was cut, empty or a tool call, and `notice` if that says more. None if there
    is nothing to say. A cut block needs no notice, since its output mentions the cut."""
    if reply.called and not cells:
        called = _CALLED.format(name=shorten(reply.called, 80))
        return called if notice in (None, NO_CODE, ONLY_THINKING) else f"{called}\n\n{notice}"
    is_mentioned = any(cell.result.stdout.endswith(CUT_AND_RUN) or cell.result.stderr == CUT_NOT_RUN for cell in cells)
    if reply.cut and not is_mentioned:
        return CUT if notice in (None, NO_CODE) else f"{CUT}\n\n{notice}"
    if notice == NO_CODE and not reply.text.strip():
        return EMPTY
    return notice
