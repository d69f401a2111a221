"""Make the C library keep freed memory for the next large result, or give it back to the system."""

from __future__ import annotations

import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MOST_BYTES = 1 << 30
"""Blocks up to this size come from memory that the process keeps."""


def keep_memory() -> bool:
    """Make the C library keep freed blocks. Returns whether it accepted. This package never calls it itself.

    glibc returns blocks above about 100 KB to the kernel when they are freed, and gets them back as fresh pages of 4
    KiB, 2 us each on a virtual machine: 50 MB of buffers and as much of `str` cost 63 ms of CPU before a byte is
    copied. With this setting large slices take about half of the time with any client (docs/benchmarks.md).

    It costs memory: the process keeps the memory that it once used, and all threads allocate from one heap, to reuse
    blocks that others free. So the program decides, once, before it starts threads. Without glibc (macOS, Windows,
    musl) nothing happens.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Either threshold alone changes nothing; with one arena, a thread can reuse what another freed.
    settings = ((_M_MMAP_THRESHOLD, _MOST_BYTES), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_ARENA_MAX, 1))
    accepted = [mallopt(name, value) == 1 for name, value in settings]
    return all(accepted)


def give_back_memory() -> None:
    """Give freed memory back to the system, if the C library can (glibc). Takes a fraction of a millisecond."""
    if sys.platform != "linux" or sys.is_finalizing():  # then nothing can be imported any longer
        return
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
