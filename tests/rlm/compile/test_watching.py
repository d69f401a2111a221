"""`rlm compile --watch`: whoever watches compiles, one at a time; who is killed is replaced after its lease."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sessions.agents import session_id, small
from test_rlm_compile import put, root

from monocontext.errors import NotFound, StoreFailure
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.testing import CountingStore, S3StandIn, WrappedStore
from rlm import ScriptedLM
from rlm.compile import compile_sessions, watch_sessions
from rlm.compile.webhook_listener import WebhookListener
from rlm.errors import BudgetSpent

LOCK = "locks/compile-proj"


def upload(store: Store, folder: Path, number: int, *, is_open: bool = False) -> None:
    upload_session(store, recognize_session(small(number).write(folder)), user="dev@here", is_open=is_open)


def wait_until(what: Callable[[], object], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


def compiled(store: Store) -> set[str]:
    keys = [info.key for info in store.list("compiled/proj/state.json")]
    return {row["session_id"] for key in keys for row in json.loads(store.get(key).data)["sessions"]}


# -- in this process ---------------------------------------------------------------------------------------------------


def test_a_look_compiles_what_is_new_and_reads_nothing_else(tmp_path: Path) -> None:
    store = CountingStore(open_store(tmp_path / "a"))
    put(store, tmp_path, range(1, 4))
    wake, outcomes = threading.Event(), list[Any]()

    def take(project: str, outcome: Any) -> None:
        assert not isinstance(outcome, Exception), outcome
        outcomes.append((project, outcome.read))

    options: dict[str, Any] = {"settle_seconds": 0.0, "on_outcome": take, "every_seconds": 0.05}
    watching = threading.Thread(
        target=lambda: watch_sessions(store, **options, for_seconds=60, wake=wake, lm=ScriptedLM(root)), daemon=True
    )
    watching.start()
    wait_until(lambda: outcomes)
    assert outcomes == [("proj", [session_id(n) for n in (1, 2, 3)])]
    store.reset()
    wait_until(lambda: sum(request.verb == "list" for request in list(store.log)) >= 12)
    assert store.gets == 0
    put(open_store(tmp_path / "a"), tmp_path, range(4, 5))
    wait_until(lambda: len(outcomes) == 2)
    assert outcomes[1] == ("proj", [session_id(4)])


def test_a_session_without_an_end_is_left_to_rest(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    upload(store, tmp_path, 1, is_open=True)
    upload(store, tmp_path, 2)
    project = Sessions(store).project("proj")
    assert project.versions(resting_seconds=600).keys() == {session_id(2)}
    assert project.versions().keys() == {session_id(1), session_id(2)}
    assert compile_sessions(store, "proj", settle_seconds=600).read == [session_id(2)]
    old = time.time() - 700
    os.utime(tmp_path / "a" / "transcripts" / "proj" / session_id(1) / "session.json", (old, old))
    assert compile_sessions(store, "proj", settle_seconds=600).read == [session_id(1)]
    assert compiled(store) == {session_id(1), session_id(2)}


def test_a_notice_makes_it_look(tmp_path: Path) -> None:
    store, wake, outcomes = open_store(tmp_path / "a"), threading.Event(), list[Any]()
    upload(store, tmp_path, 1)
    with WebhookListener("127.0.0.1", 0, wake, "secret") as notices:
        watching = threading.Thread(
            target=lambda: watch_sessions(
                store, every_seconds=600, for_seconds=600, wake=wake, on_outcome=lambda *told: outcomes.append(told)
            ),
            daemon=True,
        )
        watching.start()
        wait_until(lambda: outcomes)
        upload(store, tmp_path, 2)
        post = urllib.request.Request(notices.url, data=b'{"Records": []}')
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(post, timeout=60)
        assert not wake.is_set()
        post.add_header("Authorization", "Bearer secret")
        with urllib.request.urlopen(post, timeout=60) as answer:
            assert answer.status == 204
        wait_until(lambda: len(outcomes) == 2)
        assert outcomes[1][1].read == [session_id(2)]


def test_it_outlives_a_store_that_fails_and_a_budget_that_is_spent(tmp_path: Path) -> None:
    class Away(WrappedStore):
        looks = 0

        def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
            self.looks += 1
            if self.looks == 1:
                raise StoreFailure("away")
            return super().list(prefix)

    store, outcomes, wake, lm = Away(open_store(tmp_path / "a")), list[Any](), threading.Event(), ScriptedLM(root)
    upload(store, tmp_path, 1)
    options: dict[str, Any] = {"on_outcome": lambda *told: outcomes.append(told), "every_seconds": 0.05, "wake": wake}
    watching = threading.Thread(
        target=lambda: watch_sessions(store, for_seconds=60, lm=lm, max_calls=1, **options), daemon=True
    )
    watching.start()
    wait_until(lambda: len(outcomes) == 2)
    assert [type(outcome) for _, outcome in outcomes] == [StoreFailure, BudgetSpent]
    looks = store.looks
    wait_until(lambda: store.looks > looks + 12)
    assert (len(lm.calls), len(outcomes)) == (1, 2)  # nothing has changed since: it is not tried at every look


def test_who_loses_the_lease_begins_no_session_more(tmp_path: Path) -> None:
    store, begun = open_store(tmp_path / "a"), []
    put(store, tmp_path, range(1, 5))

    def lose(session: str, number: int, of: int) -> None:
        begun.append(session)
        if number == 2:
            store.put(LOCK, json.dumps({"owner": "b", "until": time.time() + 600}).encode())
            wait_until(lambda: not any(thread.name == "rlm-lease" for thread in threading.enumerate()))

    result = compile_sessions(store, "proj", lease_seconds=0.3, on_session=lose)
    assert (result.holder, begun, result.generation) == ("another machine", [session_id(1), session_id(2)], 0)
    assert compile_sessions(store, "proj").holder == "b"


# -- three watchers, each a process of the command ---------------------------------------------------------------------


class Watchers:
    """Watchers of an archive, which are killed and started again."""

    def __init__(self, store: Store, folder: Path, lease: str, place: list[str]) -> None:
        self._store = store
        self._words = [*place, "--lease", lease, "--every", "0.5s", "--for", "5m", "--settle", "0s"]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.out = folder / "out"

    def start(self, name: str) -> None:
        words = ["compile", "--watch", "--extractive", "--quiet", "--json", *self._words]
        with self.out.open("ab") as out:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-P", "-m", "rlm", *words], stdout=out, stderr=out,
                env={**os.environ, "MONOCONTEXT_USER": name, "AWS_REGION": "us-east-1"},
            )  # fmt: skip

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes.pop(name).wait(60)

    def holder(self) -> str:
        """Who holds the lease now; empty where nobody does."""
        try:
            fields = json.loads(self._store.get(LOCK).data)
        except NotFound:
            return ""
        return str(fields["owner"]) if fields["until"] > time.time() else ""

    def read(self) -> list[str]:
        """The sessions that watchers say they have read, those of killed ones left out."""
        rows = [json.loads(line) for line in self.out.read_text().splitlines() if line.startswith("{")]
        return [session for row in rows for session in row["read"]]


@contextmanager
def watchers(store: Store, folder: Path, lease: str, *place: str) -> Iterator[Watchers]:
    watching = Watchers(store, folder, lease, list(place))
    try:
        for n in range(3):
            watching.start(f"watcher-{n}")
        yield watching
        for process in watching.processes.values():
            process.terminate()
        assert {process.wait(60) for process in watching.processes.values()} == {130}, watching.out.read_text()
    finally:
        for process in watching.processes.values():
            process.kill()
            process.wait(60)


@pytest.mark.slow
def test_of_three_watchers_one_compiles_and_the_next_takes_over(tmp_path: Path) -> None:
    store, digests = open_store(tmp_path / "a"), tmp_path / "a" / "compiled" / "proj" / "digests"
    with watchers(store, tmp_path, "2s", str(tmp_path / "a")) as watching:
        for n in range(12):
            upload(store, tmp_path, n)
        wait_until(lambda: watching.holder() or len(compiled(store)) == 12)  # whoever is fast has let the lease go
        if name := watching.holder():
            watching.kill(name)
        at_kill = {path.name: path.stat().st_mtime_ns for path in digests.glob("*.md")}
        for n in range(12, 16):
            upload(store, tmp_path, n)
        wait_until(lambda: compiled(store) == {session_id(n) for n in range(16)})
    read = watching.read()
    assert len(set(read)) == len(read)
    assert {name: (digests / name).stat().st_mtime_ns for name in at_kill} == at_kill  # read by nobody again
    assert len(list(digests.glob("*.md"))) == 16, "beside what a killed writer left half written"


@pytest.mark.slow
def test_three_watchers_killed_at_random_compile_each_of_200_sessions_once(tmp_path: Path) -> None:
    chance = random.Random(18)
    with S3StandIn() as server:
        store = open_store(f"{server.store.url}/team")
        place = server.url("team"), "--endpoint", server.endpoint
        with watchers(store, tmp_path, "3s", *place) as watching:
            wait_until(lambda: server.requests >= 3)
            for n in range(200):
                upload(store, tmp_path, n)
                if n % 50 == 25:
                    name = (watching.holder() if n % 100 == 25 else "") or f"watcher-{chance.randrange(3)}"
                    watching.kill(name)
                    watching.start(name)
            wait_until(lambda: compiled(store) == {session_id(n) for n in range(200)})
        stored = Counter(r.path for r in list(server.log) if r.method == "PUT" and "/digests/" in r.path)
    assert (len(stored), set(stored.values())) == (200, {1}), watching.out.read_text()
