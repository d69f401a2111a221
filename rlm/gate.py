"""Every call of a model goes through here, those of the root, of cells and of child runs: one gate for a whole tree.

In this order: a recording answers what was paid before, the cache what another run asked; the budget refuses; what
fails for a while is tried again; what is answered is counted and written down before anybody sees it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rlm.backoff import Backoff
from rlm.budget import Budget
from rlm.errors import BudgetSpent, LLMError
from rlm.lm import LM, Message, Reply
from rlm.sub_cache import SubCache, call_key
from rlm.usage import Usage


class Paid(Protocol):
    """What an earlier process was answered; see `rlm.recording`."""

    def take(self, key: str) -> Reply | None:
        """The next reply to this call, once each. Raises LLMError where the call had failed."""
        ...

    def take_turn(self, turn: int) -> Reply | None:
        """The reply of the root in this turn."""
        ...


class Gate:
    """Budget, retries, cache and books of one run with all that it starts. Safe for use by many threads."""

    def __init__(
        self,
        usage: Usage,
        budget: Budget | None = None,
        *,
        backoff: Backoff | None = None,
        cache: SubCache | None = None,
        paid: Paid | None = None,
        journal: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        """`journal` is given a record of each answered or failed call as soon as it has ended."""
        self.budget = budget or Budget(iterations=None)
        self.paid = paid
        self.journal = journal
        self._backoff = backoff or Backoff()
        self._cache = cache
        self._lock = threading.Lock()
        self._orders = 0
        self._under_way = 0
        self.renew(usage)

    def renew(self, usage: Usage, *, turns: int = 0, seconds: float = 0.0) -> None:
        """Begin to count anew, from what `usage` holds; so many turns and seconds were spent before.

        Calls that are still under way, of code that an earlier question left behind, count where they end.
        """
        self.usage = usage
        self.began = time.monotonic() - seconds
        """The clock of the run: everything that is recorded as a start counts from here."""
        self._turns = turns
        self._stopped: str | None = None

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def seconds_left(self) -> float:
        """Of the budget; infinite when there is no such limit."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.elapsed()

    def stop(self, reason: str) -> None:
        """Refuse everything from now on."""
        self._stopped = reason

    @property
    def spent(self) -> str | None:
        """Why nothing more may be asked: the keyword of a budget; None while something may."""
        if self._stopped:
            return self._stopped
        with self._lock:
            calls = self.usage.calls + self._under_way
        return self.budget.spent(
            calls=calls, tokens=self.usage.tokens, dollars=self.usage.known_dollars, seconds=self.elapsed()
        )

    @property
    def turns_left(self) -> int | None:
        """Turns that the tree may still begin; None for no limit."""
        return None if self.budget.iterations is None else max(0, self.budget.iterations - self._turns)

    def take_turn(self) -> bool:
        """Count one turn; False when all are used."""
        with self._lock:
            if self.turns_left == 0:
                return False
            self._turns += 1
            return True

    def orders(self, count: int) -> range:
        """Numbers for calls that are made together: whatever ends first, a replay gives each what it was given."""
        with self._lock:
            self._orders += count
            return range(self._orders - count, self._orders)

    def ask(
        self,
        lm: LM,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
        turn: int | None = None,
        order: int | None = None,
    ) -> Reply:
        """One call. `turn` marks a call of the top root; calls without `on_delta` may be answered from the cache.

        Raises BudgetSpent when nothing was or may be asked, LLMError when the last try failed.
        """
        name = model or getattr(lm, "model", None) or "unknown"
        key = call_key(name, messages)
        if self.paid and (reply := self.paid.take(key) if turn is None else self.paid.take_turn(turn)):
            return reply
        if self._cache and on_delta is None and (reply := self._cache.get(key)):
            return reply
        about = {"key": key, "root_model": name, "turn": turn, "order": self.orders(1)[0] if order is None else order}
        started = self.elapsed()
        try:
            reply = self._tried(lm, messages, model, on_delta)
        except BudgetSpent:
            raise
        except LLMError as exc:
            self._write(about, started, {"response": "", "error": str(exc)})
            raise
        answered = {"response": reply.text, "model": reply.model, "prompt_tokens": reply.input_tokens,
                    "completion_tokens": reply.output_tokens, "dollars": reply.dollars}  # fmt: skip
        self._write(about, started, answered)
        if self._cache and on_delta is None:
            self._cache.put(key, reply)
        return reply

    def write_child(self, key: str, order: int, model: str, text: str) -> None:
        """Note that a child run has ended, so that a resumed run does not begin it again."""
        if self.journal:
            about = {"key": key, "root_model": model, "turn": None, "order": order}
            self.journal({"type": "child", **about, "response": text})

    def _tried(
        self, lm: LM, messages: Sequence[Message], model: str | None, on_delta: Callable[[str], object] | None
    ) -> Reply:
        for own_wait in (*self._backoff.waits(), None):
            self._enter()
            reply: Reply | None = None
            try:
                reply = lm.complete(messages, model=model, on_delta=self._watched(on_delta))
                return reply
            except LLMError as exc:
                seconds = None if own_wait is None else self._backoff.wait(exc, own_wait)
                if seconds is None or seconds >= self.seconds_left():
                    raise
            finally:
                self._leave(reply)
            time.sleep(seconds)
        raise AssertionError("the last try either returns or raises")

    def _leave(self, reply: Reply | None) -> None:
        """In one step, so that no call is seen as both answered and under way."""
        with self._lock:
            self._under_way -= 1
            if reply is not None:
                self.usage.add(reply)

    def _enter(self) -> None:
        """Reserve a call, so that those of a batch do not pass the limit together."""
        with self._lock:
            reason = self._stopped or self.budget.spent(
                calls=self.usage.calls + self._under_way,
                tokens=self.usage.tokens,
                dollars=self.usage.known_dollars,
                seconds=self.elapsed(),
            )
            if reason is None:
                self._under_way += 1
                return
        raise BudgetSpent(f"nothing more may be asked: {reason} is reached; answer from what you have", reason=reason)

    def _watched(self, on_delta: Callable[[str], object] | None) -> Callable[[str], object] | None:
        """Ends a call in mid-stream when its time is up. Sub-calls stream only where there is such a limit."""
        if on_delta is None and self.budget.seconds is None:
            return None

        def fed(delta: str) -> None:
            if self._stopped or self.seconds_left() <= 0:
                reason = self._stopped or "max_seconds"
                raise BudgetSpent(f"the call was broken off: {reason} is reached", reason=reason)
            if on_delta:
                on_delta(delta)

        return fed

    def _write(self, about: dict[str, Any], started: float, outcome: dict[str, Any]) -> None:
        if self.journal:
            seconds = self.elapsed() - started
            times = {"start_seconds": round(started, 6), "execution_time": round(seconds, 6)}
            self.journal({"type": "reply" if about["turn"] else "call", **about, **times, **outcome})
