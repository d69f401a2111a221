"""Test doubles: stores that count, wait, fail or crash, and S3 servers. None needs pytest."""

from __future__ import annotations

from monocontext.testing.faults import (
    Crash,
    CrashingStore,
    Fault,
    FaultPlan,
    FaultyStore,
    LosingStore,
    fail,
    flip_byte,
    truncate,
    wrong_etag,
)
from monocontext.testing.http_faults import HttpFault
from monocontext.testing.http_s3 import S3StandIn
from monocontext.testing.network import PROFILES, Profile, profile
from monocontext.testing.seaweed import SeaweedServer, find_weed
from monocontext.testing.stores import CountingStore, Request, SlowStore, WrappedStore

__all__ = [
    "PROFILES", "CountingStore", "Crash", "CrashingStore", "Fault", "FaultPlan", "FaultyStore", "HttpFault",
    "LosingStore", "Profile", "Request", "S3StandIn", "SeaweedServer", "SlowStore", "WrappedStore", "fail",
    "find_weed", "flip_byte", "profile", "truncate", "wrong_etag",
]  # fmt: skip
