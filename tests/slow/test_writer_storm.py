"""Processes that change one context in all ways and are killed at random: nothing is lost, doubled, stale or left."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monocontext import Monocontext, delete, publish
from monocontext.format.manifest import read_newest
from monocontext.stores import open_store
from monocontext.testing import SeaweedServer
from monocontext.writing.upkeep.forget import find_leftovers
from monocontext.writing.upkeep.verify import verify

WRITERS = 4
KILLS = 20
WRITER = r"""
import json, os, pathlib, random, sys, tempfile
from monocontext import append, delete, replace, update
from monocontext.errors import MonocontextError
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.sync import sync
own, url, options, log, seed = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4], sys.argv[5]
chance = random.Random(seed)
texts = json.loads(sys.stdin.read())

def say(state, texts):
    with open(log, "a") as file:
        file.write(json.dumps([state, texts]) + "\n")
        file.flush()
        os.fsync(file.fileno())

for step in range(10_000):
    kind = chance.choice(["append", "update", "replace", "delete", "forget", "sync", "compact", "gc"])
    after = dict(texts)
    name = chance.choice(sorted(texts)) if texts else ""
    new = f"{own}.{seed}.{step}"
    body = f"<{own} {seed} {step}> " * chance.randrange(1, 60) + "\n"
    if kind == "append" or not texts:
        after[new] = body
        act = lambda: append({new: body}, url, store_options=options)
    elif kind == "update":
        after |= {new: body, name: body}
        act = lambda: update(url, {new: body, name: body}, store_options=options)
    elif kind == "sync":
        after |= {new: body, name: body}
        folder = pathlib.Path(tempfile.mkdtemp(dir=os.path.dirname(log)))
        for file in (new, name):
            (folder / file).write_text(body)
        act = lambda: sync(folder, url, store_options=options)
    elif kind == "replace":
        after[name] = body
        act = lambda: replace(url, {name: body}, store_options=options)
    elif kind in ("delete", "forget"):
        del after[name]
        act = lambda: delete(url, [name], forget=kind == "forget", store_options=options)
    elif kind == "compact":
        act = lambda: compact(url, frame_bytes=4096, store_options=options)
    else:
        act = lambda: gc(url, older_than_seconds=0, store_options=options)
    say("begin", after)
    try:
        act()
    except MonocontextError as error:
        if "is committed as generation" not in str(error):
            after = texts
    texts = after
    say("done", texts)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["directory", "seaweedfs"])
def test_processes_killed_at_random(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    options: dict[str, str] = {}
    url = str(tmp_path / "context")
    if kind == "seaweedfs":
        server = request.getfixturevalue("seaweed")
        assert isinstance(server, SeaweedServer)
        url, options = server.url("storm"), {"endpoint": server.endpoint}
    storm(url, options, tmp_path, 1)


def storm(url: str, options: dict[str, str], folder: Path, seed: int) -> None:
    store = open_store(url, **options)  # type: ignore[arg-type]
    publish({"first": "first\n"}, store, frame_bytes=1024)
    chance = random.Random(seed)
    logs = [folder / f"writer-{number}.log" for number in range(WRITERS)]
    believed: list[dict[str, str]] = [{} for _ in logs]
    running: list[subprocess.Popen[str] | None] = [None] * WRITERS

    def start(number: int, run: int) -> None:
        given = [f"w{number}", url, json.dumps(options), str(logs[number]), f"{seed}-{number}-{run}"]
        process = subprocess.Popen([sys.executable, "-c", WRITER, *given], stdin=subprocess.PIPE, text=True)
        assert process.stdin is not None
        process.stdin.write(json.dumps(believed[number]))
        process.stdin.close()
        running[number] = process

    def settle(number: int) -> None:
        """Kill a writer, and see that its last change is there whole or not at all."""
        process = running[number]
        assert process is not None
        process.kill()
        process.wait()
        lines = logs[number].read_text().splitlines() if logs[number].exists() else []
        done = [json.loads(line)[1] for line in lines if json.loads(line)[0] == "done"]
        begun = json.loads(lines[-1])[1] if lines else {}
        allowed = [done[-1] if done else {}, begun]
        newest = read_newest(store)
        assert newest is not None
        with Monocontext.open(store, generation=newest.generation) as context:
            names = [record.name for record in context.documents.records() if record.name.startswith(f"w{number}.")]
            assert len(names) == len(set(names)), "doubled"
            there = {name: str(context.documents[name]) for name in names}
        assert there in allowed
        believed[number] = there
        logs[number].write_text(json.dumps(["done", there]) + "\n")

    for number in range(WRITERS):
        start(number, 0)
    for kill in range(1, KILLS + 1):
        time.sleep(chance.uniform(0.3, 1.2))
        number = chance.randrange(WRITERS)
        settle(number)
        start(number, kill)
    for number in range(WRITERS):
        settle(number)
    expected = {"first": "first\n"}
    for texts in believed:
        expected |= texts
    delete(store, "first", forget=True)
    del expected["first"]
    with Monocontext.open(store) as context:
        assert {record.name: str(context.documents[record.name]) for record in context.documents.records()} == expected
    assert verify(store).problems == []
    marks = {text.split("> ")[0] + ">" for text in expected.values()}
    gone = [f"<w{number} {seed}-{number}-0 {step}>" for number in range(WRITERS) for step in range(20)]
    assert find_leftovers(store, [mark for mark in gone if mark not in marks]) == []
