"""The gates: limits that the rows of a result must keep. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.patterns import PROGRAMS

PREFETCH = "all"
"""The policy that the gates judge."""
TEN_GB = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure and its limit."""

    name: str
    found: float
    most: float

    @property
    def holds(self) -> bool:
        return self.found <= self.most

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'FAILS'}  {self.name}: {self.found:.3f}, at most {self.most:g}"


def judge(rows: Iterable[Mapping[str, Any]]) -> list[Gate]:
    """The gates that apply to these rows, which are of one size: the policy PREFETCH, and reading on demand."""
    by_name = _by_name(rows)
    found: list[Gate] = []
    for program in PROGRAMS:
        row, off = by_name.get((program.name, PREFETCH)), by_name.get((program.name, "off"))
        if row is None:
            continue
        if row["size_bytes"] >= TEN_GB:
            found += _large(program.name, row, prunable=program.prunable, full_pass=program.full_pass)
            continue
        if not program.full_pass:
            found.append(Gate(f"regret of {program.name}", row["regret"], program.regret))
        if program.full_pass or program.name in ("linear chunk scan", "batched map-reduce"):
            found.append(Gate(f"amplification of {program.name}", row["amplification"], 1.1))
        if program.name == "literal zooms":
            found.append(Gate("stall of literal zooms, seconds", row["stall_seconds"], 0.0))
            found.append(Gate("bytes moved per byte used, literal zooms", row["amplification"], 1.3))
            found.append(Gate("hints that miss, literal zooms", 1 - (row["precision"] or 0.0), 0.15))
        if program.name == "interleaved scans" and off is not None:
            against = row["stall_seconds"] / off["stall_seconds"] if off["stall_seconds"] else 1.0
            found.append(Gate("interleaved scans, stall against no reading ahead", against, 1.0))
    return found


def _by_name(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(row["program"], row["policy"]): row for row in rows}


def _large(name: str, row: Mapping[str, Any], *, prunable: bool, full_pass: bool) -> list[Gate]:
    if prunable:
        return [
            Gate(f"stall of {name}, seconds", row["stall_seconds"], 1.5),
            Gate(f"share of frames that {name} did not skip", 1 - row["skipped"], 0.01),
        ]
    if full_pass:
        # An oracle with unlimited memory reads gigabytes while the model thinks: only one with a cache is a fair limit.
        least = max(row["bounded_oracle_seconds"], 0.1)
        return [Gate(f"stall of {name} against the oracle with one cache", row["stall_seconds"] / least, 1.15)]
    return []
