"""Measure the first second: from a cold process to the first answer, against reading the whole object into a `str`.

Each client runs in a new process, in turns, against the stand-in: 150 ms to the first byte, and 90 MB/s in all.
"""

from __future__ import annotations

import argparse
from functools import partial

from benchmarks import first_second_client as client
from benchmarks.logs import NEEDLE, make_incident
from benchmarks.options import Commands, amounts, at_least_1, head_line, machine_line, row_line
from benchmarks.processes import in_turns, run_client
from monocontext import publish
from monocontext.stores import open_store
from monocontext.testing import S3StandIn
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND

NEEDLE_SHARE = 0.8  # the share of the text before the needle
LATENCY_MS = 150  # to the first byte of each response


def add(commands: Commands) -> None:
    command = commands.add_parser("first_second", help="seconds from a cold process to the first answer")
    command.add_argument("--samples", type=at_least_1, default=5, help="processes of each way; the least counts")
    command.add_argument("--sizes", type=amounts, default="1MB,5MB,20MB,100MB", help="such as 1MB,100MB")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    speed = f"{LATENCY_MS} ms, {CONNECTION_BYTES_PER_SECOND / 1e6:.0f} MB/s"
    print(f"Seconds to the window around the needle; {speed}; least of {arguments.samples} processes")
    print(f"({machine_line()})\n")
    print(head_line("text", "way", "cold", "warm", "CPU"))
    for size, size_bytes in arguments.sizes.items():
        for way, result in _measure(size_bytes, arguments.samples).items():
            print(row_line(size, way, *(f"{result[figure]:.3f}" for figure in ("cold", "warm", "cpu"))), flush=True)
    return 0


def _measure(size_bytes: int, samples: int) -> dict[str, dict[str, float]]:
    """The least of each figure by way: other programs on this machine can only raise it."""
    with _make_server(size_bytes) as server:
        measure = partial(run_client, client.__file__, endpoint=server.endpoint)
        runs_by_way = in_turns(client.WAYS, samples, lambda way: measure(way, "ctx", NEEDLE))
    return {way: {figure: min(run[figure] for run in runs) for figure in runs[0]} for way, runs in runs_by_way.items()}


def _make_server(size_bytes: int) -> S3StandIn:
    """A server with two copies of the text, as object and context each; one is for warm reads."""
    name, data = f"memory://first-second-wall-{size_bytes}", make_incident(size_bytes, NEEDLE_SHARE)
    for prefix in ("ctx", "ctx-again"):
        open_store(name).put(f"{prefix}/{client.TEXT}", data)
        publish(data.decode("ascii"), f"{name}/{prefix}", replace=True)
    return S3StandIn(
        open_store(name), bucket=client.BUCKET, latency=f"const_{LATENCY_MS}",
        connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND, link_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
    )  # fmt: skip
