"""`python -m benchmarks virtual | peers | report | plots | search | words | quality | ...`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import corpora, file_changes, first_second, growth, harness, search, words
from benchmarks.quality import command as quality
from benchmarks.search import Plan

_DEFAULT = Plan()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure monocontext.")
    commands = parser.add_subparsers(dest="command", required=True)
    harness.add(commands)
    command = commands.add_parser("corpora", help="fetch or make the texts to search in, and say where they are")
    command.add_argument("--size", type=search.size, default=_DEFAULT.size_bytes, help="bytes of each, as 64M or 1G")
    command.add_argument("--corpora", type=search.parse_list, default=_DEFAULT.corpora, help="of code,prose,cjk,logs")
    command = commands.add_parser("search", help="what search filters cost and spare, beside other ways to search")
    command.add_argument("--size", type=search.size, default=_DEFAULT.size_bytes, help="bytes of text, as 64M or 1G")
    command.add_argument("--corpora", type=search.parse_list, default=_DEFAULT.corpora, help="of code,prose,cjk,logs")
    command.add_argument(
        "--parts", type=search.parse_list, default=_DEFAULT.parts, help="of publish,needles,passes,peers"
    )
    command.add_argument("--needles", type=int, default=_DEFAULT.needles, help="of each kind")
    command.add_argument("--rounds", type=int, default=_DEFAULT.rounds, help="of passes with and without filters")
    command.add_argument("--peer-rounds", type=int, default=_DEFAULT.peer_rounds, help="of each other way")
    command.add_argument("--seed", type=int, default=_DEFAULT.seed, help="of the needles")
    command.add_argument("--json", type=Path, help="write the result there as well")
    command = commands.add_parser("words", help="search by words, against a scan of everything and tantivy")
    command.add_argument("--size", type=search.size, default=64_000_000, help="bytes of text, as 64M")
    command.add_argument("--corpora", type=search.parse_list, default=_DEFAULT.corpora, help="of code,prose,cjk,logs")
    command.add_argument("--queries", type=int, default=200, help="of each text")
    command = commands.add_parser("file_changes", help="how often one call goes from one file to another")
    command.add_argument("--rounds", type=int, default=20, help="times each call is made; the least counts")
    command.add_argument("--pairs", type=int, default=0, help="most frequent changes to print for each call")
    command.add_argument("--json", type=Path, help="write the result there as well")
    command = commands.add_parser("growth", help="what use and size cost: appends, scale")
    command.add_argument("parts", nargs="*", help="of appends, scale; without any, both")
    command = commands.add_parser("first_second", help="from a cold process to the first answer, beside GET whole")
    command.add_argument("--samples", type=int, default=5, help="processes of each way; the least counts")
    command.add_argument("--sizes", type=search.parse_list, default=[], help="megabytes of text, as 1,5,20,100")
    command.add_argument("--json", type=Path, help="write the result there as well")
    quality.add(commands)
    arguments = parser.parse_args()
    match arguments.command:
        case name if name in harness.COMMANDS:
            sys.exit(harness.run(arguments))
        case "growth":
            sys.exit(0 if growth.main(tuple(arguments.parts)) else 1)
        case "words":
            words.main(arguments.corpora, arguments.size, arguments.queries)
        case "file_changes":
            file_changes.main(arguments.rounds, arguments.json, arguments.pairs)
        case "first_second":
            sizes = [round(float(each) * 1e6) for each in arguments.sizes]
            first_second.main(arguments.samples, sizes or first_second.SIZES, arguments.json)
        case "quality":
            sys.exit(quality.main(arguments))
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
