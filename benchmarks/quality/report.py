"""Write the report of a folder of runs: Markdown with tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.options import head_line, row_line
from benchmarks.quality import compare
from benchmarks.quality.running import Outcome

Row = Mapping[str, Any]
_AGAINST = "rlm"


def write(out: Path, outcome: Outcome) -> Path:
    """`report.md`."""
    about = json.loads((out / "plan.json").read_text())
    machine, plan = about["machine"], about["plan"]
    parts = [
        "# Answers by arm and size",
        f"Model `{plan['model']}`, seed {plan['seed']}, {machine['date'][:10]}, commit {machine['commit']}, Python "
        f"{machine['python']}, {machine['cores']} cores, load {machine['load']}.",
        "Right: the normalised answer is the expected one. No percentage of fewer than 10 questions.",
        _table(outcome.rows),
        "## By family\n\n" + _by(outcome.rows, "family"),
        "## By what finds the evidence\n\n" + _by(outcome.rows, "tag"),
        "## Pairs\n\n" + _pairs(outcome.rows),
        "## `rlm` beside other loops, turn by turn\n\n" + _transcripts(outcome.rows),
        "## Left out\n\n" + _left_out(outcome),
    ]
    path = out / "report.md"
    path.write_text("\n\n".join(parts) + "\n")
    return path


def _table(rows: Sequence[Row]) -> str:
    lines = []
    for (size, arm), group in _groups(rows, "size_bytes", "arm").items():
        costs = [row["dollars"] for row in group]
        read = [row["bytes_read"] for row in group if row["bytes_read"] is not None]
        ends: dict[str, int] = {}
        for row in group:
            end = row["reason"].partition(":")[0]
            ends[end] = ends.get(end, 0) + 1
        lines.append([
            f"{arm}, {_size(size)}", compare.share(sum(row["right"] for row in group), len(group)),
            f"{sum(row['score'] for row in group) / len(group):.2f}", f"{median(row['turns'] for row in group):g}",
            f"{median(row['tokens'] for row in group):,.0f}", "-" if None in costs else f"{sum(costs):.4f}",
            f"{median(row['seconds'] for row in group):.2f}", f"{median(read) / 1e6:.2f}" if read else "-",
            str(sum(row["refused"] for row in group)), str(sum(row["identical"] for row in group)),
            str(sum(any("context.search(" in turn["reply"] for turn in row["transcript"]) for row in group)),
            ", ".join(f"{count} {end}" for end, count in sorted(ends.items())),
        ])  # fmt: skip
    heads = ("arm, size", "right", "score", "turns", "tokens", "dollars in all", "seconds", "MB read", "refused",
             "identical replies", "call context.search", "ends")  # fmt: skip
    return "Medians of a question, where nothing else is said.\n\n" + _table_of(heads, lines)


def _by(rows: Sequence[Row], field: str) -> str:
    names = sorted({row[field] for row in rows})
    lines = []
    for (size, arm), group in _groups(rows, "size_bytes", "arm").items():
        cells = []
        for name in names:
            of = [row["right"] for row in group if row[field] == name]
            cells.append(compare.share(sum(of), len(of)) if of else "-")
        lines.append([f"{arm}, {_size(size)}", *cells])
    return _table_of(("arm, size", *names), lines)


def _pairs(rows: Sequence[Row]) -> str:
    """`rlm` against each other arm of a size, and each of its sizes against its smallest."""
    groups = _groups(rows, "size_bytes", "arm")
    smallest = min((size for size, arm in groups if arm == _AGAINST), default=0)
    lines = []
    for (size, arm), group in groups.items():
        first = (size, _AGAINST) if arm != _AGAINST else (smallest, _AGAINST)
        if first not in groups or first == (size, arm):
            continue
        both = _paired(groups[first], group)
        if not both:
            continue
        found = compare.pair([bool(a["right"]) for a, _ in both], [bool(b["right"]) for _, b in both])
        low, high = found.interval
        shown = f"{100 * low:+.0f} to {100 * high:+.0f} points" if found.questions >= compare.FEWEST else "-"
        lines.append([f"{_AGAINST}, {_size(first[0])} / {arm}, {_size(size)}", str(found.questions),
                      str(found.only_first), str(found.only_second), f"{found.p:.3f}", shown])  # fmt: skip
    heads = ("first / second", "questions", "only first right", "only second right", "McNemar p", "difference, 95 %")
    return _table_of(heads, lines)


def _transcripts(rows: Sequence[Row]) -> str:
    groups = _groups(rows, "size_bytes", "arm")
    said = []
    sizes = sorted({row["size_bytes"] for row in rows})
    for size, other in ((size, other) for size in sizes for other in ("rlm-no-search", "rlm-str", "rlm-told")):
        both = _paired(groups.get((size, "rlm"), []), groups.get((size, other), []))
        parted = [(a["question"], how) for a, b in both if (how := compare.parting(a["transcript"], b["transcript"]))]
        if both:
            said.append(
                f"- {other}, {_size(size)}: the same replies and outputs in {len(both) - len(parted)} of {len(both)}"
            )
            said += [f"  - {question}: {how}" for question, how in parted]
    return "\n".join(said) or "`rlm` did not run beside another."


def _left_out(outcome: Outcome) -> str:
    lines = [f"- {name}: {why}" for name, why in outcome.left_out.items()]
    if outcome.unasked:
        lines.append(f"- {outcome.unasked} runs: the cap on dollars was reached")
    return "\n".join(lines) or "Nothing."


def _groups(rows: Sequence[Row], *fields: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[field] for field in fields), []).append(row)
    return found


def _paired(first: Sequence[Row], second: Sequence[Row]) -> list[tuple[Row, Row]]:
    others = {row["question"]: row for row in second}
    return [(row, others[row["question"]]) for row in first if row["question"] in others]


def _size(size: int) -> str:
    return f"{size / 1e9:g} GB" if size >= 1e9 else f"{size / 1e6:g} MB"


def _table_of(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join([head_line(*heads), *(row_line(*line) for line in lines)])
