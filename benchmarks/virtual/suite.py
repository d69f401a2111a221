"""Run programs under several read-ahead policies, and check results. A seed gives the same result on any machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.options import Commands, amount, at_least_1, head_line, machine_line, parse_list, row_line
from benchmarks.patterns import PROGRAMS
from benchmarks.patterns.program import Program
from benchmarks.patterns.texts import FRAME_BYTES
from benchmarks.virtual.play import Played, play
from benchmarks.virtual.workers import Distance
from monocontext.engine.prefetch.streams import Prefetch

POLICIES: tuple[Prefetch, ...] = ("off", "history", "code", "all")  # see `Prefetch`
FAR = Distance("far_150", 100e6)
PREFETCH = "all"  # the policy that the gates judge
PASS_LIMIT_BYTES = 20 * 10**9  # programs that read everything run up to this size only
_LEAST_FRAMES = 8  # programs plant lines at different places, which need frames of their own
_LEAST_STALL_SECONDS = 0.1  # less waiting without reading ahead counts as this much


@dataclass(frozen=True, slots=True)
class Plan:
    """The programs, the size of their texts, and the policies of one run."""

    size_bytes: int = 200_000_000
    policies: Sequence[Prefetch] = ("off", "all")
    programs: Sequence[str] = ()  # parts of names; empty for all programs
    seeds: int = 3  # runs of each program, whose figures are averaged

    @property
    def frames(self) -> int:
        return max(_LEAST_FRAMES, round(self.size_bytes / FRAME_BYTES))

    @property
    def chosen(self) -> list[Program]:
        """The programs that the plan names, without full passes over a text that is too large for them."""
        named = [item for item in PROGRAMS if not self.programs or any(part in item.name for part in self.programs)]
        return [item for item in named if not item.full_pass or self.size_bytes <= PASS_LIMIT_BYTES]


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one program under one policy: means over the runs, and ratios of their sums."""

    program: str
    policy: str
    stall_seconds: float
    amplification: float  # bytes moved for each byte used
    precision: float | None  # the share of the bytes read ahead that code used; None if none were


def add(commands: Commands) -> None:
    plan = Plan()
    command = commands.add_parser("virtual", help="programs over a context on a virtual clock, under each policy")
    command.add_argument("--size", type=amount, default=plan.size_bytes, help="size, such as 0.2GB or 1TB")
    command.add_argument("--policy", type=parse_list, default=plan.policies, help=f"policies: {','.join(POLICIES)}")
    command.add_argument("--program", type=parse_list, default=(), help="parts of the names of programs")
    command.add_argument("--seeds", type=at_least_1, default=plan.seeds, help="runs of each program, averaged")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Run, print the table and the gates; returns 1 if a gate fails."""
    plan = Plan(arguments.size, policies=arguments.policy, programs=arguments.program, seeds=arguments.seeds)
    if unknown := [name for name in plan.policies if name not in POLICIES]:
        raise SystemExit(f"no policy {unknown[0]!r}: choose from {', '.join(POLICIES)}")
    if not plan.chosen:
        names, limit = ", ".join(item.name for item in PROGRAMS), f"full passes run up to {PASS_LIMIT_BYTES / 1e9:g} GB"
        raise SystemExit(f"no program to run: choose from {names}; {limit}")
    print(f"{plan.size_bytes / 1e9:g} GB, {FAR.profile}; means of {plan.seeds} runs\n({machine_line()})\n")
    gates = judge(run(plan))
    print("", *gates, sep="\n")
    return 0 if all(gate.holds for gate in gates) else 1


def run(plan: Plan) -> list[Row]:
    """Print and return the rows of every program and policy. Raises `AssertionError` for a wrong answer."""
    rows = []
    print(head_line("seconds of waiting in one run", *plan.policies, f"bytes moved per byte used, {plan.policies[-1]}"))
    for program in plan.chosen:
        result = _measure(program, plan)
        waits = [f"{item.stall_seconds:.2f}" for item in result]
        print(row_line(program.name, *waits, f"{result[-1].amplification:.2f}"))
        rows += result
    return rows


def _measure(program: Program, plan: Plan) -> list[Row]:
    """The rows of one program, one for each policy."""
    text = program.text(plan.frames)
    rows = []
    for policy in plan.policies:
        runs = [check_truth(program, play(program, text, policy, FAR, seed)) for seed in range(plan.seeds)]
        ahead, used = sum(run.ahead_bytes for run in runs), sum(run.used_bytes for run in runs)
        rows.append(Row(
            program.name, policy,
            stall_seconds=sum(run.stall_seconds for run in runs) / len(runs),
            amplification=sum(run.bytes for run in runs) / used if used else 1.0,
            precision=sum(run.ahead_used_bytes for run in runs) / ahead if ahead else None,
        ))  # fmt: skip
    return rows


def check_truth(program: Program, played: Played) -> Played:
    """Return `played` unchanged. Raises `AssertionError` if its answer is wrong."""
    if played.answer != played.truth:
        raise AssertionError(f"{program.name} gave the answer {played.answer!r}, expected {played.truth!r}")
    return played


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


def judge(rows: Iterable[Row]) -> list[Gate]:
    """The gates for the rows of the policy PREFETCH, whose stalls are compared with those of the policy `off`."""
    rows_by_key = {(row.program, row.policy): row for row in rows}
    gates: list[Gate] = []
    for program in PROGRAMS:
        row, off = rows_by_key.get((program.name, PREFETCH)), rows_by_key.get((program.name, "off"))
        if row and off:
            ratio = row.stall_seconds / max(off.stall_seconds, _LEAST_STALL_SECONDS)
            gates.append(Gate(f"stall of {program.name} against no reading ahead", ratio, program.most_stall))
        if row:
            gates += _gates_of(program, row)
    return gates


def _gates_of(program: Program, row: Row) -> Iterator[Gate]:
    """The gates of a program that need no comparison with the policy `off`."""
    if program.most_amplification is not None:
        yield Gate(f"amplification of {program.name}", row.amplification, program.most_amplification)
    if program.most_misses is not None:
        yield Gate(f"stall of {program.name}, seconds", row.stall_seconds, 0.0)
        yield Gate(f"hints that miss, {program.name}", 1 - (row.precision or 0.0), program.most_misses)
