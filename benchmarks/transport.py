"""Measure the CPU time that one GET costs a client: our transport, boto3 and obstore, against one server.

The server runs in a process of its own, answers any range of one object and ignores signatures. Each client runs in a
process of its own as well; the clients take turns, and the table shows medians. obstore may be left out.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from benchmarks.options import Commands, head_line, machine_line, row_line
from benchmarks.processes import in_turns, run_client
from benchmarks.wall import client

_RANGE = re.compile(rb"(?i)\r\nrange: *bytes=(\d+)-(\d+)")


class Case(NamedTuple):
    length_bytes: int  # of each GET
    gets: int  # in a round
    threads: int  # of the client


CASES = {
    "64 KiB": Case(64 << 10, 1500, threads=1),
    "64 KiB, 8 threads": Case(64 << 10, 1500, threads=8),
    "1 MiB": Case(1 << 20, 300, threads=1),
    "8 MiB": Case(8 << 20, 60, threads=1),
}


def add(commands: Commands) -> None:
    command = commands.add_parser("transport", help="CPU of one GET, against boto3 and obstore")
    command.add_argument("--rounds", type=int, default=3, help="rounds; the table shows medians")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    with _server() as endpoint:

        def measure(case: Case, name: str) -> dict[str, Any] | None:
            return run_client(client.__file__, name, *case, endpoint=endpoint)

        turns = partial(in_turns, client.TRANSPORTS, arguments.rounds)
        runs_by_case = [turns(partial(measure, case)) for case in CASES.values()]
    print(f"Client CPU of one GET, median of {arguments.rounds}\n({machine_line()})\n")
    print(head_line("client", *(f"{case}, ms" for case in CASES)))
    for name, (first, *_) in runs_by_case[0].items():
        milliseconds = (1000 * statistics.median(run["cpu_seconds"] for run in runs[name]) for runs in runs_by_case)
        print(row_line(f"{name} {first['version']}", *(f"{item:.3f}" for item in milliseconds)))
    return 0


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.transport"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def _serve() -> None:
    data = memoryview(os.urandom(1 << 20) * (client.OBJECT_BYTES >> 20))
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=_answer, args=(sock, data), daemon=True).start()


def _answer(sock: socket.socket, data: memoryview) -> None:
    with suppress(OSError):
        # bbr, the default on some systems, paces its output, and that would count as time of the client.
        with suppress(OSError, AttributeError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = b""
        while piece := sock.recv(8192):
            request += piece
            if not request.endswith(b"\r\n\r\n"):
                continue
            result = _RANGE.search(request)
            start, stop = (int(result[1]), int(result[2]) + 1) if result else (0, len(data))
            head = f'HTTP/1.1 {206 if result else 200} OK\r\nContent-Length: {stop - start}\r\nETag: "e1"\r\n'
            head += f"Content-Range: bytes {start}-{stop - 1}/{len(data)}\r\n" if result else ""
            head += "Last-Modified: Mon, 23 Nov 2026 10:00:00 GMT\r\nContent-Type: application/octet-stream\r\n\r\n"
            sock.sendall(head.encode())
            if not request.startswith(b"HEAD"):
                sock.sendall(data[start:stop])
            request = b""


if __name__ == "__main__":
    _serve()
