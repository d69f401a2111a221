"""A reader that was used, and then a fork: both processes go on reading, and both end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from monocontext import Monocontext, publish
from slow.big_text import BigText
from slow.commands import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_FORKED = """
import os, random, sys, threading, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from slow.big_text import BigText
from monocontext import Monocontext

text = BigText.load(Path({path!r}))
ctx = Monocontext.open({url!r}, cache_bytes=4 << 20, **{options!r})

def compare(seed, count=40):
    rng = random.Random(seed)
    for _ in range(count):
        start = rng.randrange(text.characters)
        stop = min(start + rng.choice((10, 5_000, 1_000_000)), text.characters)
        assert ctx[start:stop] == text.slice(start, stop), (start, stop)
    assert ctx.find("this needle is nowhere") == -1

compare(1)
stop = threading.Event()
{before}
children = []
for number in range({forks}):
    child = os.fork()
    if child == 0:
        compare(10 + number)
        {end}
    children.append(child)
    compare(100 + number, 10)
stop.set()
for child in children:
    _, status = os.waitpid(child, 0)
    assert status == 0, status
compare(2)
print("both")
"""

_READ_ALL_THE_TIME = """
def read():
    seed = threading.get_ident()
    while not stop.is_set():
        compare(seed, 5)
        seed += 1

threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
time.sleep(0.2)
"""


@pytest.fixture
def text(place: Place, tmp_path: Path) -> BigText:
    text = BigText.write(tmp_path / "text.txt", 24 << 20, seed=6)
    publish([text.path], place.url, store_options=place.options)
    return text


def forked(place: Place, text: BigText, **changes: str) -> None:
    code = _FORKED.format(
        tests=str(Path(__file__).parent.parent),
        path=str(text.path),
        url=place.url,
        options=place.options,
        **{"before": "", "forks": "3", "end": "sys.exit(0)", **changes},
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, errors = process.communicate(timeout=60)
        assert (process.returncode, said, errors) == (0, "both\n", "")
    finally:
        # The session is its own: a child that hangs is ended with it, and nobody else's process is.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "ctx.close(); sys.exit(0)"])
def test_forked_at_rest(place: Place, text: BigText, end: str) -> None:
    """Threads and connections are there, none is at work."""
    forked(place, text, end=end)


def test_forked_while_reading(place: Place, text: BigText) -> None:
    """Four threads read while the process forks: the child has their locks and their requests, but not the threads."""
    forked(place, text, before=_READ_ALL_THE_TIME, forks="10")


def test_64_threads(place: Place, text: BigText) -> None:
    """One reader for all of them, with a cache that holds a part of what they want."""

    def read(seed: int) -> int:
        rng = Random(seed)
        for _ in range(20):
            start = rng.randrange(text.characters)
            stop = min(start + rng.choice((1, 200, 5_000, 300_000)), text.characters)
            assert ctx[start:stop] == text.slice(start, stop)
        line = rng.randrange(text.lines)
        assert ctx.lines[line].endswith("\n")
        assert ctx.count("\n") == text.lines
        return ctx.find(f"#{seed % 8}.77\n")

    with (
        Monocontext.open(place.url, cache_bytes=8 << 20, **place.options) as ctx,
        ThreadPoolExecutor(64) as pool,
    ):
        found = list(pool.map(read, range(64)))
        for seed in range(8):
            assert len(set(found[seed::8])) == 1
            assert ctx[found[seed] :].startswith(f"#{seed}.77\n")
