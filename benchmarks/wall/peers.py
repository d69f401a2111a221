"""Peers side by side: each goes through the same session in a process of its own, in turns, over some rounds.

The server is the stand-in, calibrated by a profile and a link, or SeaweedFS as it is. Wrong answers end the run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.wall import client, guard
from benchmarks.wall.session import SEGMENT_BYTES, Session, session, text
from monocontext import publish
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import S3StandIn, SeaweedServer, profile
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND

OURS = ("monocontext", "str in memory")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    size_bytes: int = 200_000_000
    profile: str = "far_150"
    nic_bytes_per_second: float = 100e6
    rounds: int = 3
    think_seconds: float = 1.0
    budget_seconds: float = 30.0
    """Of one look; a way that needs more has lost, and need not be waited for."""
    ways: Sequence[str] = tuple(client.WAYS)
    server: str = "stand-in"
    """Or `seaweedfs`, which adds no latency."""
    seed: int = 0


@dataclass(slots=True)
class Server:
    """Where the text lies."""

    endpoint: str
    environment: dict[str, str]
    count: Callable[[], tuple[int, int]]
    """Requests and bytes since it was last asked; zeros where the server does not count."""


def run(plan: Plan, told: Callable[[str], object] = print) -> dict[str, Any]:
    """Measure. Raises `AssertionError` where a way read another text."""
    data = text(plan.size_bytes)
    played = session(data, plan.seed, plan.think_seconds)
    guards = guard.measure()
    taken: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, _server(plan, data) as server:
        path = Path(folder) / "session.json"
        path.write_text(played.to_json())
        (Path(folder) / client.TEXT).write_bytes(data)
        for number in range(plan.rounds):
            for name in plan.ways:
                server.count()
                found = _play(name, server, path, plan.budget_seconds)
                if found is None:
                    continue
                _check(name, found, played)
                found["requests"], found["bytes"] = server.count()
                taken[name].append(found)
                told(f"round {number + 1}: {name:34} {_stall(found):8.3f} s of waiting")
    rows = [_row(name, runs) for name, runs in taken.items()]
    missing = [name for name in plan.ways if name not in taken]
    judged = guard.may_judge(guards, profile(plan.profile).parts[0].median_seconds, plan.nic_bytes_per_second)
    setting = asdict(plan) | {"thinks": sum(turn["think"] for turn in played.turns)}
    return results.make("peers", plan.seed, setting, rows, guard=guards, judged=judged, missing=missing)


def _play(name: str, server: Server, path: Path, budget_seconds: float) -> dict[str, Any] | None:
    """What one client says; `None` where its package is not installed."""
    ours = name.startswith(OURS)
    python = Path(sys.executable) if ours else _peers() / "bin" / "python"
    if not python.exists():
        return None
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
    environment |= server.environment
    script = Path(client.__file__)
    if ours:
        environment["PYTHONPATH"] = str(script.parents[2])
    command = [str(python), str(script), name, server.endpoint, str(path), str(budget_seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr:
            return None
        raise AssertionError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _check(name: str, found: dict[str, Any], played: Session) -> None:
    for look, expected in zip(found["looks"], played.answers, strict=True):
        if look["found"] not in (expected, None):
            raise AssertionError(f"{name}: a {look['kind']} gave {look['found']}, expected {expected}")


def _stall(found: dict[str, Any]) -> float:
    return float(sum(look["seconds"] for look in found["looks"]))


def _row(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the rounds."""

    def median(of: Callable[[dict[str, Any]], float]) -> float:
        return statistics.median(map(of, runs))

    def longest(kind: str, least: int, most: float) -> Callable[[dict[str, Any]], float]:
        return lambda run: sum(
            look["seconds"] for look in run["looks"] if look["kind"] == kind and least <= look["bytes"] < most
        )

    return {
        "way": name,
        "version": runs[0]["version"],
        "stall_seconds": median(_stall),
        "open_seconds": median(lambda run: run["open_seconds"]),
        "first_seconds": median(lambda run: run["looks"][0]["seconds"]),
        "slice_seconds": median(longest("slice", 1_000_000, float("inf"))),
        "zoom_seconds": median(longest("slice", 0, 100_000)),
        "chunk_seconds": median(longest("slice", 100_000, 1_000_000)),
        "find_seconds": median(longest("find", 0, float("inf"))),
        "gave_up": any(run["gave_up"] for run in runs),
        "requests": median(lambda run: run["requests"]),
        "bytes": median(lambda run: run["bytes"]),
        "peak_rss_bytes": median(lambda run: run["peak_rss_bytes"]),
        "cpu_seconds": median(lambda run: run["cpu_seconds"]),
        "slices": sorted(look["seconds"] for run in runs for look in run["looks"] if look["kind"] == "slice"),
        "rounds": len(runs),
    }


@contextmanager
def _server(plan: Plan, data: bytes) -> Iterator[Server]:
    if plan.server == "seaweedfs":
        with SeaweedServer(bucket=client.BUCKET) as weed:
            signed = weed.client()
            _upload(lambda prefix: open_store(weed.url(prefix), client=signed), data)
            yield Server(weed.endpoint, dict(weed.environment), lambda: (0, 0))
        return
    _upload(lambda prefix: open_store(f"memory://peers/{prefix}"), data)
    with S3StandIn(
        open_store("memory://peers"),
        bucket=client.BUCKET,
        latency=plan.profile,
        connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
        link_bytes_per_second=plan.nic_bytes_per_second,
        seed=plan.seed,
    ) as server:

        def count() -> tuple[int, int]:
            counted = server.requests, server.bytes_sent
            server.reset_counts()
            return counted

        environment = {
            "AWS_ACCESS_KEY_ID": "access",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL_S3": server.endpoint,
            "AWS_DEFAULT_REGION": client.REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }
        yield Server(server.endpoint, environment, count)


def _upload(place: Callable[[str], Store], data: bytes) -> None:
    """One object for those who read ranges, segments for DeepRecurse's way, contexts for ours."""
    bucket = place("")
    bucket.put(client.TEXT, data)
    for number, start in enumerate(range(0, len(data), SEGMENT_BYTES)):
        bucket.put(f"{client.SEGMENTS}/segment_{number:06d}.log", data[start : start + SEGMENT_BYTES])
    for prefix, codec in (("packed", "zstd"), ("raw", "raw")):
        publish(data.decode("ascii"), place(prefix), codec=codec)


def _peers() -> Path:
    return Path(os.environ.get("MONOCONTEXT_PEERS") or Path.home() / ".venvs" / "peers")
