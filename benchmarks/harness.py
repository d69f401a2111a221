"""Commands of the harness that judges reading ahead: runs, reports, plots and gates."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import plots, report, results
from benchmarks.search import parse_list, size
from benchmarks.virtual import suite
from benchmarks.virtual.gates import judge, judge_fast
from benchmarks.virtual.suite import POLICIES, Plan
from benchmarks.wall import client, peers
from monocontext.testing import PROFILES

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

COMMANDS = ("virtual", "peers", "report", "plots")
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def amount(text: str) -> int:
    """Bytes of `0.2GB`, `100MB/s`, `64M` or `1000`."""
    found = re.fullmatch(r"([\d.]+)([KMGT]B)?(?:/s)?", text)
    return round(float(found[1]) * _UNITS[found[2] or ""]) if found else size(text)


def add(commands: Commands) -> None:
    """Add the sub-commands."""
    plan = Plan()
    command = commands.add_parser("virtual", help="programs over a context on a virtual clock, under each policy")
    command.add_argument("--size", type=amount, default=plan.size_bytes, help="of the text, as 0.2GB, 10GB, 1TB")
    command.add_argument("--profile", choices=PROFILES, default=plan.profile, help="of the time to the first byte")
    command.add_argument("--nic", type=amount, default=plan.nic_bytes_per_second, help="of the link, as 100MB/s")
    command.add_argument("--policy", type=parse_list, default=plan.policies, help=f"of {','.join(POLICIES)}")
    command.add_argument("--program", type=parse_list, default=(), help="parts of the names of the programs to run")
    command.add_argument("--seeds", type=int, default=plan.seeds, help="runs of each, added up")
    command.add_argument("--seed", type=int, default=plan.seed, help="the first of them")
    command.add_argument("--no-controls", action="store_true", help="leave out oracle, download all, no index")
    command.add_argument("--fast", action="store_true", help="1 s of thinking, 300 tokens/s, no word after an address")
    command.add_argument("--trace", action="store_true", help="print what each operation waited instead")
    command.add_argument("--json", type=Path, help="where to write the result, instead of results/")
    asked = peers.Plan()
    command = commands.add_parser("peers", help="this library beside others, one session each, on the wall clock")
    command.add_argument("--size", type=amount, default=asked.size_bytes, help="of the text, as 200MB")
    command.add_argument("--profile", choices=PROFILES, default=asked.profile, help="of the stand-in")
    command.add_argument("--nic", type=amount, default=asked.nic_bytes_per_second, help="of the stand-in's link")
    command.add_argument("--rounds", type=int, default=asked.rounds, help="of each way; medians count")
    command.add_argument("--think", type=float, default=asked.think_seconds, help="seconds of a turn, about")
    command.add_argument("--budget", type=float, default=asked.budget_seconds, help="seconds that one look may take")
    command.add_argument("--way", type=parse_list, default=(), help="parts of the names of the ways to measure")
    command.add_argument("--server", choices=("stand-in", "seaweedfs"), default=asked.server)
    command.add_argument("--seed", type=int, default=asked.seed)
    command.add_argument("--json", type=Path, help="where to write the result, instead of results/")
    command = commands.add_parser("report", help="write the newest results into the tables of docs/benchmarks.md")
    command.add_argument("--results", type=Path, default=results.FOLDER)
    command.add_argument("--document", type=Path, default=report.DOCUMENT)
    command = commands.add_parser("plots", help="draw the newest results (needs matplotlib: the extra `bench`)")
    command.add_argument("--results", type=Path, default=results.FOLDER)
    command.add_argument("--to", type=Path, default=plots.FOLDER)


def run(arguments: argparse.Namespace) -> int:
    """Carry a sub-command out; the exit code."""
    commands = {"virtual": _virtual, "peers": _peers, "report": _report, "plots": _plots}
    return commands[arguments.command](arguments)


def _virtual(arguments: argparse.Namespace) -> int:
    plan = Plan(
        size_bytes=arguments.size,
        profile=arguments.profile,
        nic_bytes_per_second=arguments.nic,
        policies=tuple(arguments.policy),
        programs=tuple(arguments.program),
        seeds=arguments.seeds,
        seed=arguments.seed,
        controls=not arguments.no_controls,
        fast=arguments.fast,
    )
    if arguments.trace:
        for program in plan.chosen:
            for policy in plan.policies:
                print(f"\n{program.name}, {policy}")
                print("\n".join(suite.trace(program, policy, plan.setting(plan.seed))))
        return 0
    result = suite.run(plan)
    return _judge(result, arguments.json)


def _peers(arguments: argparse.Namespace) -> int:
    ways = tuple(each for each in client.WAYS if any(part in each for part in arguments.way or [""]))
    plan = peers.Plan(
        size_bytes=arguments.size,
        profile=arguments.profile,
        nic_bytes_per_second=arguments.nic,
        rounds=arguments.rounds,
        think_seconds=arguments.think,
        budget_seconds=arguments.budget,
        ways=ways,
        server=arguments.server,
        seed=arguments.seed,
    )
    print(f"written to {results.write(peers.run(plan), arguments.json)}")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    filled = report.write(arguments.results, arguments.document)
    print(f"{arguments.document}: {', '.join(filled) or 'no markers for these results'}")
    return 0


def _plots(arguments: argparse.Namespace) -> int:
    print("\n".join(map(str, plots.write(arguments.results, arguments.to))))
    return 0


def _judge(result: dict[str, Any], path: Path | None) -> int:
    """Print and store which gates hold; 1 where one does not."""
    gates = (judge_fast if result["setting"].get("fast") else judge)(result["rows"])
    result["gates"] = [
        {"name": gate.name, "found": gate.found, "most": gate.most, "holds": gate.holds} for gate in gates
    ]
    print("\n".join(map(str, gates)))
    print(f"written to {results.write(result, path)}")
    return 0 if all(gate.holds for gate in gates) else 1
