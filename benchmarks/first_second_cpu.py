"""Processor time of a beginning: a fresh process to its first slice, the opens after it, imports and `--help`.

`python -m benchmarks.first_second_cpu [--rounds N] [--peers PYTHON]`; `first_second` prints these rows as well.

Each sample is a process of its own, and ways take turns. Its time is what the system billed, start and end included,
less that of an interpreter that does nothing: the least of all samples, since what other processes take of the caches
is billed to whoever runs beside them, and in brackets the median. Site packages are on the path but `site` is not run:
its hooks import modules that ours would then have for nothing. PYTHON is an interpreter with obstore; rows without it
are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.logs import Logs
from benchmarks.machine import describe_machine
from monocontext import publish
from monocontext.stores import open_store
from monocontext.testing import S3StandIn
from monocontext.testing.http_wire import HttpRequest

TEXT_BYTES = 5_000_000
OPENS = 200
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
_OURS = """
from monocontext import Monocontext
context = Monocontext.open("s3://bucket/ctx", endpoint=endpoint)
assert len(context[:500]) == 500
"""
_OBSTORE = """
import obstore
from obstore.store import S3Store
store = S3Store("bucket", endpoint=endpoint, region="us-east-1", access_key_id="a", secret_access_key="b",
                virtual_hosted_style_request=False, client_options={"allow_http": True})
"""
_SAME_BYTES = f"""{_OBSTORE}
for key, start, stop in read:
    bytes(obstore.get_range(store, key, start=start, end=stop) if stop else obstore.get(store, key).bytes())
"""
_WHOLE_TEXT = f"{_OBSTORE}\nassert len(str(obstore.get(store, 'text').bytes(), 'utf-8')[:500]) == 500"
_OPENS = f"""
import json, time
from monocontext import Monocontext
taken = []
for _ in range({OPENS}):
    began = time.process_time()
    Monocontext.open(url, endpoint=endpoint).close()
    taken.append(time.process_time() - began)
print(json.dumps(taken))
"""
_HELP = 'import sys; sys.argv = ["{0}", "--help"]\nfrom {0}.cli import main\nmain()'

IDLE, IMPORT, FIRST, SAME, WHOLE = "idle", "import", "first slice", "same bytes", "whole text"
PROGRAMS = {
    IDLE: "",
    IMPORT: "from monocontext import Monocontext",
    "import rlm": "import rlm",
    "rlm --help": _HELP.format("rlm"),
    "monocontext --help": _HELP.format("monocontext"),
    FIRST: _OURS,
    SAME: _SAME_BYTES,
    WHOLE: _WHOLE_TEXT,
}
_OF_PEERS = (SAME, WHOLE)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    found: str
    asked: str
    holds: bool


def measure(rounds: int, peers: str) -> list[Row]:
    """The rows; `peers` is an interpreter that may have obstore."""
    with _server() as (endpoint, read):
        taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
        for _ in range(rounds):
            for name, program in PROGRAMS.items():
                python = peers if name in _OF_PEERS else sys.executable
                done, seconds = _run(python, f"endpoint, read = {endpoint!r}, {read!r}\n{program}")
                if done.returncode == 0:
                    taken[name].append(seconds)
                elif "No module named 'obstore'" not in done.stderr:
                    raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
        opens = {}
        for what, url in (("10 KB", "s3://bucket/small"), ("5 MB", "s3://bucket/ctx")):
            program = f"endpoint, url = {endpoint!r}, {url!r}\n{_OPENS}"
            told = [json.loads(_run(sys.executable, program)[0].stdout)[1:] for _ in range(rounds)]
            opens[what] = min((sorted(1e3 * each for each in one) for one in told), key=_late)
    least, median = ({name: 1e3 * of(each) for name, each in taken.items() if each} for of in (min, statistics.median))
    return _rows(least, median, opens)


def _late(opens: list[float]) -> float:
    """The 95th percentile of what is sorted."""
    return opens[len(opens) * 95 // 100]


def _rows(least: dict[str, float], median: dict[str, float], opens: dict[str, list[float]]) -> list[Row]:
    """Pure: milliseconds of each program, and of each open after the first, sorted, by the size of the text."""
    above, usual = ({name: each - of[IDLE] for name, each in of.items()} for of in (least, median))
    rows = []
    for name, what, most in (
        (IMPORT, "`from monocontext import Monocontext`", 60),
        ("import rlm", "`import rlm`", 50),
        ("rlm --help", "`rlm --help`", 150),
        ("monocontext --help", "`monocontext --help`", 150),
    ):
        found = f"{above[name]:.0f} ms ({usual[name]:.0f})"
        rows.append(Row(what, found, f"<= {most} ms", above[name] <= most))
    for name, what in ((SAME, "obstore, GETs of the same bytes"), (WHOLE, "obstore, GET of the whole text")):
        if name in above:
            times, usually = (of[FIRST] / of[name] for of in (above, usual))
            rows.append(
                Row(
                    f"import, open, first slice of 5 MB, against {what}",
                    f"{above[FIRST]:.0f} ms against {above[name]:.0f} ms: {times:.1f} x ({usually:.1f} x)",
                    "<= 2.5 x",
                    times <= 2.5,
                )
            )
    for size, each in opens.items():
        middle, late = statistics.median(each), _late(each)
        what = f"an open of {size}, the 2nd to {OPENS}th in a process"
        rows.append(Row(what, f"{middle:.2f} ms, p95 {late:.2f}", "<= 2 ms each", late <= 2))
    return rows


def show(rows: list[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| CPU above the interpreter | found | asked | |", "|---|---:|---:|---|"]
    lines += [f"| {row.what} | {row.found} | {row.asked} | {'' if row.holds else 'no'} |" for row in rows]
    return "\n".join(lines)


def _run(python: str, program: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """A program in a fresh interpreter, and the seconds of processor time that it was billed."""
    found = subprocess.run(
        [python, "-c", "import sys; print(*sys.path[1:], sep=chr(10))"], capture_output=True, text=True, check=True
    )
    path = [str(Path(__file__).parents[1]), *found.stdout.split("\n")]
    code = f"import sys; sys.path[:] = {[each for each in path if each]!r}\n{program}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    with subprocess.Popen(
        [python, "-S", "-c", code],
        env=environment | _ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said, failed = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    done = subprocess.CompletedProcess(process.args, process.returncode, said, failed)
    return done, usage.ru_utime + usage.ru_stime


@contextmanager
def _server() -> Iterator[tuple[str, list[tuple[str, int, int]]]]:
    """An endpoint with the text as a context and as one object, and the reads of a first slice: key, start, end."""
    text = b"".join(Logs(TEXT_BYTES, 6, {})).decode("ascii")
    with S3StandIn({"text": text.encode()}) as server:
        publish(text, open_store(f"{server.store.url}/ctx"))
        publish(text[:10_000], open_store(f"{server.store.url}/small"))
        _run(sys.executable, f"endpoint = {server.endpoint!r}\n{_OURS}")
        yield server.endpoint, [_read_of(request) for request in server.log]


def _read_of(request: HttpRequest) -> tuple[str, int, int]:
    """Key, first byte and end of a GET; no end where it names no range."""
    first, _, last = request.headers.get("range", "").removeprefix("bytes=").partition("-")
    return request.path.removeprefix("/bucket/"), int(first or 0), int(last or -1) + 1


def main(rounds: int, peers: str) -> list[Row]:
    """Print the table; the rows."""
    rows = measure(rounds, peers)
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    print(f"{show(rows)}\n\nLeast of {rounds}, in brackets the median; opens are of the best process ({machine})")
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_second_cpu", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", default=sys.executable, help="interpreter of an environment with obstore")
    given = parser.parse_args()
    main(given.rounds, given.peers)
