"""Plot results (needs matplotlib: the extra `bench`). Small SVG files, the same for the same result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.virtual.crew import Distance, LinkedCrew
from benchmarks.virtual.play import Played, Setting, play
from benchmarks.virtual.suite import POLICIES, PROGRAMS
from monocontext import Monocontext, publish
from monocontext.engine.fetch.hedging import Hedge
from monocontext.stores import open_store

FOLDER = Path("docs/plots")
_COLOURS = {"off": "#b8b8b8", "history": "#e0a050", "code": "#5a9bd4", "all": "#3a7d44"}
_TIMELINE = "multi-hop search"


def write(folder: Path, place: Path) -> list[Path]:
    """Draw what the results of a folder allow; the files."""
    found = results.newest(folder)
    place.mkdir(parents=True, exist_ok=True)
    made = []
    far = found.get("virtual-0.2GB-far_150")
    if far is not None:
        made += [_bars(far, place / "think-and-stall.svg"), _waste(far, place / "bytes-against-stall.svg")]
    near = [each for name, each in found.items() if name.startswith("virtual-") and name.endswith("-s3_standard_hot")]
    if len(near) > 1:
        made.append(_by_size(near, place / "stall-against-size.svg"))
    made.append(_latencies(place / "slice-latency.svg"))
    made.append(_timeline(place / "timeline.svg"))
    return made


def _figure(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    matplotlib = import_module("matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "monocontext", "font.size": 8, "svg.fonttype": "none"})
    return import_module("matplotlib.pyplot").subplots(1, columns, figsize=(width, height))  # type: ignore[no-any-return]


def _save(figure: Any, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    import_module("matplotlib.pyplot").close(figure)
    return path


def draw(path: Path, fill: Callable[[Any], None]) -> Path:
    """One pair of axes, filled and saved."""
    figure, axes = _figure(6, 4)
    fill(axes)
    return _save(figure, path)


def _bars(result: Mapping[str, Any], path: Path) -> Path:
    """Thinking and stall of each program, a bar a policy, with a mark where the oracle ends."""
    rows = [row for row in result["rows"] if row["policy"] in POLICIES]
    programs = list(dict.fromkeys(row["program"] for row in rows))
    policies = [policy for policy in POLICIES if any(row["policy"] == policy for row in rows)]
    figure, axes = _figure(8, 6)
    height = 0.8 / len(policies)
    for row in rows:
        y = programs.index(row["program"]) + policies.index(row["policy"]) * height
        axes.barh(y, row["think_seconds"], height, color="#e8e8e8")
        axes.barh(y, row["stall_seconds"], height, left=row["think_seconds"], color=_COLOURS[row["policy"]])
        end = row["think_seconds"] + row["oracle_seconds"]
        axes.plot([end, end], [y - height / 2, y + height / 2], color="black", linewidth=1)
    axes.set_yticks([number + 0.4 - height / 2 for number in range(len(programs))], programs)
    axes.invert_yaxis()
    axes.set_xlabel("seconds: thinking (light), then stall by policy; black: where the oracle ends")
    patches = import_module("matplotlib.patches")
    axes.legend(handles=[patches.Patch(color=_COLOURS[policy], label=policy) for policy in policies])
    return _save(figure, path)


def _by_size(found: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Median stall over the programs against the size of the text, a line a policy."""
    figure, axes = _figure(6, 4)
    ordered = sorted(found, key=lambda result: float(result["setting"]["size_bytes"]))
    for policy in (*POLICIES, "reactive", "oracle"):
        points = []
        for result in ordered:
            waits = sorted(row["stall_seconds"] for row in result["rows"] if row["policy"] == policy)
            if waits:
                points.append((result["setting"]["size_bytes"] / 1e9, max(waits[len(waits) // 2], 1e-3)))
        if points:
            axes.loglog(*zip(*points, strict=True), marker="o", label=policy, color=_COLOURS.get(policy))
    axes.set_xlabel("GB of text (s3_standard_hot, 600 MB/s)")
    axes.set_ylabel("seconds of stall, median program (at least 1 ms)")
    axes.legend()
    return _save(figure, path)


def _waste(result: Mapping[str, Any], path: Path) -> Path:
    """Bytes moved against stall: a point a program and policy."""
    figure, axes = _figure(6, 4)
    for policy in POLICIES:
        rows = [row for row in result["rows"] if row["policy"] == policy]
        axes.scatter(
            [row["amplification"] for row in rows],
            [row["stall_seconds"] for row in rows],
            label=policy,
            color=_COLOURS[policy],
            s=14,
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_xlabel("bytes moved per byte used")
    axes.set_ylabel("seconds of stall")
    axes.legend()
    return _save(figure, path)


def _play_once(name: str, policy: str, *, hedge: bool = True, frames: int = 763) -> Played:
    program = next(each for each in PROGRAMS if each.name == name)
    setting = Setting(frames, Distance("far_150", 100e6), hedge=hedge)
    return play(program, program.text(frames), policy, setting)


def _latencies(path: Path) -> Path:
    """How long a slice waits: of 50 segments, with second requests and without, and of one frame, read ahead or not."""
    figure, axes = _figure(6, 4)
    cases = {
        "50 segments, no hedging": _fan_out(None),
        "50 segments, hedged at p99": _fan_out("p99"),
        "50 segments, hedged at p95": _fan_out("p95"),
        "zooms, cold": _slice_waits(_play_once("literal zooms", "off")),
        "zooms, read ahead": _slice_waits(_play_once("literal zooms", "all")),
    }
    for name, waits in cases.items():
        ordered = sorted(1000 * seconds for seconds in waits)
        axes.step(ordered, [(number + 1) / len(ordered) for number in range(len(ordered))], where="post", label=name)
    axes.set_xlim(-10, 1000)
    axes.set_xlabel("milliseconds that a slice waits (far_150)")
    axes.set_ylabel("share of slices")
    axes.legend(loc="lower right")
    return _save(figure, path)


def _fan_out(hedge: Hedge | None, slices: int = 400, segments: int = 50) -> list[float]:
    """Seconds of slices over 50 segments of 100 KB, nothing cached."""
    size = 100_000
    text = "".join(f"{number:099d}\n" for number in range(segments * size // 100))
    store = open_store("memory://plots")
    publish(text, store, frame_bytes=size, segment_bytes=size, codec="raw", filters=False, replace=True)
    crew = LinkedCrew(Distance("far_150", 600e6), seed=0)
    context = Monocontext.open(store, workers=crew, cache_bytes=0, hedge=hedge, prefetch="off")
    waits = []
    for _ in range(slices):
        began = crew.now()
        if context[:] != text:
            raise AssertionError("a slice over all segments is not the text")
        waits.append(crew.now() - began)
        crew.pass_time(2.0)  # what was asked for twice comes twice: nothing of it is left for the next
    return waits


def _slice_waits(played: Played) -> list[float]:
    waited = dict.fromkeys(range(len(played.operations)), 0.0)
    for wait in played.waits:
        waited[wait.operation] = waited.get(wait.operation, 0.0) + wait.seconds
    return [waited[number] for number, each in enumerate(played.operations) if each.kind == "slice"]


def _timeline(path: Path) -> Path:
    """One program without and with reading ahead: what the model, the link and the code are doing."""
    figure, places = _figure(9, 3.2, 2)
    for axes, policy in zip(places, ("off", "all"), strict=True):
        played = _play_once(_TIMELINE, policy)
        spans = (
            ("model thinks", played.thinking, "#e8e8e8"),
            ("link is busy", [(sent, arrived) for sent, arrived, _ in played.transfers], "#5a9bd4"),
            ("code waits", [(wait.began, wait.began + wait.seconds) for wait in played.waits], "#c0392b"),
        )
        for number, (_, stretches, colour) in enumerate(spans):
            axes.broken_barh([(a, b - a) for a, b in stretches], (2 - number, 0.8), color=colour)
        axes.set_ylim(0, 3)
        axes.set_yticks([2.4, 1.4, 0.4], [name for name, _, _ in spans])
        axes.set_xlabel("seconds")
        axes.set_title(f"{_TIMELINE}, prefetch {policy}: {played.stall_seconds:.2f} s of stall")
    return _save(figure, path)
