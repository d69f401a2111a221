"""The page that puts ways side by side holds what its command runs."""

from __future__ import annotations

import re

import pytest

from benchmarks import comparison


def test_each_way_does_each_part_in_a_few_lines() -> None:
    whole = {"str", "monocontext"}
    for way, code in comparison.blocks().items():
        *parts, last = re.findall(r"^# (\w+)$", code, re.M)
        assert (*parts, last) == comparison.PARTS[: None if way in whole else -1]
        assert sum(not line.startswith("#") for line in code.splitlines()) <= 9, way
    assert set(comparison.blocks()) > whole


@pytest.mark.slow
def test_ways_side_by_side() -> None:
    """It raises where a way finds another line, or counts otherwise."""
    plain, lazy = comparison.run(12_000_000, "zero", 1e9, 1, ("str", "monocontext")).values()
    assert plain[0]["bytes"] > 12_000_000 > lazy[0]["bytes"]
    assert min(plain[0]["peak_bytes"], lazy[0]["peak_bytes"]) > 10 << 20
    assert plain[0]["gets"] == 1
