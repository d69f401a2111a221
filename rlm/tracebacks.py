"""A traceback as the model should see it: the lines of its own cells, none of ours."""

from __future__ import annotations

import traceback


def cell_traceback(exc: BaseException, is_cell: str) -> str:
    """The traceback of `exc` with only those frames whose file name starts with `is_cell`."""
    told = traceback.TracebackException.from_exception(exc)
    _strip(told, is_cell)
    return "".join(told.format() if told.stack else told.format_exception_only())


def _strip(told: traceback.TracebackException, is_cell: str) -> None:
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if frame.filename.startswith(is_cell)])
    for link in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if link is not None:
            _strip(link, is_cell)
    # A cause without a line of the cell is the inside of a library: its gist is in the message already.
    if told.__cause__ is not None and not told.__cause__.stack:
        told.__cause__, told.__suppress_context__ = None, True
    if told.__context__ is not None and not told.__context__.stack:
        told.__context__ = None
