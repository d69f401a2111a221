"""Record the cost of each call before the next one, and refuse calls beyond a limit of a run or a day."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from monocontext.sessions.spending import CostLedger, today
from rlm.calls.prices import Prices, dollars
from rlm.errors import BudgetSpent
from rlm.models.lm import LM, Message, Reply, with_counted_usage


class Meter:
    """Keeps the limits on the dollars of a run, and of a day over all runs.

    Under a limit calls are made one at a time, each after the cost of the one before is stored. So at most one call
    exceeds the limit.
    """

    def __init__(
        self, ledger: CostLedger, prices: Prices, run_dollars: float | None, day_dollars: float | None
    ) -> None:
        """The ledger is read before the first call (1 GET)."""
        self.day_dollars = day_dollars
        self.run_dollars = run_dollars
        self._ledger = ledger
        self._prices = prices
        self._spent = 0.0
        self._unpriced = ""
        self._lock = threading.Lock()
        self._is_loaded = False

    def over(self) -> str | None:
        """The limit that is reached: `max_dollars_per_day` or `max_dollars`; None if none is."""
        if not self._is_loaded:
            self._ledger.load()
            self._is_loaded = True
        if self.day_dollars is not None and self._ledger.spent.dollars(today()) >= self.day_dollars:
            return "max_dollars_per_day"
        return "max_dollars" if self.run_dollars is not None and self._spent >= self.run_dollars else None

    def ask(self, call: Callable[[], Reply], messages: Sequence[Message]) -> Reply:
        """The reply to a call (1 PUT). Raises `BudgetSpent` at a limit, and under one after a call of unknown price."""
        if self.day_dollars is None and self.run_dollars is None:
            reply = with_counted_usage(call(), messages)
            with self._lock:
                self.over()
                self._add(reply)
            return reply
        with self._lock:
            if reason := self.over():
                raise BudgetSpent(f"{reason} is reached", reason=reason)
            if self._unpriced and self.day_dollars is not None:
                message = f"no price is known for {self._unpriced}: max_dollars_per_day cannot be kept; pass prices="
                raise BudgetSpent(message, reason="max_dollars_per_day")
            reply = with_counted_usage(call(), messages)
            self._add(reply)
            return reply

    def _add(self, reply: Reply) -> None:
        cost = dollars(reply, self._prices)
        if cost is None:
            self._unpriced = reply.model
        self._spent += cost or 0.0
        self._ledger.add(cost or 0.0)


class Metered:
    """A model with all calls through a meter."""

    def __init__(self, lm: LM, meter: Meter) -> None:
        self._lm = lm
        self._meter = meter

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        return self._meter.ask(lambda: self._lm.complete(messages, model=model, on_delta=on_delta), messages)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._lm, name)
        if name == "with_sampling":
            return lambda options: Metered(found(options), self._meter)
        return found
