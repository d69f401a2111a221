"""`keep_memory`: large blocks come back without a page fault, and only where it was asked for."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

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


_CLOSED = """
import random, sys
from monocontext import Monocontext, publish
publish((random.Random(number).randbytes(1 << 20).hex() + "\\n" for number in range(40)), sys.argv[1], filters=False)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

context = Monocontext.open(sys.argv[1])
assert context.count("x") == 0
used = resident()
context.close()
print(used - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a matter of glibc")
def test_what_a_closed_text_took_is_given_back(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CLOSED, str(tmp_path / "text")], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) > 60 << 20


_AT_THE_END = """
import sys
from monocontext import Monocontext, publish
from monocontext.engine.fetch import fetcher
fetcher.GIVEN_BACK_BYTES = 0
publish("some text", "memory://end")

class Last:
    context = Monocontext.open("memory://end")
    def __del__(self):
        self.context.close()

last = Last()
"""


def test_a_text_is_closed_as_the_interpreter_ends() -> None:
    done = subprocess.run([sys.executable, "-c", _AT_THE_END], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")
