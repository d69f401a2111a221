"""Doubles to test with, for us and for users: stores that count, wait, fail, crash or compute, and a clock to turn.

Nothing here needs pytest.
"""

from __future__ import annotations

from monocontext.clock import Clock, SystemClock
from monocontext.testing.clock import VirtualClock
from monocontext.testing.faults import (
    Crash,
    CrashingStore,
    Fault,
    FaultPlan,
    FaultyStore,
    fail,
    flip_byte,
    truncate,
    wrong_etag,
)
from monocontext.testing.seaweed import SeaweedServer, find_weed
from monocontext.testing.simulated import SimulatedWorkers
from monocontext.testing.stores import CountingStore, Request, SlowStore, VirtualStore, WrappedStore
from monocontext.testing.virtual import virtual_context

__all__ = [
    "Clock",
    "CountingStore",
    "Crash",
    "CrashingStore",
    "Fault",
    "FaultPlan",
    "FaultyStore",
    "Request",
    "SeaweedServer",
    "SimulatedWorkers",
    "SlowStore",
    "SystemClock",
    "VirtualClock",
    "VirtualStore",
    "WrappedStore",
    "fail",
    "find_weed",
    "flip_byte",
    "truncate",
    "virtual_context",
    "wrong_etag",
]
