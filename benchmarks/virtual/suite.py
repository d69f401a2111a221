"""Run all programs under all policies: one seed gives one result on any machine."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks import results
from benchmarks.patterns.families import FAMILIES
from benchmarks.patterns.mixtures import MIXTURES
from benchmarks.patterns.program import Program
from benchmarks.patterns.texts import FRAME_BYTES
from benchmarks.virtual.bounds import Bounds, bounds, download_all, unforeseen
from benchmarks.virtual.classes import classify
from benchmarks.virtual.crew import Distance
from benchmarks.virtual.play import AFTER, FENCE, TOKEN_CHARACTERS, Played, Setting, ideal, play

PROGRAMS = FAMILIES + MIXTURES
POLICIES = ("off", "history", "code", "all")
"""`off` is the index alone."""
PLAIN_LIMIT_BYTES = 2 * 10**9
"""Up to this size texts are also read without search filters: that is pass after pass, for minutes above it."""
PASS_LIMIT_BYTES = 20 * 10**9
"""Up to this size passes really read; above it the addresses of a smaller run are replayed, stretched to the size."""
REPLAYED_BYTES = 10**9
DOLLARS_PER_GET = 0.4e-6
DOLLARS_PER_BYTE_ACROSS_REGIONS = 0.02e-9


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    size_bytes: int = 200_000_000
    profile: str = "far_150"
    nic_bytes_per_second: float = 100e6
    policies: Sequence[str] = POLICIES
    programs: Sequence[str] = ()
    """Parts of names; all where there are none."""
    seeds: int = 3
    """How many runs of each, whose seconds are added up."""
    seed: int = 0
    """The first of them."""
    controls: bool = True
    fast: bool = False
    """The model thinks for 1 s, writes 300 tokens a second, and its code ends with its last address."""

    @property
    def frames(self) -> int:
        return max(8, round(self.size_bytes / FRAME_BYTES))

    @property
    def chosen(self) -> list[Program]:
        return [each for each in PROGRAMS if not self.programs or any(part in each.name for part in self.programs)]

    def setting(self, seed: int) -> Setting:
        setting = Setting(self.frames, Distance(self.profile, self.nic_bytes_per_second), seed)
        return setting.fast() if self.fast else setting


def run(plan: Plan, told: Callable[[str], object] = print) -> dict[str, Any]:
    """Every program of the plan under every policy. Raises `AssertionError` where an answer is not the truth."""
    rows = []
    for program in plan.chosen:
        for row in measure(program, plan):
            rows.append(row)
            told(line(row))
    setting = asdict(plan) | {"frames": plan.frames}
    return results.make("virtual", plan.seed, setting, rows)


def measure(program: Program, plan: Plan) -> list[dict[str, Any]]:
    """The rows of one program: its policies, then the controls."""
    if program.full_pass and plan.size_bytes > PASS_LIMIT_BYTES:
        return _replay(program, plan)
    text = program.text(plan.frames)
    seeds = range(plan.seed, plan.seed + plan.seeds)
    ideals = [check_truth(program, ideal(program, text, plan.setting(seed))) for seed in seeds]
    distance, cache = plan.setting(0).distance, plan.setting(0).cache_bytes
    limits = [bounds(one.operations, distance, text.bytes + one.index_bytes, cache) for one in ideals]
    mix = dict(classify(ideals[0].operations, ideals[0].codes, text.characters))
    after = FENCE if plan.fast else AFTER + FENCE
    pace = TOKEN_CHARACTERS * plan.setting(0).tokens_per_second
    least = unforeseen(ideals[0].codes, ideals[0].outputs, after, distance.first_byte_seconds, pace)
    rows = []
    for policy in plan.policies:
        runs = [check_truth(program, play(program, text, policy, plan.setting(seed))) for seed in seeds]
        rows.append(_row(program, policy, plan, runs, limits) | {"mix": mix, "unforeseen_seconds": least})
    if plan.controls and plan.size_bytes <= PLAIN_LIMIT_BYTES:
        bare = [replace(plan.setting(seed), filters=False) for seed in seeds]
        for name, policy in (("no index", "off"), ("all, no index", "all")):
            plain = [check_truth(program, play(program, text, policy, one)) for one in bare]
            rows.append(_row(program, name, plan, plain, limits))
    if plan.controls:
        hasty = [replace(plan.setting(seed), terse=True) for seed in seeds]
        terse = [check_truth(program, play(program, text, "all", one)) for one in hasty]
        rows.append(_row(program, "terse code", plan, terse, limits))
        waits = [download_all(one.operations, distance, text.bytes) for one in ideals]
        rows.append(_bound(program, "download all", plan, waits, limits, text.bytes))
        rows.append(_bound(program, "reactive", plan, [one.reactive for one in limits], limits))
        rows.append(_bound(program, "oracle", plan, [one.oracle for one in limits], limits))
        rows.append(_bound(program, "oracle, one cache", plan, [one.bounded for one in limits], limits))
    return rows


def _replay(program: Program, plan: Plan) -> list[dict[str, Any]]:
    """Bounds alone: what a pass over so much text takes, however it is read."""
    small = replace(plan, size_bytes=REPLAYED_BYTES)
    text = program.text(small.frames)
    limits = []
    for seed in range(plan.seed, plan.seed + plan.seeds):
        one = check_truth(program, ideal(program, text, small.setting(seed)))
        times = plan.size_bytes / small.size_bytes
        passes = [each for each in one.operations if each.stop - each.start == text.characters]
        for operation in passes:
            operation.used_bytes = round(operation.used_bytes * times)
        setting = plan.setting(seed)
        limits.append(bounds(one.operations, setting.distance, plan.size_bytes, setting.cache_bytes))
    found = {"reactive": [one.reactive for one in limits], "oracle": [one.oracle for one in limits]}
    found["oracle, one cache"] = [one.bounded for one in limits]
    return [_bound(program, policy, plan, waits, limits) | {"replayed": True} for policy, waits in found.items()]


def check_truth(program: Program, played: Played) -> Played:
    if played.answer != played.truth:
        raise AssertionError(f"{program.name} found {played.answer!r}, planted was {played.truth!r}")
    return played


def _row(program: Program, policy: str, plan: Plan, runs: list[Played], limits: list[Bounds]) -> dict[str, Any]:
    stall = sum(run.stall_seconds for run in runs)
    used = sum(limit.used_bytes for limit in limits)
    fetched, ahead = sum(run.bytes for run in runs), sum(run.ahead_bytes for run in runs)
    ahead_used = sum(run.ahead_used_bytes for run in runs)
    gets = sum(run.gets for run in runs) / len(runs)
    row = _bound(program, policy, plan, [run.stall_seconds for run in runs], limits)
    row |= {
        "think_seconds": _mean([sum(stop - start for start, stop in run.thinking) for run in runs]),
        "open_seconds": _mean([run.open_seconds for run in runs]),
        "operations": len(runs[0].operations),
        "operations_that_waited": _mean([len({wait.operation for wait in run.waits}) for run in runs]),
        "gets": gets,
        "bytes": fetched / len(runs),
        "dollars": gets * DOLLARS_PER_GET,
        "dollars_across_regions": gets * DOLLARS_PER_GET + fetched / len(runs) * DOLLARS_PER_BYTE_ACROSS_REGIONS,
        "amplification": fetched / used if used else 1.0,
        "hedges": sum(run.hedges for run in runs) / len(runs),
        "ahead_bytes": ahead / len(runs),
        "precision": ahead_used / ahead if ahead else None,
        "recall": ahead_used / used if used else None,
        "skipped": runs[0].skipped_share,
        "slices": _percentiles([wait for run in runs for wait in _slice_waits(run)]),
    }
    return row | {"stall_seconds": stall / len(runs)}


def _bound(
    program: Program, policy: str, plan: Plan, stalls: list[float], limits: list[Bounds], size_bytes: int | None = None
) -> dict[str, Any]:
    oracle, reactive = sum(limit.oracle for limit in limits), sum(limit.reactive for limit in limits)
    used = sum(limit.used_bytes for limit in limits)
    stall = sum(stalls)
    return {
        "program": program.name,
        "family": program.family,
        "policy": policy,
        "size_bytes": plan.size_bytes,
        "stall_seconds": stall / len(stalls),
        "oracle_seconds": oracle / len(limits),
        "reactive_seconds": reactive / len(limits),
        "hidden": 1 - stall / reactive if reactive else None,
        "bounded_oracle_seconds": sum(limit.bounded for limit in limits) / len(limits),
        "regret": Bounds(oracle, reactive, 0.0, used).regret(stall),
        "bytes": size_bytes if size_bytes is not None else used / len(limits),
        "amplification": size_bytes * len(limits) / used if size_bytes is not None and used else 1.0,
    }


def _slice_waits(run: Played) -> list[float]:
    waited: dict[int, float] = {}
    for wait in run.waits:
        waited[wait.operation] = waited.get(wait.operation, 0.0) + wait.seconds
    return [waited.get(number, 0.0) for number, each in enumerate(run.operations) if each.kind == "slice"]


def _percentiles(values: list[float]) -> dict[str, float]:
    """Of the seconds that slices waited."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        "max": ordered[-1],
    }


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


def line(row: dict[str, Any]) -> str:
    """One row, for the terminal."""
    said = f"{row['program']:22} {row['policy']:12} stall {row['stall_seconds']:8.2f} s  regret {row['regret']:5.2f}"
    said += f"  {row['amplification']:5.2f} x bytes"
    if "gets" in row:
        precision = f"{row['precision']:.0%}" if row["precision"] is not None else "-"
        said += f"  {row['gets']:6.0f} GETs  precision {precision:>4}"
        said += f"  {row['operations_that_waited']:.0f} of {row['operations']} operations waited"
    return said


def trace(program: Program, policy: str, setting: Setting) -> list[str]:
    """What each operation of one run waited, a line each."""
    text = program.text(setting.frames)
    played = check_truth(program, play(program, text, policy, setting))
    waited: dict[int, float] = {}
    for wait in played.waits:
        waited[wait.operation] = waited.get(wait.operation, 0.0) + wait.seconds
    return [
        f"turn {each.turn:2} at {each.began:8.3f} s  {each.kind:9} [{each.start:,}:{each.stop:,}]  "
        f"{each.used_bytes:>11,} new bytes  waited {1000 * waited.get(number, 0.0):7.1f} ms"
        for number, each in enumerate(played.operations)
    ]
