"""The ledger, the time that models take, and what links bring."""

from __future__ import annotations

import pytest

from monocontext.engine.fetch.listeners import FIRST_BYTES_PER_SECOND, Bandwidth
from monocontext.engine.open import check_prefetch
from monocontext.engine.prefetch import HitWindows, Kind, Ledger, ThinkTime
from monocontext.engine.prefetch.hits import HITS, WINDOW
from monocontext.engine.prefetch.ledger import STALE_READS
from monocontext.engine.prefetch.think_time import FIRST_SECONDS


def test_shares_of_the_cache() -> None:
    ledger = Ledger(1000, text_bytes=5000)
    assert (ledger.room_bytes(Kind.GUESSED), ledger.room_bytes(Kind.KNOWN)) == (250, 500)
    ledger.expect(1, Kind.KNOWN, 400)
    assert (ledger.room_bytes(Kind.GUESSED), ledger.room_bytes(Kind.KNOWN)) == (100, 100)
    assert ledger.settle(1)
    assert not ledger.settle(1)
    assert ledger.room_bytes(Kind.KNOWN) == 500


def test_a_text_that_fits_may_be_fetched_whole() -> None:
    assert Ledger(1000, text_bytes=1000).room_bytes(Kind.KNOWN) == 1000
    assert Ledger(1000, text_bytes=1000).room_bytes(Kind.GUESSED) == 250


def test_guesses_grow_stale_and_tell_their_stream() -> None:
    ledger = Ledger(1000, text_bytes=5000)
    ledger.expect(1, Kind.GUESSED, 10, stream=7)
    ledger.expect(2, Kind.KNOWN, 10)
    for _ in range(STALE_READS - 1):
        assert ledger.read() == ([], set())
    assert ledger.read() == ([1], {7})
    assert 2 in ledger
    assert ledger.outstanding_bytes == {Kind.GUESSED: 0, Kind.KNOWN: 10, Kind.ASKED: 0}


def test_think_time_is_learnt_as_a_mean_of_logarithms() -> None:
    think = ThinkTime()
    assert think.expected_seconds == pytest.approx(FIRST_SECONDS)
    for call in range(20):
        assert think.begin(100.0 * call)
        assert think.end(100.0 * call + 1.5)
    assert think.expected_seconds == pytest.approx(1.5, rel=0.05)
    think.begin(5000.0)


def test_calls_nest_and_overlap() -> None:
    think = ThinkTime()
    assert [think.begin(0.0), think.begin(1.0)] == [True, False]
    assert think.is_thinking
    assert [think.end(2.0), think.end(3.0)] == [False, True]
    assert not think.is_thinking


def test_bandwidth_is_measured_where_bytes_flow() -> None:
    link = Bandwidth()
    link.begin(0.0)
    link.arrived(100_000, 0.15, idle=True)  # a round trip, no transfer
    assert link.bytes_per_second == FIRST_BYTES_PER_SECOND
    link.begin(1.0)
    link.arrived(8 << 20, 1.5, idle=False)
    link.arrived(8 << 20, 2.0, idle=True)
    assert link.bytes_per_second == pytest.approx((16 << 20) / 1.0)
    link.begin(3.0)
    link.arrived(8 << 20, 4.0, idle=True)
    assert (8 << 20) < link.bytes_per_second < (16 << 20)


def test_hits_are_windows_once() -> None:
    hits = HitWindows(100_000)
    for at in (100, 50_000, 99_000):
        hits.found(at)
    assert hits.windows() == [(0, 100 + WINDOW), (50_000 - WINDOW, 50_000 + WINDOW), (99_000 - WINDOW, 100_000)]
    assert hits.windows() == []
    assert [hits.found(at) for at in range(2000, 9000, 100)] == [True] * HITS + [False] * (70 - HITS)
    assert len(hits.windows()) == HITS


def test_modes() -> None:
    for mode in ("all", "code", "history", "off"):
        check_prefetch(mode)
    with pytest.raises(ValueError, match="prefetch must be 'all', 'code', 'history' or 'off', not 'on'"):
        check_prefetch("on")
