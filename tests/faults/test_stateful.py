"""Slice, find, re, iterate, append, refresh, evict, fork, fault in any order, against a plain `str`: no difference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from monocontext.testing import S3StandIn
from tests.budget import FUZZ, examples

from .stateful import Likeness
from .worlds import BehindHttp, InMemory

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture(scope="module")
def server() -> Iterator[S3StandIn]:
    with S3StandIn() as serving:
        yield serving


def campaign(machine: type[Likeness], runs: int, steps: int) -> None:
    """The same runs each time; with MONOCONTEXT_FUZZ in the environment always others."""
    profile = settings(
        max_examples=examples(runs),
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        derandomize=not FUZZ,
        database=None,
    )
    run_state_machine_as_test(machine, settings=profile)  # type: ignore[no-untyped-call]


def for_long(runs: int, steps: int) -> object:
    return pytest.param(runs, steps, marks=[pytest.mark.fuzz, pytest.mark.timeout(1800)])


@pytest.mark.parametrize(("runs", "steps"), [(100, 20), for_long(400, 40)])
def test_a_text_in_memory(runs: int, steps: int) -> None:
    class OfMemory(Likeness):
        make_world = InMemory

    campaign(OfMemory, runs, steps)


@pytest.mark.parametrize(("runs", "steps"), [(4, 12), for_long(40, 40)])
def test_a_text_behind_s3(server: S3StandIn, runs: int, steps: int) -> None:
    class OfServer(Likeness):
        make_world = staticmethod(lambda: BehindHttp(server))
        rare = Likeness.rare if runs == 4 else frozenset()

    campaign(OfServer, runs, steps)
