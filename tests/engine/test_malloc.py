"""`keep_memory`: large blocks come back without a page fault, and only where it was asked for."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_FAULTS = """
import resource, sys
if sys.argv[1] == "kept":
    from monocontext import keep_memory
    assert keep_memory() is True
else:
    import monocontext.text
def turn():
    buffer = bytearray(50_000_000)
    buffer[:] = b"x" * len(buffer)
    return len(str(buffer, "ascii"))
for _ in range(3):
    turn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    turn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a matter of glibc")
def test_kept_memory_comes_without_page_faults() -> None:
    def faults(way: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", _FAULTS, way], capture_output=True, text=True, check=True, timeout=60
        )
        return int(done.stdout)

    assert faults("kept") < 2_000
    assert faults("given back") > 2_000, "nothing is kept unless it is asked for"
