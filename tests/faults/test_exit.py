"""A process ends when its program does, whatever storage does."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from monocontext import publish
from monocontext.testing import S3StandIn
from monocontext.testing.http_faults import HttpFault, stall, stall_before_head

AHEAD = """
import time
from monocontext import Monocontext

context = Monocontext.open({url!r}, endpoint={endpoint!r})
with context.thinking():
    context.hint("```repl\\nfor i in range(0, len(context), 100_000): print(context[i : i + 100_000])\\n")
    while not context._reader.fetcher.under_way()[0]:
        time.sleep(0.01)
    time.sleep(0.3)
print(context._reader.fetcher.under_way()[0] > 0, time.monotonic())
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", [stall(0), stall_before_head()], ids=lambda fault: fault.name)
def test_nobody_waits_for_what_is_read_ahead_from_a_silent_server(fault: HttpFault) -> None:
    """Its GETs fail after 17 s; threads that are joined at the end would keep the process as long."""
    with S3StandIn() as server:
        url = server.url("ctx")
        publish("some words\n" * 100_000, url, store_options={"endpoint": server.endpoint}, frame_bytes=65_536)
        server.faults.add(fault, key="*/segments/*", times=None)
        code = AHEAD.format(url=url, endpoint=server.endpoint)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        ended = time.monotonic()
        under_way, at_the_end = done.stdout.split()
        assert (done.returncode, under_way, done.stderr) == (0, "True", "")
        assert ended - float(at_the_end) < 15  # from the last line of the program, and its GETs began before that


AT_THE_END = """
import builtins, sys
from monocontext import Monocontext
from monocontext.errors import ContextClosed

class Reader:
    context = Monocontext.open({url!r})

    def __del__(self):
        try:
            self.context[2_000_000:2_000_010]
        except ContextClosed as error:
            print(error, file=sys.__stderr__)

builtins.reader = Reader()
builtins.reader.context[:10]
"""


def test_a_text_that_is_read_when_all_threads_have_ended_is_an_error(tmp_path: Path) -> None:
    publish("some words\n" * 200_000, tmp_path / "ctx")
    code = AT_THE_END.format(url=str(tmp_path / "ctx"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    said = "the interpreter is ending, so no thread can read: finish all reads before it does\n"
    assert (done.returncode, done.stderr) == (0, said)
