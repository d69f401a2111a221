"""Measure the CPU time that one GET costs a client: our transport, boto3 and obstore, against one server.

The server runs in a process of its own, answers any range of one object and ignores signatures. Each client runs in a
process of its own as well; the clients take turns, and the table shows medians. obstore is left out where neither this
environment has it nor that of the peers ($MONOCONTEXT_PEERS).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.machine import machine_line
from benchmarks.options import Commands, head_line, row_line
from benchmarks.processes import in_turns, run_client
from benchmarks.wall import client

_RANGE = re.compile(rb"(?i)\r\nrange: *bytes=(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of request."""

    name: str
    length_bytes: int
    gets: int
    """Requests of one round."""
    tls: bool = False


CASES = (
    Case("64 KiB plain", 64 << 10, 1500),
    Case("1 MiB plain", 1 << 20, 300),
    Case("256 KiB TLS", 256 << 10, 400, tls=True),
)


def add(commands: Commands) -> None:
    command = commands.add_parser("transport", help="CPU of one GET, against boto3 and obstore")
    command.add_argument("--rounds", type=int, default=3, help="rounds; the table shows medians")
    command.add_argument("--threads", type=int, default=8, help="threads of each client")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        certificate = _make_certificate(folder)
        cases = [case for case in CASES if certificate or not case.tls]
        servers = {tls: stack.enter_context(_server(certificate if tls else None)) for tls in {c.tls for c in cases}}
        bundle = {"AWS_CA_BUNDLE": str(certificate)} if certificate else {}

        def measure(case: Case, name: str) -> dict[str, Any] | None:
            words = name, case.length_bytes, case.gets, arguments.threads
            return run_client(client.__file__, *words, endpoint=servers[case.tls], **bundle)

        taken = [in_turns(client.TRANSPORTS, arguments.rounds, partial(measure, case)) for case in cases]
    print(f"Client CPU of one GET, {arguments.threads} threads; median of {arguments.rounds}\n({machine_line()})\n")
    print(head_line("client", *(f"{case.name}, ms" for case in cases)))
    for name, (first, *_) in taken[0].items():
        milliseconds = (1000 * statistics.median(run["cpu_seconds"] for run in of[name]) for of in taken)
        print(row_line(f"{name} {first['version']}", *(f"{item:.3f}" for item in milliseconds)))
    return 0


def _make_certificate(folder: Path) -> Path | None:
    """A file with a certificate for 127.0.0.1 and its key; `None` without the command `openssl`."""
    if shutil.which("openssl") is None:
        return None
    path = folder / "server.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    command += " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    path.write_text((folder / "certificate.pem").read_text() + (folder / "key.pem").read_text())
    return path


@contextmanager
def _server(certificate: Path | None) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.transport", str(certificate or "plain")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def _serve(certificate: str) -> None:
    context = None
    if certificate != "plain":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    data = memoryview(os.urandom(1 << 20) * (client.OBJECT_BYTES >> 20))
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=_answer, args=(sock, data, context), daemon=True).start()


def _answer(sock: socket.socket, data: memoryview, context: ssl.SSLContext | None) -> None:
    with suppress(OSError):
        # bbr, the default on some systems, paces its output, and that would count as time of the client.
        with suppress(OSError, AttributeError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            sock = context.wrap_socket(sock, server_side=True)
        asked = b""
        while piece := sock.recv(8192):
            asked += piece
            if not asked.endswith(b"\r\n\r\n"):
                continue
            result = _RANGE.search(asked)
            start, stop = (int(result[1]), int(result[2]) + 1) if result else (0, len(data))
            head = f'HTTP/1.1 {206 if result else 200} OK\r\nContent-Length: {stop - start}\r\nETag: "e1"\r\n'
            head += f"Content-Range: bytes {start}-{stop - 1}/{len(data)}\r\n" if result else ""
            head += "Last-Modified: Mon, 23 Nov 2026 10:00:00 GMT\r\nContent-Type: application/octet-stream\r\n\r\n"
            sock.sendall(head.encode())
            if not asked.startswith(b"HEAD"):
                sock.sendall(data[start:stop])
            asked = b""


if __name__ == "__main__":
    _serve(sys.argv[1])
