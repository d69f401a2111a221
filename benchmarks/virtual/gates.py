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
    by_name = {(row["program"], row["policy"]): row for row in rows}
    gates: list[Gate] = []
    for program in PROGRAMS:
        row, off = by_name.get((program.name, PREFETCH)), by_name.get((program.name, "off"))
        if row is None:
            continue
        if off is not None:
            against = row["stall_seconds"] / max(off["stall_seconds"], 0.1)
            gates.append(Gate(f"stall of {program.name} against no reading ahead", against, program.most_stall))
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
