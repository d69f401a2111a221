from __future__ import annotations

import pytest

from monocontext.sessions import spending
from monocontext.sessions.spending import CostLedger
from monocontext.stores import open_store


def test_a_call_at_midnight_belongs_to_one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    days = iter(["2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26"])
    monkeypatch.setattr(spending, "today", lambda: next(days))
    ledger = CostLedger(open_store("memory://a-call-at-midnight"), "proj")
    ledger.add(2.0)
    ledger.add(3.0)
    assert ledger.load().days == {"2026-11-23": (2.0, 1), "2026-11-24": (3.0, 1)}
