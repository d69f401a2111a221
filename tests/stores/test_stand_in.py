"""The stand-in stores no body that it cannot read, and waits as its profile says."""

from __future__ import annotations

import http.client
import statistics
from random import Random

import pytest

from monocontext.testing import PROFILES, S3StandIn, profile


def test_a_chunked_body_is_refused_and_not_stored_empty() -> None:
    with S3StandIn({"a": b"old"}) as server:
        connection = http.client.HTTPConnection(server.endpoint.rpartition("/")[2], timeout=60)
        connection.request("PUT", "/bucket/a", iter([b"new"]), encode_chunked=True)
        assert connection.getresponse().status == 501
        assert server.store.get("a").data == b"old"
        connection.close()


PERCENTILES_MS = {  # p50, p90, p99, mean
    "s3_standard_hot": (22, 39, 130, 28),
    "s3_standard_cold": (56, 106, 272, 69),
    "far_150": (151, 185, 366, 158),
    "const_150": (150, 150, 150, 150),
    "s3_express": (2.2, 3.3, 7.4, 2.5),
    "zero": (0, 0, 0, 0),
}


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_the_documented_ones(name: str) -> None:
    random = Random(1)
    drawn = sorted(1000 * profile(name).seconds(random) for _ in range(100_000))
    p50, p90, p99, mean = PERCENTILES_MS[name]
    assert drawn[50_000] == pytest.approx(p50, rel=0.03, abs=0.05)
    assert drawn[90_000] == pytest.approx(p90, rel=0.03, abs=0.05)
    assert drawn[99_000] == pytest.approx(p99, rel=0.08, abs=0.05)
    assert statistics.fmean(drawn) == pytest.approx(mean, rel=0.04, abs=0.05)
    assert [profile(name).seconds(Random(5)) for _ in range(3)] == [profile(name).seconds(Random(5))] * 3
