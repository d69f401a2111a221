"""What a closed text took goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

_CLOSED = """
import random, sys
from monocontext import Monocontext, publish
publish((random.Random(number).randbytes(1 << 20).hex() + "\\n" for number in range(20)), sys.argv[1], filters=False)

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
    command = [sys.executable, "-c", _CLOSED, str(tmp_path / "text")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) > 30 << 20


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
