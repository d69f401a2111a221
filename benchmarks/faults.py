"""Compare readers on a server that errs: ours, boto3, s3fs, smart_open and obstore, each fault on each, in one table.

    python -m benchmarks.faults [--peers PYTHON]

`--peers` is the interpreter of an environment with the others; those missing are left out. All read 8 MiB of text from
a stand-in of their own, 6 MB of it as a slice and the whole as a scan. Ours reads a context, whose index holds
checksums; the others read a plain object, so a flipped byte is nothing that they could notice. What takes 20 s counts
as a hang.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import faults_client
from benchmarks.machine import describe_machine
from monocontext import publish
from monocontext.testing import HttpFault, S3StandIn, http_faults

LIMIT_SECONDS = 20.0
_START_SECONDS = 60.0
_AT = 700_000
OPERATIONS = ("slice", "scan")


@dataclass(frozen=True, slots=True)
class Case:
    """Faults that GETs of the text meet, one after another."""

    name: str
    faults: tuple[HttpFault, ...]
    skip: int = 0
    """GETs that go well before."""
    operations: tuple[str, ...] = OPERATIONS


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one operation."""

    kind: str
    seconds: float
    was_met: bool
    """Whether the fault struck at all: a reader with a single GET does not see what happens to a second."""

    def __str__(self) -> str:
        if not self.was_met:
            return "-"
        if self.kind == "hang":
            return f"**hang** > {LIMIT_SECONDS:.0f}" if self.seconds >= LIMIT_SECONDS else "**hang** in the child"
        said = {"right": "right", "WRONG TEXT": "**WRONG TEXT**"}.get(self.kind, self.kind)
        return f"{said} {self.seconds:.1f}"


def _reverse_lines(data: bytes) -> bytes:
    return b"\n".join(data.split(b"\n")[::-1])


CASES = (
    Case("nothing", ()),
    Case("body cut at once", (http_faults.cut(),)),
    Case("body cut at 0.7 MB", (http_faults.cut(_AT),)),
    Case("head cut", (http_faults.cut_head(),)),
    Case("reset before the answer", (http_faults.reset(),)),
    Case("reset in the body", (http_faults.reset(_AT),)),
    Case("stall before the head", (http_faults.stall_before_head(),)),
    Case("stall in the head", (http_faults.stall_in_head(),)),
    Case("stall in the body", (http_faults.stall(_AT),)),
    Case("drip of 200 kB/s", (http_faults.drip(200_000),)),
    # A whole that is short, or at another place, and says so is what nobody could notice: these are of ranges alone.
    Case("short 206, lengths agree", (http_faults.short(100_000),), operations=("slice",)),
    Case("Content-Range of another place", (http_faults.wrong_range(),), operations=("slice",)),
    Case("200 for a range", (http_faults.whole(),), operations=("slice",)),
    Case("body of another place", (http_faults.shifted(1000),)),
    Case("one byte flipped", (http_faults.flipped(_AT),)),
    Case("another ETag", (http_faults.other_etag(),)),
    Case("503 twice", (http_faults.slow_down(), http_faults.slow_down())),
    Case("500 twice", (http_faults.internal_error(), http_faults.internal_error())),
    Case("error in a 200", (http_faults.error_in_200(),)),
    Case("expired token", (http_faults.expired(),)),
    Case("replaced before the second GET", (http_faults.replaced(_reverse_lines),), skip=1),
    Case("the same, If-Match ignored", (http_faults.replaced_unseen(_reverse_lines),), skip=1),
    Case("cut, then replaced", (http_faults.cut(_AT), http_faults.replaced(_reverse_lines))),
    Case("fork, both read on", (), operations=("fork",)),
)


class Asked:
    """A reader in a process of its own, ended and begun anew when it takes too long."""

    def __init__(self, name: str, python: Path, data: Path) -> None:
        self.name = name
        self.version = ""
        script = Path(faults_client.__file__)
        self._command = [str(python), str(script), name, str(data)]
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | {
            "AWS_ACCESS_KEY_ID": faults_client.ACCESS,
            "AWS_SECRET_ACCESS_KEY": faults_client.SECRET,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1",
        }
        if name == "ours":
            self._environment["PYTHONPATH"] = str(script.parents[1])
        self._process: subprocess.Popen[str] | None = None
        self._said: queue.Queue[str] = queue.Queue()

    def start(self) -> bool:
        """Whether the reader is there; starts its process."""
        process = self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        said = self._said = queue.Queue()
        threading.Thread(target=_hear, args=(process, said), daemon=True).start()
        answer = self._answer(_START_SECONDS)
        self.version = answer["version"] if answer else ""
        return answer is not None

    def ask(self, endpoint: str, operation: str) -> tuple[str, float]:
        """What came of an operation, and its seconds."""
        if self._process is None:
            self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.write(json.dumps({"endpoint": endpoint, "operation": operation}) + "\n")
        process.stdin.flush()
        answer = self._answer(LIMIT_SECONDS)
        if answer is None:
            self.stop()
            return "hang", LIMIT_SECONDS
        return str(answer["kind"]), float(answer["seconds"])

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._said.get(timeout=seconds))
        except queue.Empty:
            return None
        return found


def _hear(process: subprocess.Popen[str], said: queue.Queue[str]) -> None:
    for line in process.stdout or ():
        said.put(line)


def main(peers: Path | None) -> None:
    """Measure and print one table for each operation."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes(_text())
        objects = _objects(path)
        with _readers(peers, path) as readers, ThreadPoolExecutor(len(readers)) as pool:
            columns = [*pool.map(lambda reader: _column(reader, objects), readers)]
            _print(readers, columns)


def _text() -> bytes:
    rng = random.Random(11)
    return b"".join(b"line %d: %x\n" % (number, rng.getrandbits(200)) for number in range(130_000))[: 8 << 20]


def _objects(path: Path) -> dict[str, bytes]:
    """The text as a plain object, and as a context."""
    with tempfile.TemporaryDirectory() as folder:
        publish([path.read_bytes()], folder, codec="raw", segment_bytes=64 << 20)
        files = [each for each in Path(folder).rglob("*") if each.is_file() and not each.name.startswith(".")]
        found = {f"{faults_client.CONTEXT}/{each.relative_to(folder)}": each.read_bytes() for each in files}
    return found | {faults_client.KEY: path.read_bytes()}


@contextmanager
def _readers(peers: Path | None, data: Path) -> Iterator[list[Asked]]:
    """Those that are installed."""
    asked = [Asked(name, _python(name, peers), data) for name in faults_client.READERS]
    try:
        yield [each for each in asked if (peers or each.name in ("ours", "boto3")) and each.start()]
    finally:
        for each in asked:
            each.stop()


def _python(name: str, peers: Path | None) -> Path:
    return Path(sys.executable) if name == "ours" or peers is None else peers


def _column(reader: Asked, objects: dict[str, bytes]) -> dict[tuple[str, str], Outcome]:
    """All cases, by one reader; the first answer, with what is imported on the way, is not counted."""
    _meet(reader, CASES[0], OPERATIONS[0], objects)
    return {(case.name, op): _meet(reader, case, op, objects) for case in CASES for op in case.operations}


def _meet(reader: Asked, case: Case, operation: str, objects: dict[str, bytes]) -> Outcome:
    key = f"{faults_client.CONTEXT}/segments/*" if reader.name == "ours" else faults_client.KEY
    with S3StandIn(objects) as server:
        for number, fault in enumerate(case.faults):
            server.faults.add(fault, key=key, skip=0 if number else case.skip)
        kind, seconds = reader.ask(server.endpoint, operation)
        return Outcome(kind, seconds, not case.faults or server.faults.struck > 0)


def _print(readers: list[Asked], columns: list[dict[tuple[str, str], Outcome]]) -> None:
    print(describe_machine())
    for operation in (*OPERATIONS, "fork"):
        print(f"\n| {operation} | {' | '.join(f'{each.name} {each.version}' for each in readers)} |")
        print(f"|---|{'---|' * len(readers)}")
        for case in CASES:
            if operation in case.operations:
                print(f"| {case.name} | {' | '.join(str(column[case.name, operation]) for column in columns)} |")
    for kind in ("WRONG TEXT", "hang"):
        counts = [sum(outcome.kind == kind for outcome in column.values()) for column in columns]
        print(f"\n{kind}: {', '.join(f'{each.name} {count}' for each, count in zip(readers, counts, strict=True))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--peers", type=Path, help="interpreter of an environment with s3fs, smart_open and obstore")
    main(parser.parse_args().peers)
