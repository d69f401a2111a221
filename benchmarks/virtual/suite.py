"""Run programs under policies of reading ahead, and judge the figures. A seed gives the same result on any machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.options import Commands, amount, head_line, machine_line, parse_list, row_line
from benchmarks.patterns import PROGRAMS
from benchmarks.patterns.program import Program
from benchmarks.patterns.texts import FRAME_BYTES
from benchmarks.virtual.play import Played, Setting, play
from benchmarks.virtual.workers import Distance

POLICIES = ("off", "history", "code", "all")  # read ahead by nothing, past reads, the code as it streams, or both
PASS_LIMIT_BYTES = 20 * 10**9  # programs that read everything run up to this size only


@dataclass(frozen=True, slots=True)
class Plan:
    """The programs, policies and conditions of one run."""

    size_bytes: int = 200_000_000
    profile: str = "far_150"
    link_bytes_per_second: float = 100e6
    policies: Sequence[str] = ("off", "all")
    programs: Sequence[str] = ()  # parts of names; empty for all programs
    seeds: int = 3  # runs of each program, whose figures are averaged
    seed: int = 0  # the seed of the first run

    @property
    def frames(self) -> int:
        return max(8, round(self.size_bytes / FRAME_BYTES))

    @property
    def chosen(self) -> list[Program]:
        named = [item for item in PROGRAMS if not self.programs or any(part in item.name for part in self.programs)]
        if not named:
            raise ValueError(f"no program has a name with {self.programs}: {', '.join(item.name for item in PROGRAMS)}")
        return [item for item in named if not item.full_pass or self.size_bytes <= PASS_LIMIT_BYTES]

    def setting(self, seed: int) -> Setting:
        return Setting(self.frames, Distance(self.profile, self.link_bytes_per_second), seed)


def add(commands: Commands) -> None:
    plan = Plan()
    command = commands.add_parser("virtual", help="programs over a context on a virtual clock, under each policy")
    command.add_argument("--size", type=amount, default=plan.size_bytes, help="size, such as 0.2GB or 1TB")
    command.add_argument("--policy", type=parse_list, default=plan.policies, help=f"policies: {','.join(POLICIES)}")
    command.add_argument("--program", type=parse_list, default=(), help="parts of the names of programs")
    command.add_argument("--seeds", type=int, default=plan.seeds, help="runs of each program, averaged")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Run, print the table and the gates; returns 1 if a gate fails."""
    plan = Plan(arguments.size, policies=arguments.policy, programs=arguments.program, seeds=arguments.seeds)
    print(f"{plan}\n({machine_line()})\n")
    gates = judge(run(plan))
    print("", *gates, sep="\n")
    return 0 if all(gate.holds for gate in gates) else 1


def run(plan: Plan) -> list[dict[str, Any]]:
    """Print and return the rows of every program and policy. Raises `AssertionError` for a wrong answer."""
    rows = []
    print(head_line("seconds of waiting in one run", *plan.policies, "bytes moved, of those used"))
    for program in plan.chosen:
        result = _measure(program, plan)
        waits = [f"{item['stall_seconds']:.2f}" for item in result]
        print(row_line(program.name, *waits, f"{result[-1]['amplification']:.2f}"))
        rows += result
    return rows


def _measure(program: Program, plan: Plan) -> list[dict[str, Any]]:
    """The rows of one program, one for each policy: means over the runs, and ratios of their sums."""
    text = program.text(plan.frames)
    rows = []
    for policy in plan.policies:
        settings = map(plan.setting, range(plan.seed, plan.seed + plan.seeds))
        runs = [check_truth(program, play(program, text, policy, setting)) for setting in settings]
        ahead, used = sum(run.ahead_bytes for run in runs), sum(run.used_bytes for run in runs)
        row = {"program": program.name, "policy": policy, "size_bytes": plan.size_bytes}
        rows.append(row | {
            "stall_seconds": sum(run.stall_seconds for run in runs) / len(runs),
            "amplification": sum(run.bytes for run in runs) / used if used else 1.0,
            "precision": sum(run.ahead_used_bytes for run in runs) / ahead if ahead else None,
            "skipped": sum(run.skipped_share for run in runs) / len(runs),
        })  # fmt: skip
    return rows


def check_truth(program: Program, played: Played) -> Played:
    if played.answer != played.truth:
        raise AssertionError(f"{program.name} found {played.answer!r}, expected {played.truth!r}")
    return played


PREFETCH = "all"  # the policy that the gates judge
TEN_GB = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure and its limit."""

    name: str
    value: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'FAILS'}  {self.name}: {self.value:.3f}, at most {self.limit:g}"


def judge(rows: Iterable[Mapping[str, Any]]) -> list[Gate]:
    """The gates that apply to these rows, which are of one size: the policy PREFETCH, and reading on demand."""
    by_name = {(row["program"], row["policy"]): row for row in rows}
    gates: list[Gate] = []
    for program in PROGRAMS:
        row, off = by_name.get((program.name, PREFETCH)), by_name.get((program.name, "off"))
        if row is None:
            continue
        if off is not None:
            ratio = row["stall_seconds"] / max(off["stall_seconds"], 0.1)
            gates.append(Gate(f"stall of {program.name} against no reading ahead", ratio, program.most_stall))
        if row["size_bytes"] >= TEN_GB:
            if program.prunable:
                gates.append(Gate(f"stall of {program.name}, seconds", row["stall_seconds"], 1.5))
                gates.append(Gate(f"share of frames that {program.name} did not skip", 1 - row["skipped"], 0.01))
            continue
        if program.full_pass or program.name in ("linear chunk scan", "batched map-reduce"):
            gates.append(Gate(f"amplification of {program.name}", row["amplification"], 1.1))
        if program.name == "literal zooms":
            gates.append(Gate("stall of literal zooms, seconds", row["stall_seconds"], 0.0))
            gates.append(Gate("bytes moved per byte used, literal zooms", row["amplification"], 1.3))
            gates.append(Gate("hints that miss, literal zooms", 1 - (row["precision"] or 0.0), 0.15))
    return gates
