"""Give freed memory back to the system."""

from __future__ import annotations

import sys


def give_back_memory() -> None:
    """Give freed memory back to the system, if the C library can (glibc). Takes a fraction of a millisecond."""
    if sys.platform != "linux" or sys.is_finalizing():  # then nothing can be imported any longer
        return
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
