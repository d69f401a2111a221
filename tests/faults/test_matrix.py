"""Each fault on each way of reading, by each transport: the right text or a typed error, in time, and no trace of it.

A case is one fault; operations run at the same time, each on a server and a context of its own. `right` says that the
operation gave what it gives on the `str`. Afterwards all is well again with the server, every gauge must be back at
zero, and the same operation must be right on the same context. Where an object was replaced, or pretended to be, the
context goes on refusing it; then one that is opened anew must be right.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import pytest

from monocontext import Monocontext
from monocontext.stores.s3 import client as s3_client
from monocontext.testing import HttpFault, S3StandIn
from monocontext.testing.http_faults import (
    cut,
    cut_head,
    drip,
    error_in_200,
    expired,
    flipped,
    internal_error,
    lost,
    other_etag,
    refuse,
    replaced,
    replaced_unseen,
    reset,
    shifted,
    short,
    slow_down,
    stall,
    stall_before_head,
    stall_in_head,
    whole,
    wrong_range,
)

from .faulted import OPERATIONS, TEXT, WHERE, Outcome, attempt, objects, opened, serve
from .gauges import assert_idle

INSIDE = 100_000
"""Bytes of a body that is longer than that where it is a segment's."""
RIGHT = frozenset({"right"})
DAMAGED = frozenset({"DamagedData"})
MOVED = frozenset({"ContextChanged", "DamagedData"})
REFUSED = frozenset({"AccessDenied"})
FAILED = frozenset({"StoreFailure"})
DEADLINE_SECONDS = 8.0
"""Of one operation that meets one fault. Most take milliseconds, a stall one second for each round trip it is in."""


@dataclass(frozen=True, slots=True)
class Case:
    """One fault, met once by each kind of object, and what must come of it."""

    fault: HttpFault
    reads: frozenset[str] = RIGHT
    """Outcomes of an operation on an open context."""
    opens: frozenset[str] = RIGHT
    """Outcomes of opening."""
    by_boto3: frozenset[str] = frozenset()
    """What reads may come to as well where they go through boto3."""
    opens_by_boto3: frozenset[str] = frozenset()
    connects: bool = False
    """Whether it strikes connections, not requests."""


CASES = [
    *(Case(cut(offset)) for offset in (0, 1, INSIDE)),
    # http.client takes the half of a head for a whole one: the answer has no ETag then, and is asked for once more.
    Case(cut_head()),
    Case(lost()),
    Case(reset()),
    Case(reset(INSIDE)),
    Case(reset(), connects=True),
    *(Case(fault) for fault in (stall_before_head(), stall_in_head(), stall(0), stall(INSIDE), drip(400_000))),
    *(Case(fault) for fault in (short(), short(1000), shifted(), flipped(0), flipped(-1))),
    Case(wrong_range()),
    Case(wrong_range(-1)),
    # A first answer that names a wrong version is believed in this: what follows has another one, and is refused.
    Case(other_etag(), reads=RIGHT | MOVED),
    Case(whole()),
    Case(slow_down()),
    Case(slow_down(retry_after_seconds=1)),
    Case(internal_error()),
    Case(expired(400), by_boto3=REFUSED, opens_by_boto3=REFUSED),
    Case(expired(403), by_boto3=REFUSED, opens_by_boto3=REFUSED),
    Case(error_in_200()),
    Case(refuse(200, "SlowDown")),
    Case(replaced(), reads=MOVED, opens=DAMAGED),
    Case(replaced_unseen(), reads=MOVED, opens=DAMAGED),
]


def name_of(case: Case) -> str:
    return f"{case.fault.name}{' on connect' if case.connects else ''}".replace(" ", "-")


@pytest.fixture(params=["own", "boto3"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What reads travel by. boto3 notices silence after a time that is fixed: here 1 s, by default 10."""
    if request.param == "boto3":
        monkeypatch.setattr(s3_client, "READ_TIMEOUT_SECONDS", 1)
    with serve() as server, opened(server, transport=request.param) as context:
        assert context[:5] == TEXT[:5]  # boto3 is imported: 0.3 s that no operation is to be charged with
    return str(request.param)


def strike(server: S3StandIn, case: Case, keys: tuple[str, ...], times: int | None = 1, skip: int = 0) -> None:
    if case.connects:
        server.faults.add(case.fault, verb="CONNECT", times=times)
    for key in () if case.connects else keys:
        server.faults.add(case.fault, key=key, times=times, skip=skip)


def read(case: Case, way: str, name: str, skip: int = 0) -> Outcome:
    """One operation that meets the fault, after it has read `skip` parts; and the same again when all is well."""
    operation, expected = OPERATIONS[name], OPERATIONS[name](TEXT)
    with serve() as server, opened(server, transport=way) as context:
        if case.connects:
            server.hang_up()
        strike(server, case, WHERE, skip=skip)
        outcome = attempt(lambda: operation(context), expected, DEADLINE_SECONDS)
        assert server.faults.struck or skip, "the fault was not met"
        recover(server, case)
        assert_idle(context)
        again = attempt(lambda: operation(context), expected, DEADLINE_SECONDS)
        assert again.kind in (RIGHT | MOVED if case.reads >= MOVED else RIGHT), f"{name}, then {again}"
        if again.kind != "right":
            with opened(server, transport=way) as anew:
                assert attempt(lambda: operation(anew), expected, DEADLINE_SECONDS).kind == "right"
    return outcome


def recover(server: S3StandIn, case: Case) -> None:
    server.faults.clear()
    if case.fault.rewrite:
        for key, data in objects().items():
            server.store.put(key, data)


def open_it(case: Case, way: str) -> Outcome:
    """Opening that meets the fault, and opening again when all is well."""
    made: list[Monocontext] = []

    def work() -> tuple[int, str]:
        made.append(opened(server, transport=way))
        return len(made[-1]), made[-1][:100]

    with serve() as server:
        strike(server, case, ("*/manifest.json",))
        outcome = attempt(work, (len(TEXT), TEXT[:100]), DEADLINE_SECONDS)
        assert server.faults.struck, "the fault was not met"
        recover(server, case)
        assert attempt(work, (len(TEXT), TEXT[:100]), DEADLINE_SECONDS).kind == "right"
        for context in made:
            assert_idle(context)
            context.close()
    return outcome


@pytest.mark.slow
def test_each_fault_on_opening(way: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = [*pool.map(lambda case: open_it(case, way), CASES)]
    for case, outcome in zip(CASES, outcomes, strict=True):
        allowed = case.opens | (case.opens_by_boto3 if way == "boto3" else frozenset())
        assert outcome.kind in allowed, f"{name_of(case)}: {outcome} {outcome.error}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("skip", [0, 1])
def test_each_fault_on_each_part_of_each_read(way: str, skip: int) -> None:
    """The fault strikes the first or the second request for each kind of object."""
    pairs = [*product(CASES, OPERATIONS)]
    with ThreadPoolExecutor(8) as pool:
        outcomes = [*pool.map(lambda pair: read(pair[0], way, pair[1], skip), pairs)]
    for (case, name), outcome in zip(pairs, outcomes, strict=True):
        also = case.by_boto3 if way == "boto3" else frozenset()
        allowed = case.reads | also | (RIGHT if skip else frozenset())  # there may be no second request
        assert outcome.kind in allowed, f"{name_of(case)}, {name}: {outcome} {outcome.error}"


LASTING = [
    (cut(), FAILED),
    (reset(), FAILED),
    (lost(), FAILED),
    (short(), DAMAGED),
    (shifted(), DAMAGED),
    (flipped(), DAMAGED),
    (wrong_range(), DAMAGED),
    (whole(), DAMAGED),
    (slow_down(), FAILED),
    (internal_error(), FAILED),
    (error_in_200(), FAILED | DAMAGED),
    (expired(), REFUSED),
]


def last(fault: HttpFault, way: str, expected: frozenset[str], seconds: float = 30) -> Outcome:
    """A slice while nothing is ever right; and then all is."""
    case, operation = Case(fault), OPERATIONS["slice"]
    with serve() as server, opened(server, transport=way) as context:
        strike(server, case, WHERE, times=None)
        outcome = attempt(lambda: operation(context), operation(TEXT), seconds)
        assert outcome.kind in expected, f"{fault.name}: {outcome} {outcome.error}"
        assert outcome.is_error_of_ours
        assert_idle(context, seconds)
        recover(server, case)
        assert attempt(lambda: operation(context), operation(TEXT), seconds).kind == "right"
    return outcome


@pytest.mark.parametrize("way", ["own", pytest.param("boto3", marks=pytest.mark.slow)], indirect=True)
def test_a_fault_that_lasts_is_a_typed_error_and_then_forgotten(way: str) -> None:
    with ThreadPoolExecutor(len(LASTING)) as pool:
        for future in [pool.submit(last, fault, way, expected) for fault, expected in LASTING]:
            future.result()


@pytest.mark.slow
@pytest.mark.parametrize("bytes_per_second", [50, 1000, 100_000])
def test_a_body_that_drips_is_resumed_elsewhere(bytes_per_second: int) -> None:
    """There is never silence: by the deadline of a minute the slowest of these would have brought 3 KB."""
    with serve() as server, opened(server) as context:
        assert context[:5] == TEXT[:5]
        server.reset_counts()
        rule = server.faults.add(drip(bytes_per_second), key=WHERE[0])
        outcome = attempt(lambda: context[300_000:900_000], TEXT[300_000:900_000], DEADLINE_SECONDS)
        assert (outcome.kind, rule.struck) == ("right", 1), outcome
        assert outcome.seconds < 6, "1.1 s where the machine has time"
        asked = [item.headers["range"] for item in server.log if "/segments/" in item.path]
        starts = {item.partition("-")[0] for item in asked}
        assert len(starts) == len(asked), f"what had come was asked for again: {asked}"
        assert_idle(context)


def test_an_object_replaced_while_it_is_read() -> None:
    """The first part is of the old object: what follows is refused, whether the server looks at If-Match or not."""
    for fault in (replaced(), replaced_unseen()):
        with serve() as server, opened(server) as context:
            assert context[:5] == TEXT[:5]
            server.faults.add(fault, key=WHERE[0])
            outcome = attempt(lambda: "".join(context.chunks(10_000)), TEXT, DEADLINE_SECONDS)
            assert outcome.kind == "ContextChanged", f"{outcome} {outcome.error}"
            assert_idle(context)
