"""Write the report of a folder of runs, as tables in Markdown.

Arms are compared question by question: by the exact McNemar test, and by the first turn in which transcripts differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.options import head_line, row_line
from benchmarks.quality.running import Outcome

Row = Mapping[str, Any]
Groups = Mapping[tuple[int, str], Sequence[Row]]
"""Rows by size and arm."""
_AGAINST, _OTHER = "rlm", "rlm-str"
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
        "\n## Pairs\n",
        *_pairs(groups),
        f"\n## `{_AGAINST}` and `{_OTHER}`, turn by turn\n",
        *_transcripts(groups),
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
        found = [[row["right"] for row in group if row["family"] == family] for family in families]
        yield row_line(f"{arm}, {_size(size)}", *(share(sum(right), len(right)) for right in found))


def _pairs(groups: Groups) -> Iterator[str]:
    """`rlm` against the other arms at each size, and against itself at its smallest size."""
    yield head_line("first / second", "questions", "only first right", "only second right", "McNemar p")
    smallest = min((size for size, arm in groups if arm == _AGAINST), default=0)
    for (size, arm), group in groups.items():
        first = (smallest if arm == _AGAINST else size, _AGAINST)
        both = _paired(groups.get(first, []), group)
        if first == (size, arm) or not both:
            continue
        found = pair([bool(a["right"]) for a, _ in both], [bool(b["right"]) for _, b in both])
        name = f"{_AGAINST}, {_size(first[0])} / {arm}, {_size(size)}"
        yield row_line(name, found.questions, found.only_first, found.only_second, f"{found.p:.3f}")


def _transcripts(groups: Groups) -> Iterator[str]:
    for size in dict.fromkeys(size for size, _ in groups):
        both = _paired(groups.get((size, _AGAINST), []), groups.get((size, _OTHER), []))
        parted = [(a["question"], how) for a, b in both if (how := parting(a["transcript"], b["transcript"]))]
        yield f"- {_size(size)}: the same replies and outputs in {len(both) - len(parted)} of {len(both)}"
        yield from (f"  - {question}: {how}" for question, how in parted)


def _paired(first: Sequence[Row], second: Sequence[Row]) -> list[tuple[Row, Row]]:
    others = {row["question"]: row for row in second}
    return [(row, others[row["question"]]) for row in first if row["question"] in others]


def _size(size: int) -> str:
    return f"{size / 1e9:g} GB" if size >= 1e9 else f"{size / 1e6:g} MB"


@dataclass(frozen=True, slots=True)
class Pairing:
    """The comparison of two arms over the same questions."""

    questions: int
    only_first: int
    """Questions that only the first arm answered right."""
    only_second: int
    p: float
    """The probability that the arms differ this much by chance: exact McNemar test, two-sided."""


def pair(first: Sequence[bool], second: Sequence[bool]) -> Pairing:
    """Compare two arms, given whether each question was answered right on the first and on the second."""
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} results are not pairs")
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    differing = only_first + only_second
    tail = sum(comb(differing, k) for k in range(min(only_first, only_second) + 1)) / 2**differing
    return Pairing(len(first), only_first, only_second, min(1.0, 2 * tail))


def share(right: int, of: int) -> str:
    """`17 of 20 (85 %)`, without the percentage for few questions."""
    return f"{right} of {of}" + (f" ({100 * right / of:.0f} %)" if of >= FEWEST else "")


def parting(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]]) -> str:
    """The first difference between two transcripts; empty if they are equal."""
    for turn, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one["reply"] != other["reply"]:
            return f"turn {turn}: another reply"
        if one["output"] != other["output"]:
            return f"turn {turn}: the same reply, another output"
    return "" if len(first) == len(second) else f"{len(first)} and {len(second)} turns"
