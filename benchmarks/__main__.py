"""`python -m benchmarks virtual | peers | rlm | report | plots | latency | passes | boundary | search | ...`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import (
    batch,
    boundary,
    corpora,
    documents,
    file_changes,
    first_second,
    growth,
    harness,
    hints,
    latency,
    passes,
    rollouts,
    search,
    short_needles,
    small_model,
    words,
)  # fmt: skip
from benchmarks.quality import command as quality
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
    command.add_argument("--runner", default="subprocess", help="subprocess, wasm or docker")
    command.add_argument("--image", help="of docker")
    command.add_argument("--program", help="of docker: docker or podman")
    command.add_argument("--json", type=Path, help="write the result there as well")
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
    command = commands.add_parser("short_needles", help="what needles of 3 to 6 characters read")
    command.add_argument("--size", type=search.size, default=64_000_000, help="bytes of text, as 64M")
    command.add_argument("--corpora", type=search.parse_list, default=_DEFAULT.corpora, help="of code,prose,cjk,logs")
    command = commands.add_parser("hints", help="what it costs to read along with a reply of the model")
    command.add_argument("--rounds", type=int, default=3, help="times each reply is fed; the best of each call counts")
    command.add_argument("--json", type=Path, help="write the result there as well")
    command = commands.add_parser("file_changes", help="how often one call goes from one file to another")
    command.add_argument("--rounds", type=int, default=20, help="times each call is made; the least counts")
    command.add_argument("--pairs", type=int, default=0, help="most frequent changes to print for each call")
    command.add_argument("--json", type=Path, help="write the result there as well")
    command = commands.add_parser("documents", help="a context of many documents: upload, names, loops, a pass")
    command.add_argument("--count", type=int, default=1_000_000, help="documents")
    command.add_argument("--characters", type=int, default=1024, help="of each")
    command.add_argument("--json", type=Path, help="write the result there as well")
    command = commands.add_parser("growth", help="what use, size and script cost: appends, text, cores")
    command.add_argument("parts", nargs="*", help="of appends, text, cores; without any, all that there are")
    command = commands.add_parser("first_second", help="from a cold process to the first answer, beside GET whole")
    command.add_argument("--samples", type=int, default=5, help="processes of each way; the least counts")
    command.add_argument("--sizes", type=search.parse_list, default=[], help="megabytes of text, as 1,5,20,100")
    command.add_argument("--json", type=Path, help="write the result there as well")
    quality.add(commands)
    small_model.add(commands)
    command = commands.add_parser("rollouts", help="many sandboxes over one lazy text, against a copy in each")
    command.add_argument("--count", type=int, default=64, help="rollouts at once")
    command.add_argument("--size", type=search.size, default=20 << 20, help="bytes of text, as 64M")
    command = commands.add_parser("batch", help="how much of an endpoint's throughput `rlm batch` gets")
    asked = batch.Plan()
    command.add_argument("--questions", type=int, default=asked.questions, help="of two calls and one sandbox each")
    command.add_argument("--slots", type=int, default=asked.slots, help="calls that the endpoint answers at once")
    command.add_argument("--seconds", type=float, default=asked.seconds, help="that the endpoint takes for a call")
    command.add_argument("--workers", type=int, default=asked.workers, help="processes of a Dask cluster; 0 for none")
    command.add_argument("--runner", default=asked.runner, help="where the code of the model runs")
    command.add_argument("--json", type=Path, help="write the result there as well")
    arguments = parser.parse_args()
    match arguments.command:
        case name if name in harness.COMMANDS:
            sys.exit(harness.run(arguments))
        case "latency":
            latency.main(arguments.latency_ms / 1000, arguments.rounds, arguments.json)
        case "growth":
            sys.exit(0 if growth.main(tuple(arguments.parts)) else 1)
        case "words":
            words.main(arguments.corpora, arguments.size, arguments.queries)
        case "short_needles":
            short_needles.main(arguments.corpora, arguments.size)
        case "passes":
            passes.main()
        case "hints":
            hints.main(arguments.rounds, arguments.json)
        case "file_changes":
            file_changes.main(arguments.rounds, arguments.json, arguments.pairs)
        case "documents":
            documents.main(arguments.count, arguments.characters, arguments.json)
        case "first_second":
            sizes = [round(float(each) * 1e6) for each in arguments.sizes]
            first_second.main(arguments.samples, sizes or first_second.SIZES, arguments.json)
        case "rollouts":
            rollouts.main(arguments.count, arguments.size)
        case "quality":
            sys.exit(quality.main(arguments))
        case "small-model":
            sys.exit(small_model.main(arguments))
        case "batch":
            given = (arguments.questions, arguments.slots, arguments.seconds, arguments.workers, arguments.runner)
            batch.main(batch.Plan(*given), arguments.json)
        case "boundary":
            options = {name: getattr(arguments, name) for name in ("image", "program") if getattr(arguments, name)}
            boundary.main(arguments.runner, arguments.json, **options)
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
