"""Write the report of a folder of runs, as tables in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.options import head_line, row_line
from benchmarks.quality.running import Outcome

Row = Mapping[str, Any]
Groups = Mapping[tuple[int, str], Sequence[Row]]
"""Rows by size and arm."""
FEWEST = 10
"""Questions below which no percentage is written."""


def write(out: Path, outcome: Outcome) -> Path:
    """Write `report.md` and return its path."""
    about = json.loads((out / "plan.json").read_text())
    machine, plan = about["machine"], about["plan"]
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in outcome.rows:
        groups.setdefault((row["size_bytes"], row["arm"]), []).append(row)
    lines = [
        "# Answers by arm and size\n",
        f"Model `{plan['model']}`, seed {plan['seed']}, {machine['date'][:10]}, commit {machine['commit']}, Python "
        f"{machine['python']}, {machine['cores']} cores, load {machine['load']}. Medians of a question.\n",
        *_table(groups),
        "\n## By family\n",
        *_by_family(groups),
        "\n## Left out\n",
        *(f"- {name}: too large to copy to a sandbox for each question" for name in outcome.left_out),
        *([f"- {outcome.unasked} runs: the cap on dollars was reached"] if outcome.unasked else []),
    ]
    path = out / "report.md"
    path.write_text("\n".join(lines) + "\n")
    return path


def _table(groups: Groups) -> Iterator[str]:
    yield head_line("arm, size", "right", "turns", "tokens", "dollars in all", "seconds", "MB read", "refused")
    for (size, arm), group in groups.items():
        costs = [row["dollars"] for row in group]
        read = [row["bytes_read"] for row in group if row["bytes_read"] is not None]
        yield row_line(
            f"{arm}, {_size(size)}",
            share(sum(row["right"] for row in group), len(group)),
            f"{median(row['turns'] for row in group):g}",
            f"{median(row['tokens'] for row in group):,.0f}",
            "-" if None in costs else f"{sum(costs):.4f}",
            f"{median(row['seconds'] for row in group):.2f}",
            f"{median(read) / 1e6:.2f}" if read else "-",
            sum(row["refused"] for row in group),
        )


def _by_family(groups: Groups) -> Iterator[str]:
    families = sorted({row["family"] for group in groups.values() for row in group})
    yield head_line("arm, size", *families)
    for (size, arm), group in groups.items():
        result = [[row["right"] for row in group if row["family"] == family] for family in families]
        yield row_line(f"{arm}, {_size(size)}", *(share(sum(right), len(right)) for right in result))


def _size(size: int) -> str:
    return f"{size / 1e9:g} GB" if size >= 1e9 else f"{size / 1e6:g} MB"


def share(right: int, of: int) -> str:
    """`17 of 20 (85 %)`, without the percentage for few questions."""
    return f"{right} of {of}" + (f" ({100 * right / of:.0f} %)" if of >= FEWEST else "")
