"""Measure the client CPU of one GET: ours, boto3, and the clients that are installed, against one server, in one run.

    python -m benchmarks.transport [--peers PYTHON]

`--peers` is the interpreter of an environment with aiobotocore, s3fs and obstore; those missing are left out. The
server is a stand-in in a process of its own: it answers any range of one object and looks at no signature. Each client
is a process of its own as well; rounds take turns, and the median counts.
"""

from __future__ import annotations

import argparse
import json
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
from pathlib import Path

from benchmarks import transport_client
from benchmarks.machine import describe_machine

_RANGE = re.compile(rb"(?i)\r\nrange: *bytes=(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked for."""

    name: str
    length_bytes: int
    gets: int
    """In one round."""
    tls: bool = False


CASES = (
    Case("64 KiB plain", 64 << 10, 1500),
    Case("1 MiB plain", 1 << 20, 300),
    Case("256 KiB TLS", 256 << 10, 400, tls=True),
)


def main(rounds: int, threads: int, peers: Path | None) -> None:
    """Measure and print the table."""
    taken: dict[tuple[str, str], list[float]] = {}
    walls: dict[tuple[str, str], list[float]] = {}
    versions: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        certificate = _make_certificate(folder)
        cases = [case for case in CASES if certificate or not case.tls]
        servers = {tls: stack.enter_context(_server(certificate if tls else None)) for tls in {c.tls for c in cases}}
        for case in cases:
            for _ in range(rounds):
                for name in transport_client.NAMES:
                    found = _measure(name, servers[case.tls], case, threads, peers, certificate)
                    if found:
                        cpu, wall, versions[name] = found
                        taken.setdefault((name, case.name), []).append(cpu)
                        walls.setdefault((name, case.name), []).append(wall)
    _print(cases, taken, walls, versions, rounds, threads)


def _measure(
    name: str, endpoint: str, case: Case, threads: int, peers: Path | None, certificate: Path | None
) -> tuple[float, float, str] | None:
    """Seconds of CPU and wall for a GET and the client's version; `None` where the client is not installed."""
    python = Path(sys.executable) if name in ("ours", "boto3") else peers
    if python is None:
        return None
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
    environment |= {
        "AWS_ACCESS_KEY_ID": transport_client.ACCESS,
        "AWS_SECRET_ACCESS_KEY": transport_client.SECRET,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    if certificate:
        environment["AWS_CA_BUNDLE"] = str(certificate)
    script = Path(transport_client.__file__)
    if name == "ours":
        environment["PYTHONPATH"] = str(script.parents[1])
    command = [python, script, name, endpoint, case.length_bytes, case.gets, threads]
    done = subprocess.run([str(each) for each in command], env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        if "ModuleNotFoundError" not in done.stderr:
            print(f"{name}, {case.name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    said = json.loads(done.stdout)
    return said["cpu_seconds"], said["wall_seconds"], said["version"]


def _print(
    cases: list[Case],
    taken: dict[tuple[str, str], list[float]],
    walls: dict[tuple[str, str], list[float]],
    versions: dict[str, str],
    rounds: int,
    threads: int,
) -> None:
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    print(f"Client CPU of one GET, {threads} threads, stand-in server on loopback; median of {rounds}\n({machine})\n")
    print(
        "| client | " + " | ".join(f"{case.name}, ms (wall)" for case in cases) + " | TLS, s/GB | 64 KiB, times ours |"
    )
    print("|---|" + "---:|" * (len(cases) + 2))
    ours = statistics.median(taken["ours", cases[0].name])
    for name, released in versions.items():
        cells = []
        for case in cases:
            cpu, wall = taken.get((name, case.name)), walls.get((name, case.name))
            cells.append(
                f"{1e3 * statistics.median(cpu):.3f} ({1e3 * statistics.median(wall):.2f})" if cpu and wall else "-"
            )
        last = cases[-1]
        per_gb = (
            f"{statistics.median(taken[name, last.name]) / last.length_bytes * 1e9:.2f}" if last.tls and cpu else "-"
        )
        times = f"{statistics.median(taken[name, cases[0].name]) / ours:.1f}"
        print(f"| {name} {released} | {' | '.join(cells)} | {per_gb} | {times} |")


def _make_certificate(folder: Path) -> Path | None:
    """A certificate for 127.0.0.1 with its key, in one file; `None` without the command `openssl`."""
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
    command = [sys.executable, "-m", "benchmarks.transport", "--serve", str(certificate or "plain")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def _serve(certificate: str) -> None:
    context: ssl.SSLContext | None = None
    if certificate != "plain":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    data = memoryview(os.urandom(1 << 20) * (transport_client.OBJECT_BYTES >> 20))
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=_answer, args=(sock, data, context), daemon=True).start()


def _answer(sock: socket.socket, data: memoryview, context: ssl.SSLContext | None) -> None:
    with suppress(OSError):
        # bbr, the default on some systems, would bill the client for its pace.
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
            found = _RANGE.search(asked)
            start, stop = (int(found[1]), int(found[2]) + 1) if found else (0, len(data))
            head = f'HTTP/1.1 {206 if found else 200} OK\r\nContent-Length: {stop - start}\r\nETag: "e1"\r\n'
            head += f"Content-Range: bytes {start}-{stop - 1}/{len(data)}\r\n" if found else ""
            head += "Last-Modified: Mon, 23 Nov 2026 10:00:00 GMT\r\nContent-Type: application/octet-stream\r\n\r\n"
            sock.sendall(head.encode())
            if not asked.startswith(b"HEAD"):
                sock.sendall(data[start:stop])
            asked = b""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transport", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--peers", type=Path, help="interpreter of an environment with aiobotocore, s3fs and obstore")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        _serve(arguments.serve)
    main(arguments.rounds, arguments.threads, arguments.peers)
