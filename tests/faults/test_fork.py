"""Fork x {idle, reading, holding locks} x {the child reads, the parent reads, both}, over a connection that breaks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from monocontext.testing.http_faults import cut

from .faulted import serve

CASES = [
    pytest.param(state, way, marks=[] if way == "own" else [pytest.mark.slow])
    for way, state in product(("own", "boto3"), ("idle", "reading", "holding"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("state", "way"), CASES)
def test_forked(state: str, way: str) -> None:
    """The server is at some distance where a fork is to find requests under way, and cuts some bodies."""
    folder = Path(__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{folder.parent}"}
    with serve(latency="s3_standard_hot" if state == "reading" else None, seed=3) as server:
        server.faults.add(cut(3_000), share=0.03, times=None)
        ignored = "ignore::DeprecationWarning"
        command = [sys.executable, "-W", ignored, "-m", "faults.forked", server.endpoint, state, way]
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, env=environment, text=True, start_new_session=True, **both)  # type: ignore[call-overload]
        try:
            said, _ = process.communicate(timeout=90)
            assert (process.returncode, said) == (0, "")
        finally:
            # The session is its own: a child that hangs is ended with it, and nobody else's process is.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert server.faults.struck
