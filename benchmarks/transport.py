"""Measure the CPU time that one GET costs a client: our transport, boto3 and obstore, against one server.

Each client runs in a process of its own; the clients take turns, and the table shows medians. obstore is optional.
"""

from __future__ import annotations

import argparse
import os
import statistics
from functools import partial
from typing import Any, NamedTuple

from benchmarks.options import Commands, at_least_1, head_line, machine_line, row_line
from benchmarks.processes import in_turns, run_client
from benchmarks.wall import client
from monocontext.stores import open_store
from monocontext.testing import S3StandIn


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
    command.add_argument("--rounds", type=at_least_1, default=3, help="rounds; the table shows medians")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    store = open_store("memory://transport")
    store.put(client.TEXT, os.urandom(1 << 20) * (client.OBJECT_BYTES >> 20))
    with S3StandIn(store, bucket=client.BUCKET) as server:

        def measure(case: Case, name: str) -> dict[str, Any] | None:
            return run_client(client.__file__, name, *case, endpoint=server.endpoint)

        case_runs = [in_turns(client.TRANSPORTS, arguments.rounds, partial(measure, case)) for case in CASES.values()]
    print(f"Client CPU of one GET, median of {arguments.rounds}\n({machine_line()})\n")
    print(head_line("client", *(f"{case}, ms" for case in CASES)))
    for name, runs_of_first_case in case_runs[0].items():
        milliseconds = (1000 * statistics.median(run["cpu_seconds"] for run in runs[name]) for runs in case_runs)
        print(row_line(f"{name} {runs_of_first_case[0]['version']}", *(f"{item:.3f}" for item in milliseconds)))
    return 0
