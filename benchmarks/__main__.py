"""Run one benchmark: `python -m benchmarks NAME`, where NAME is `latency`, `virtual`, `peers`, `words` or another."""

from __future__ import annotations

import argparse
import sys

from benchmarks import agents_grep, file_changes, first_second, growth, latency, quality, transport, words
from benchmarks.virtual import suite
from benchmarks.wall import peers


def main() -> int:
    """Run the named command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure monocontext.")
    commands = parser.add_subparsers(required=True)
    for command in (latency, suite, peers, agents_grep, words, quality, transport, first_second, growth, file_changes):
        command.add(commands)
    arguments = parser.parse_args()
    return int(arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
