"""The threads of the process: no job is left without one, none waits behind another, and they end by themselves."""

from __future__ import annotations

import _thread
import threading
import time
from random import Random
from typing import Any

import pytest

from monocontext.engine.fetch import workers
from monocontext.engine.fetch.workers import Threads, run_in_decoder


def test_a_job_that_comes_while_its_thread_ends_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work comes at about the moment at which a thread without work ends, again and again."""
    monkeypatch.setattr(workers, "_IDLE_SECONDS", 0.002)
    random, done = Random(1), []

    def work() -> None:
        for number in range(500):
            done.append(run_in_decoder(lambda number=number: number))  # type: ignore[misc]
            until = time.perf_counter() + random.uniform(0.0019, 0.0024)
            while time.perf_counter() < until:
                pass

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert done == list(range(500))


def test_jobs_at_once_take_a_thread_each_beside_those_that_are_idle() -> None:
    threads, all_here, idle = Threads(20), threading.Barrier(21, timeout=30), threading.Barrier(6, timeout=30)
    for _ in range(5):
        threads.run(idle.wait)  # type: ignore[arg-type]
    idle.wait()
    for _ in range(20):
        threads.run(all_here.wait)  # type: ignore[arg-type]
    all_here.wait()


def test_no_more_threads_than_may_be() -> None:
    threads, lock, here, most, ended = Threads(3), threading.Lock(), [0], [0], threading.Semaphore(0)

    def job() -> None:
        with lock:
            here[0] += 1
            most[0] = max(most[0], here[0])
        time.sleep(0.001)
        with lock:
            here[0] -= 1
        ended.release()

    for _ in range(50):
        threads.run(job)
    assert all(ended.acquire(timeout=30) for _ in range(50))
    assert most[0] <= 3


def test_where_no_thread_can_be_had_the_caller_does_each_job_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(_thread, "start_new_thread", fail)
    threads, done = Threads(2), []
    for _ in range(3):
        threads.run(lambda: done.append(threading.get_ident()))
    assert done == [threading.get_ident()] * 3
