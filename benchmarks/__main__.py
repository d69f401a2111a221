"""`python -m benchmarks virtual | peers | rlm | report | plots | latency | passes | boundary | search | ...`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import boundary, corpora, harness, hints, latency, passes, search
from benchmarks.search import Plan

_DEFAULT = Plan()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure monocontext.")
    commands = parser.add_subparsers(dest="command", required=True)
    harness.add(commands)
    command = commands.add_parser("latency", help="one slice of 50 segments, behind 150 ms a GET, read in nine ways")
    command.add_argument("--latency-ms", type=float, default=150.0, help="added to each GET")
    command.add_argument("--rounds", type=int, default=3, help="times each way is measured; the median counts")
    command.add_argument("--json", type=Path, help="write the result there as well")
    commands.add_parser("passes", help="passes over a warm text and short reads, against a str in memory")
    command = commands.add_parser("boundary", help="what the sandbox costs, against the same cells in this process")
    command.add_argument("--json", type=Path, help="write the result there as well")
    command = commands.add_parser("corpora", help="fetch or make the texts to search in, and say where they are")
    command.add_argument("--size", type=search.size, default=_DEFAULT.size_bytes, help="bytes of each, as 64M or 1G")
    command.add_argument("--corpora", type=search.listed, default=_DEFAULT.corpora, help="of code,prose,cjk,logs")
    command = commands.add_parser("search", help="what search filters cost and spare, beside other ways to search")
    command.add_argument("--size", type=search.size, default=_DEFAULT.size_bytes, help="bytes of text, as 64M or 1G")
    command.add_argument("--corpora", type=search.listed, default=_DEFAULT.corpora, help="of code,prose,cjk,logs")
    command.add_argument("--parts", type=search.listed, default=_DEFAULT.parts, help="of publish,needles,passes,peers")
    command.add_argument("--needles", type=int, default=_DEFAULT.needles, help="of each kind")
    command.add_argument("--rounds", type=int, default=_DEFAULT.rounds, help="of passes with and without filters")
    command.add_argument("--peer-rounds", type=int, default=_DEFAULT.peer_rounds, help="of each other way")
    command.add_argument("--seed", type=int, default=_DEFAULT.seed, help="of the needles")
    command.add_argument("--json", type=Path, help="write the result there as well")
    command = commands.add_parser("hints", help="what it costs to read along with a reply of the model")
    command.add_argument("--rounds", type=int, default=3, help="times each reply is fed; the best of each call counts")
    command.add_argument("--json", type=Path, help="write the result there as well")
    arguments = parser.parse_args()
    match arguments.command:
        case name if name in harness.COMMANDS:
            sys.exit(harness.run(arguments))
        case "latency":
            latency.main(arguments.latency_ms / 1000, arguments.rounds, arguments.json)
        case "passes":
            passes.main()
        case "hints":
            hints.main(arguments.rounds, arguments.json)
        case "boundary":
            boundary.main(arguments.json)
        case "corpora":
            corpora.main(arguments.corpora, arguments.size)
        case "search":
            plan = Plan(
                size_bytes=arguments.size,
                corpora=arguments.corpora,
                needles=arguments.needles,
                rounds=arguments.rounds,
                peer_rounds=arguments.peer_rounds,
                seed=arguments.seed,
                parts=arguments.parts,
            )
            search.main(plan, arguments.json)


if __name__ == "__main__":
    main()
