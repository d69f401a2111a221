"""Make every model call of a run: those of the root, of cells and of child runs. The steps of a call:

1. Clean the messages: text that has no encoding is escaped, here and nowhere else.
2. Return a reply that is already paid for, from the recording of an interrupted run or from the cache.
3. Check the budget, make the call, and retry transient failures.
4. Count the reply, separate it from its thinking, and write it to the journal before the caller gets it.

Calls of cells run on threads that the interrupt of a cell does not reach (`rlm.calls.waiting`), so each call ends.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rlm.calls.backoff import PATIENCE_SECONDS, Backoff
from rlm.calls.budget import Budget, describe_end
from rlm.calls.records import ChildRun
from rlm.calls.sub_cache import SubCache
from rlm.calls.usage import ModelUsage, Usage, cost_of, find_price, with_counted_usage
from rlm.context.excerpt import VOLATILE, make_printable
from rlm.errors import BudgetSpent, LLMError
from rlm.models import lm as replies
from rlm.models.endpoint_errors import one_line
from rlm.models.lm import LM, Message, OnDelta, Reply, call_key, reply_fields
from rlm.models.log import INFO, WARNING, log
from rlm.models.thinking import split_thinking

_TURN_COUNT = re.compile(r"(?<=\bTurn )(\d+)/\d+")  # the "3/30" in "Turn 3/30: look first"
Journal = Callable[[dict[str, Any]], object]  # records a call, as a line of `NAME.partial` of a trajectory


class PaidReplies(Protocol):
    """Replies that an earlier process paid for, as a `Recording` of `rlm.trajectory.recording` has them."""

    def take_reply(self, key: str) -> Reply | None:
        """The next reply to a call with this key, each once; None if none is left. Raises LLMError if it failed."""

    def root_reply(self, turn: int) -> Reply | None:
        """The reply of the root in this turn; None if there is none."""

    def take_child(self, key: str) -> ChildRun | None:
        """The next child run with this key, returned once; None if none is left."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a model. Fields without a comment are the arguments of `Gateway.ask`."""

    lm: LM
    messages: list[Message]
    model: str | None
    name: str  # the name of the model, for records
    key: str  # a hash of name and messages; empty if nothing is recorded or cached
    on_delta: OnDelta
    turn: int | None
    order: int | None
    must_be_whole: bool
    start_seconds: float  # since the run began


class Gateway:
    """Makes the calls of one run and its child runs, within one budget. Safe for use by many threads."""

    def __init__(
        self, usage: Usage, budget: Budget | None = None, *, backoff: Backoff | None = None,
        cache: SubCache | None = None, journal: Journal | None = None, models: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        """- `budget`: the limits; by default none
        - `cache`: answers of sub-calls from other runs
        - `journal`: called with a record of each call as soon as the call ends
        - `models`: the models that cells may name besides their default; None for any
        """
        self.budget = budget or Budget(iterations=None)
        self.paid: PaidReplies | None = None  # the replies that a resumed run has paid for already
        self.journal = journal
        self._models = models
        self._backoff = backoff or Backoff()
        self._cache = cache
        self._lock = threading.RLock()
        self._calls_numbered = 0
        self._notes: dict[str, None] = {}  # a set in order
        self._in_progress = 0  # the number of calls
        self.renew(usage)

    def renew(self, usage: Usage, *, turns: int = 0, seconds: float = 0.0) -> None:
        """Begin another question: count into `usage`, with these turns and seconds already spent, and undo `stop`.
        Calls that code of an earlier question still makes count too, when they end."""
        self.usage = usage
        self.began = time.monotonic() - seconds  # `elapsed` counts from here
        self._turns = turns
        self._stop_reason: str | None = None

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def seconds_left(self) -> float:
        """The seconds that the budget leaves: negative after the limit, infinite without one."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.elapsed()

    def stop(self, reason: str) -> None:
        """Refuse all further calls, and break off those in progress. `reason`: why, such as `cancelled`."""
        self._stop_reason = reason

    @property
    def reason_to_stop(self) -> str | None:
        """Why no call may be made: the reason of `stop`, or the keyword of a limit such as `max_calls`; else None."""
        with self._lock:
            used, budget = self.usage, self.budget
            if self._stop_reason:
                return self._stop_reason
            if budget.calls is not None and used.calls + self._in_progress >= budget.calls:
                return "max_calls"
            if budget.tokens is not None and used.tokens >= budget.tokens:
                return "max_tokens"
            if budget.dollars is not None and used.known_dollars >= budget.dollars:
                return "max_dollars"
            return "max_seconds" if budget.seconds is not None and self.elapsed() >= budget.seconds else None

    def take_turn(self) -> int | None:
        """Count a turn of the run or of a child run. Returns how many were left, this one included; None for no limit.
        Counts nothing if none was left."""
        with self._lock:
            remaining = None if self.budget.iterations is None else max(0, self.budget.iterations - self._turns)
            self._turns += remaining != 0
        return remaining

    def check_model(self, model: str) -> None:
        """Raise LLMError for a model that a cell may not name. Without `models` a cell may name any model, but under a
        limit of dollars only those with a price in `prices`."""
        if self._models is not None:
            if model not in self._models:
                allowed = ", ".join(sorted(self._models)) or "none"
                raise LLMError(f"the model {model} is not allowed in this run (allowed: {allowed}): leave `model` out")
        elif self.budget.dollars is not None and find_price(model, self.usage.prices) is None:
            reason = "under max_dollars, since prices= has no price for it"
            raise LLMError(f"the model {model} is not allowed {reason}: leave `model` out")

    def number_calls(self, count: int) -> range:
        """Reserve the next numbers, for the calls of a batch. They give the order of equal calls in a recording."""
        with self._lock:
            self._calls_numbered += count
            return range(self._calls_numbered - count, self._calls_numbered)

    def ask(
        self, lm: LM, messages: list[Message], *, model: str | None = None, on_delta: OnDelta = None,
        turn: int | None = None, order: int | None = None, must_be_whole: bool = False,
    ) -> Reply:  # fmt: skip
        """Make one call, unless the recording or the cache has its reply. Only calls without `on_delta` are cached.

        - `messages`: cleaned in place, so that the caller can record what was sent
        - `model`: the name to ask `lm` for; None for its default
        - `on_delta`: called with each piece of the text as it arrives
        - `turn`: the turn of the call, if the root of the top run makes it
        - `order`: the number of the call, by default the next one
        - `must_be_whole`: raise LLMError if the reply is cut, is a tool call, or is empty twice in a row

        Raises BudgetSpent when the budget allows no call, LLMError when the last try failed.
        """
        for message in messages:
            if not message["content"].isascii():  # it may have half of a surrogate pair, which has no encoding
                message["content"] = make_printable(message["content"], terminal=False)
        name = model or getattr(lm, "model", None) or "unknown"
        key = _key_of(name, messages) if self.paid or self._cache or self.journal else ""
        if self.paid:
            paid_reply = self.paid.take_reply(key) if turn is None else self.paid.root_reply(turn)
            if paid_reply:
                return paid_reply
        cache = self._cache if on_delta is None else None
        sampling = getattr(lm, "sampling", None)  # an answer of another run is valid only with the same options
        cache_key = call_key(f"{name} {sampling}", messages) if sampling else key
        if cache and (reply := cache.get(cache_key)):
            return reply
        if self.journal and order is None:
            order = self.number_calls(1)[0]
        call = _Call(lm, messages, model, name, key, on_delta, turn, order, must_be_whole, self.elapsed())
        try:
            reply = self._call_with_retries(call)
        except LLMError as exc:
            if self.journal and not isinstance(exc, BudgetSpent):
                self._write(self.journal, call, exc.reply, error=str(exc))
            raise
        if self.journal:
            self._write(self.journal, call, reply)
        if cache:
            try:
                cache.put(cache_key, reply)
            except OSError as exc:  # the disk is full, for example: the reply is paid for, so it is returned
                log(WARNING, "a sub-answer was not kept: %s", exc.strerror or type(exc).__name__)
        return reply

    def _call_with_retries(self, call: _Call) -> Reply:
        """Make the call until it succeeds. Raises the last LLMError when it is permanent, when the tries of the backoff
        are used up, or when the wait would exceed the budget of time. One empty answer to a cell is transient."""
        tries, was_empty = 0, False
        while True:
            tries += 1
            try:
                reply = self._call_once(call)
                if call.must_be_whole:
                    replies.check_whole(reply)
                return reply
            except LLMError as exc:
                paid = exc.reply
                is_empty = paid is not None and not (paid.cut or paid.called or replies.has_words(paid.text))
                if type(exc) is LLMError and is_empty and not was_empty:
                    exc.transient = was_empty = True
                patience_seconds = PATIENCE_SECONDS if self.budget.seconds is None else self.seconds_left()
                wait_seconds = self._backoff.wait(exc, tries, patience_seconds)
                if wait_seconds is None or wait_seconds >= self.seconds_left():
                    raise
                error, said = type(exc).__name__, str(exc)
            next_try = f"{tries + 1} of {self._backoff.retries + 1}"
            log(INFO, "%s: %s; asked again in %.1f s (try %s)", call.name, error, wait_seconds, next_try, said=said)
            time.sleep(wait_seconds)

    def _call_once(self, call: _Call) -> Reply:
        """Try the call once, and count its cost. Returns the reply, with its thinking in a field of its own.

        All calls stream, so that they can be stopped at a time limit, or when the text only repeats itself. Raises
        LLMError for any exception of the `LM`; exceptions of `on_delta` pass through.
        """
        lm, messages = call.lm, call.messages
        name = call.model or getattr(lm, "model", None) or type(lm).__name__
        listener = replies.Listener(call.on_delta, self._check_time)
        paid: Reply | None = None
        with self._lock:  # one step, so that the calls of a batch together exceed no limit
            if reason := self.reason_to_stop:
                advice = "" if self._stop_reason else "; answer from what you have"
                raise BudgetSpent(f"no more calls: {describe_end(reason)}{advice}", reason=reason)
            self._in_progress += 1
        try:
            reply = lm.complete(messages, model=call.model, on_delta=listener)
            if not isinstance(reply, Reply) or not isinstance(reply.text, str) or not isinstance(reply.model, str):
                value = f"a Reply with {reply.text!r:.80}" if isinstance(reply, Reply) else type(reply).__name__
                raise LLMError(f"model {name!r}: its `complete` returned {value}, not a Reply with a text and a model")
            for note in reply.notes or ():
                self.note(note)
            text, thought = split_thinking(reply.text)  # the model does not get its thinking back
            reply = replace(reply, text=text, thinking="\n\n".join(filter(None, (reply.thinking, thought))))
            reply = paid = with_counted_usage(reply, messages)
        except LLMError as exc:
            if exc.reply is not None:  # a reply that is not an answer was paid for too
                paid = exc.reply = with_counted_usage(exc.reply, messages)
            raise
        except Exception as exc:
            if exc is listener.raised:
                raise
            raise LLMError(f"model {name!r}: {type(exc).__name__}: {one_line(exc)}") from exc
        finally:
            with self._lock:  # one step, so that no other call sees this one neither in progress nor counted
                self._in_progress -= 1
                if paid is not None:
                    self.usage.count(paid.model, ModelUsage.of_call(paid, cost_of(paid, self.usage.prices)))
        replies.check_prompt(reply, messages)
        return reply

    def note(self, note: str) -> None:
        """Add a note to the completion of the run; equal notes are kept once."""
        with self._lock:
            self._notes[note] = None

    def take_notes(self) -> list[str]:
        """Return the notes since the last `take_notes`, and forget them."""
        with self._lock:
            notes, self._notes = list(self._notes), {}
        return notes

    def _check_time(self) -> None:
        """Raise BudgetSpent if the run was stopped or its time is up. Called for each piece of a reply in progress."""
        if self._stop_reason or self.seconds_left() <= 0:
            reason = self._stop_reason or "max_seconds"
            raise BudgetSpent(f"the call was cancelled: {describe_end(reason)}", reason=reason)

    def _write(self, journal: Journal, call: _Call, reply: Reply | None, *, error: str | None = None) -> None:
        """Journal a call that ends now. `reply`: what was paid for; None for a failed call that cost nothing."""
        paid = {} if reply is None else {"model": reply.model, "dollars": reply.dollars, **reply_fields(reply)}
        failure = {} if error is None else {"response": "", "error": error}
        journal({
            "type": "reply" if call.turn else "call", "key": call.key, "root_model": call.name, "turn": call.turn,
            "order": call.order, "start_seconds": round(call.start_seconds, 6),
            "execution_time": round(self.elapsed() - call.start_seconds, 6), **paid, **failure,
        })  # fmt: skip


def _key_of(model: str, messages: list[Message]) -> str:
    """The key of a call in a recording. For a conversation with a root, it ignores what a repeated run may change: cell
    numbers and addresses in outputs, and the limit of turns, which depends on other child runs."""
    if len(messages) > 1:
        messages = [{**item, "content": _TURN_COUNT.sub(r"\1", VOLATILE.sub("", item["content"]))} for item in messages]
    return call_key(model, messages)
