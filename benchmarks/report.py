"""Write the tables of benchmarks/tables.md from results: only the text between two markers is replaced.

<!-- harness: virtual-0.2GB-far_150 --> ... <!-- harness: end -->
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import results

DOCUMENT = Path("benchmarks/tables.md")
_MARKED = re.compile(r"(<!-- harness: (?!end)(\S+) -->\n).*?(<!-- harness: end -->)", re.DOTALL)
_SECONDS = (
    "off",
    "history",
    "code",
    "all",
    "oracle",
    "oracle, one cache",
    "reactive",
    "terse code",
    "no index",
    "all, no index",
    "download all",
)


def write(folder: Path, document: Path) -> list[str]:
    """Fill each pair of markers for which the folder has a result; the labels that were filled."""
    found = results.newest(folder)
    filled: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name = match[2]
        if name not in found:
            return match[0]
        filled.append(name)
        return f"{match[1]}{table(found[name])}\n{match[3]}"

    text = document.read_text()
    document.write_text(_MARKED.sub(fill, text))
    return filled


def table(result: Mapping[str, Any]) -> str:
    """A result as markdown, with machine and date above it."""
    makers: dict[str, Callable[[Mapping[str, Any]], str]] = {"virtual": _virtual, "peers": _peers}
    machine = result["machine"]
    head = (
        f"{machine['date'][:10]}, commit {result['commit']}, Python {machine['python']}, {machine['system']}, "
        f"{machine['cores']} cores, seed {result['seed']}."
    )
    return f"{head} {makers[result['benchmark']](result)}"


def _rows(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _virtual(result: Mapping[str, Any]) -> str:
    setting, by_program = result["setting"], _by_program(result)
    columns = [name for name in _SECONDS if any(name in rows for rows in by_program.values())]
    body = []
    for program, rows in by_program.items():
        judged = rows.get("all")
        cells = [program, *(_seconds(rows.get(name)) for name in columns)]
        if judged:
            cells += [f"{judged['regret']:.2f}", f"{judged['amplification']:.2f}"]
            cells += [_share(judged["precision"]), _share(judged["recall"]), f"{judged['gets']:.0f}"]
            cells += [f"{1e6 * judged['dollars']:.0f}"]
        else:
            cells += ["-"] * 6
        body.append(cells)
    heads = [
        "seconds of stall",
        *columns,
        "regret",
        "bytes moved / used",
        "precision",
        "recall",
        "GETs",
        "micro-dollars",
    ]
    said = (
        f"Virtual clock: {setting['size_bytes'] / 1e9:g} GB, profile `{setting['profile']}`, "
        f"{setting['nic_bytes_per_second'] / 1e6:g} MB/s, mean of {setting['seeds']} runs. "
        "Columns from `regret` on are of the policy `all`.\n\n"
    )
    return said + _rows(heads, body) + "\n\n" + _gates(result) + "\n\n" + _mix(by_program)


def _mix(by_program: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """What kinds of addresses the programs look at."""
    mixes = {program: row["mix"] for program, rows in by_program.items() if (row := rows.get("off"))}
    if not mixes:
        return ""
    said = [f"{program}: {', '.join(f'{n} {name}' for name, n in mix.items())}" for program, mix in mixes.items()]
    return f"Operations by kind of address: {'; '.join(said)}."


def _gates(result: Mapping[str, Any]) -> str:
    gates = result.get("gates", [])
    failing = [gate for gate in gates if not gate["holds"]]
    if not failing:
        return f"All {len(gates)} gates hold."
    said = "; ".join(f"{gate['name']} {gate['found']:.2f} (at most {gate['most']:g})" for gate in failing)
    return f"{len(gates) - len(failing)} of {len(gates)} gates hold. Not held: {said}."


def _peers(result: Mapping[str, Any]) -> str:
    setting, guards = result["setting"], result["guard"]
    where = (
        "SeaweedFS, no latency added"
        if setting["server"] == "seaweedfs"
        else f"stand-in, profile `{setting['profile']}`, {setting['nic_bytes_per_second'] / 1e6:g} MB/s"
    )
    said = (
        f"Wall clock: {setting['size_bytes'] / 1e6:g} MB, {where}, median of {setting['rounds']} interleaved rounds, "
        f"{setting['thinks']:.0f} s of thinking in a session; MB of bodies that were sent to their end. "
        f"{_describe_guards(guards, result['machine']['cores'], result['judged'])}\n\n"
    )
    heads = ["seconds of waiting", "all", "open", "first look", "5 MB slice", "short slices", "10 chunks", "find"]
    heads += ["requests", "MB", "micro-dollars", "peak MiB", "CPU s"]
    body = []
    for row in sorted(result["rows"], key=lambda row: row["stall_seconds"]):
        name = f"{row['way']} {row['version']}".strip()
        more = "> " if row["gave_up"] else ""
        parts = ("open", "first", "slice", "zoom", "chunk")
        cells = [name, f"{more}{row['stall_seconds']:.2f}", *(f"{row[f'{part}_seconds']:.3f}" for part in parts)]
        cells.append(f"{more}{row['find_seconds']:.2f}")
        counted = (row["requests"], row["bytes"] / 1e6, row["requests"] * 0.4)
        cells += ["-" if setting["server"] == "seaweedfs" else f"{each:.0f}" for each in counted]
        body.append([*cells, f"{row['peak_rss_bytes'] / (1 << 20):.0f}", f"{row['cpu_seconds']:.1f}"])
    missing = f"\n\nNot installed here: {', '.join(result['missing'])}." if result["missing"] else ""
    return said + _rows(heads, body) + missing


def _by_program(result: Mapping[str, Any]) -> dict[str, dict[str, Mapping[str, Any]]]:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in result["rows"]:
        found.setdefault(row["program"], {})[row["policy"]] = row
    return found


def _seconds(row: Mapping[str, Any] | None) -> str:
    return "-" if row is None else f"{row['stall_seconds']:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _describe_guards(guards: Mapping[str, float], cores: int, judged: bool) -> str:
    said = (
        f"Guard: {1000 * guards['overhead_seconds']:.2f} ms a GET of the stand-in itself, "
        f"{guards['loopback_bytes_per_second'] / 1e6:.0f} MB/s on loopback, load {guards['load']:.1f}, "
        f"{guards['steal']:.0%} stolen"
    )
    if guards["load"] > cores:
        said += " (noisy: compare within the table)"
    return said + ("." if judged else ": reported, not judged.")
