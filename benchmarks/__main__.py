"""`python -m benchmarks latency | passes`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import latency, passes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure monocontext.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("latency", help="one slice of 50 segments, behind 150 ms a GET, read in seven ways")
    command.add_argument("--latency-ms", type=float, default=150.0, help="added to each GET")
    command.add_argument("--rounds", type=int, default=3, help="times each way is measured; the median counts")
    command.add_argument("--json", type=Path, help="write the result there as well")
    commands.add_parser("passes", help="passes over a warm text and short reads, against a str in memory")
    arguments = parser.parse_args()
    if arguments.command == "passes":
        passes.main()
        return
    latency.main(arguments.latency_ms / 1000, arguments.rounds, arguments.json)


if __name__ == "__main__":
    main()
