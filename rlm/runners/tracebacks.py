"""Format tracebacks for the model: the lines of its own cells, none of ours."""

from __future__ import annotations

import traceback


def cell_traceback(exc: BaseException, is_cell: str) -> str:
    """The traceback of `exc` with only those frames whose file name starts with `is_cell`."""
    trace = traceback.TracebackException.from_exception(exc)
    _strip(trace, is_cell)
    return "".join(trace.format() if trace.stack else trace.format_exception_only())


def _strip(trace: traceback.TracebackException, is_cell: str) -> None:
    trace.stack = traceback.StackSummary.from_list(
        [frame for frame in trace.stack if frame.filename.startswith(is_cell)]
    )
    for link in (trace.__cause__, trace.__context__, *(trace.exceptions or ())):
        if link is not None:
            _strip(link, is_cell)
    # A cause without a line of the cell is the inside of a library: its gist is in the message already.
    if trace.__cause__ is not None and not trace.__cause__.stack:
        trace.__cause__, trace.__suppress_context__ = None, True
    if trace.__context__ is not None and not trace.__context__.stack:
        trace.__context__ = None
