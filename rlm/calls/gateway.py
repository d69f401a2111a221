"""Make every model call of a run: of the root, of cells and of child runs.

The steps of a call:

1. A reply that is already paid for is returned: from the recording of an interrupted run, or from the cache.
2. The budget may refuse the call.
3. The call is made, and transient failures are retried.
4. The reply is counted, separated from its thinking, and written to the journal before the caller gets it.

Messages are cleaned here and nowhere else. Calls of cells run on threads that no interrupt of a cell strikes
(`rlm.calls.waiting`), so a call that was entered is always left.
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
from rlm.calls.usage import ModelUsage, Usage, cost_of, find_price
from rlm.context.excerpt import VOLATILE, make_printable
from rlm.errors import BudgetSpent, LLMError
from rlm.models import lm as replies
from rlm.models.endpoint_errors import one_line
from rlm.models.lm import LM, Message, Reply, call_key, reply_fields
from rlm.models.log import INFO, WARNING, log
from rlm.models.thinking import split_thinking

_TURNS = re.compile(r"(?<=\bTurn )(\d+)/\d+")  # the number of a turn, and how many there may be
Journal = Callable[[dict[str, Any]], object]


class PaidReplies(Protocol):
    """Replies that an earlier process paid for; see `rlm.trajectory.recording`."""

    def take(self, key: str) -> Reply | None:
        """The next reply to the call with this key, each once; None if none is left. Raises LLMError if it failed."""
        ...

    def take_turn(self, turn: int) -> Reply | None:
        """The reply of the root in this turn; None if there is none."""
        ...

    def take_child(self, key: str) -> ChildRun | None:
        """The next child run of the call with this key, each once; None if none is left."""
        ...


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a model, as `Gateway.ask` makes it."""

    lm: LM
    messages: list[Message]
    model: str | None  # the name to ask `lm` for; None for its default
    name: str  # that of the model, for records
    key: str  # a hash of name and messages; empty where nobody needs it
    on_delta: Callable[[str], object] | None
    turn: int | None
    order: int | None
    whole: bool
    started: float  # seconds since the run began


class Gateway:
    """Budget, retries, cache and usage of one run with its child runs. Safe for use by many threads."""

    def __init__(
        self, usage: Usage, budget: Budget | None = None, *, backoff: Backoff | None = None,
        cache: SubCache | None = None, journal: Journal | None = None, models: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        """- `usage`: counts calls, tokens and dollars
        - `budget`: the limits; by default none
        - `cache`: answers of sub-calls from other runs
        - `journal`: called with a record of each call as soon as the call ends
        - `models`: the models that cells may name besides their default; None for any
        """
        self.budget = budget or Budget(iterations=None)
        self.paid: PaidReplies | None = None  # the replies of the run that is resumed
        self.journal = journal
        self._models = models
        self._backoff = backoff or Backoff()
        self._cache = cache
        self._lock = threading.RLock()
        self._calls_numbered = 0
        self._notes: dict[str, None] = {}
        self.under_way = 0  # the number of calls in progress
        self.renew(usage)

    def renew(self, usage: Usage, *, turns: int = 0, seconds: float = 0.0) -> None:
        """Restart the counts from `usage`, with these turns and seconds already spent. Calls in progress, of code that
        an earlier question left running, count when they end."""
        self.usage = usage
        self.began = time.monotonic() - seconds  # the clock of the run: recorded starts count from here
        self._turns = turns
        self._stopped: str | None = None

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def seconds_left(self) -> float:
        """The rest of the budget; infinite without a limit."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.elapsed()

    def stop(self, reason: str) -> None:
        """Refuse all further calls; `reason` is the reason of the run's end."""
        self._stopped = reason

    @property
    def spent(self) -> str | None:
        """The keyword of the budget that is spent, such as `max_calls`; None while calls are allowed."""
        with self._lock:
            used, budget = self.usage, self.budget
            if self._stopped:
                return self._stopped
            if budget.calls is not None and used.calls + self.under_way >= budget.calls:
                return "max_calls"
            if budget.tokens is not None and used.tokens >= budget.tokens:
                return "max_tokens"
            if budget.dollars is not None and used.known_dollars >= budget.dollars:
                return "max_dollars"
            return "max_seconds" if budget.seconds is not None and self.elapsed() >= budget.seconds else None

    def take_turn(self) -> int | None:
        """Count one turn of the run or a child run. Returns how many were left, this one included; None for no limit.
        With 0, none is taken."""
        with self._lock:
            remaining = None if self.budget.iterations is None else max(0, self.budget.iterations - self._turns)
            self._turns += remaining != 0
        return remaining

    def check_model(self, model: str) -> None:
        """Raise LLMError for a model that a cell may not name. Without `models`, a cell may name any model; under a
        budget of dollars, only models with a price in `prices`."""
        if self._models is not None:
            if model not in self._models:
                allowed = ", ".join(sorted(self._models)) or "none"
                raise LLMError(f"the model {model} is not allowed in this run (allowed: {allowed}): leave `model` out")
        elif self.budget.dollars is not None and find_price(model, self.usage.prices) is None:
            raise LLMError(
                f"the model {model} is not allowed under max_dollars, since models= does not name it and prices= does "
                "not have its price: leave `model` out"
            )

    def number_calls(self, count: int) -> range:
        """Numbers for calls made together: by them a replay gives each call its own reply, whichever ended first."""
        with self._lock:
            self._calls_numbered += count
            return range(self._calls_numbered - count, self._calls_numbered)

    def ask(
        self, lm: LM, messages: list[Message], *, model: str | None = None,
        on_delta: Callable[[str], object] | None = None, turn: int | None = None, order: int | None = None,
        whole: bool = False,
    ) -> Reply:  # fmt: skip
        """Make one call, unless a recording or the cache has its reply. The cache serves calls without `on_delta` only.

        - `messages`: cleaned in place, so that the record of the caller has what was sent
        - `model`: the name to ask `lm` for; None for its default
        - `on_delta`: called with each piece of the text as it arrives
        - `turn`: the turn of the top root that makes the call; None for other calls
        - `order`: the number of the call, by default the next one
        - `whole`: a reply that is cut, empty or a tool call is an LLMError; an empty one is asked for once more

        Raises BudgetSpent when the budget allows no call, LLMError when the last try failed.
        """
        for message in messages:
            if not message["content"].isascii():  # half of a surrogate pair has no encoding
                message["content"] = make_printable(message["content"], terminal=False)
        name = model or getattr(lm, "model", None) or "unknown"
        key = _key_of(name, messages) if self.paid or self._cache or self.journal else ""
        if self.paid and (reply := self.paid.take(key) if turn is None else self.paid.take_turn(turn)):
            return reply
        cache = self._cache if on_delta is None else None
        # The key of a record is made of the messages; other runs' answers are valid only with the same options.
        cache_key = call_key(f"{name} {sampling}", messages) if (sampling := getattr(lm, "sampling", None)) else key
        if cache and (reply := cache.get(cache_key)):
            return reply
        if self.journal and order is None:
            order = self.number_calls(1)[0]
        call = _Call(lm, messages, model, name, key, on_delta, turn, order, whole, self.elapsed())
        try:
            reply = self._call_with_retries(call)
        except LLMError as exc:
            if self.journal and not isinstance(exc, BudgetSpent):
                self._write(self.journal, call, exc.reply, {"response": "", "error": str(exc)})
            raise
        if self.journal:
            self._write(self.journal, call, reply, {})
        if cache:
            try:
                cache.put(cache_key, reply)
            except OSError as exc:  # a full disk, say: the reply is there and paid
                log(WARNING, "a sub-answer was not kept: %s", exc.strerror or type(exc).__name__)
        return reply

    def _call_with_retries(self, call: _Call) -> Reply:
        """The reply of the first attempt that gives one, as long as error, backoff and budget allow another."""
        tries, was_empty = 0, False
        while True:
            tries += 1
            try:
                reply = self._call_once(call)
                if call.whole:
                    replies.check_whole(reply)
                return reply
            except LLMError as exc:
                paid = exc.reply
                is_empty = paid and not (paid.cut or paid.called or replies.has_words(paid.text))
                if type(exc) is LLMError and is_empty and not was_empty:
                    exc.transient = was_empty = True
                patience = PATIENCE_SECONDS if self.budget.seconds is None else self.seconds_left()
                seconds = self._backoff.wait(exc, tries, patience)
                if seconds is None or seconds >= self.seconds_left():
                    raise
                error, said = type(exc).__name__, str(exc)
            following = f"{tries + 1} of {self._backoff.retries + 1}"
            log(INFO, "%s: %s; asked again in %.1f s (try %s)", call.name, error, seconds, following, said=said)
            time.sleep(seconds)

    def _call_once(self, call: _Call) -> Reply:
        """Make the call, and count what it costs. Returns the reply without its thinking. All calls stream: a limit of
        time ends them, and so does text that only repeats itself. An exception of the `LM` becomes an LLMError, but not
        one of `on_delta`."""
        lm, messages = call.lm, call.messages
        name = call.model or getattr(lm, "model", None) or type(lm).__name__
        listener = replies.Listener(call.on_delta, self._check_time)
        paid: Reply | None = None
        with self._lock:  # checked and under way in one step: the calls of a batch exceed no limit together
            if reason := self.spent:
                advice = "" if self._stopped else "; answer from what you have"
                raise BudgetSpent(f"no more calls: {describe_end(reason)}{advice}", reason=reason)
            self.under_way += 1
        try:
            reply = lm.complete(messages, model=call.model, on_delta=listener)
            if not isinstance(reply, Reply) or not isinstance(reply.text, str) or not isinstance(reply.model, str):
                value = f"a Reply with {reply.text!r:.80}" if isinstance(reply, Reply) else type(reply).__name__
                raise LLMError(f"model {name!r}: its `complete` returned {value}, not a Reply with a text and a model")
            for note in reply.notes or ():
                self.note(note)
            text, thought = split_thinking(reply.text)  # only the text goes back to the model
            reply = replace(reply, text=text, thinking="\n\n".join(filter(None, (reply.thinking, thought))))
            reply = paid = replies.with_counted_usage(reply, messages)
        except LLMError as exc:
            if exc.reply is not None:  # refused, and paid
                paid = exc.reply = replies.with_counted_usage(exc.reply, messages)
            raise
        except Exception as exc:
            if exc is listener.raised:
                raise
            raise LLMError(f"model {name!r}: {type(exc).__name__}: {one_line(exc)}") from exc
        finally:
            with self._lock:  # answered and no longer under way, in one step
                self.under_way -= 1
                if paid is not None:
                    self.usage.count(paid.model, ModelUsage.of_call(paid, cost_of(paid, self.usage.prices)))
        replies.check_prompt(reply, messages)
        return reply

    def note(self, note: str) -> None:
        """Add a note to the completion of the run; equal notes are kept once."""
        with self._lock:
            self._notes[note] = None

    def take_notes(self) -> list[str]:
        """The notes since the last `take_notes`."""
        with self._lock:
            notes, self._notes = list(self._notes), {}
        return notes

    def _check_time(self) -> None:
        """Raise BudgetSpent in a call under way when the run has been stopped, or its time is up."""
        if self._stopped or self.seconds_left() <= 0:
            reason = self._stopped or "max_seconds"
            raise BudgetSpent(f"the call was broken off: {describe_end(reason)}", reason=reason)

    def _write(self, journal: Journal, call: _Call, reply: Reply | None, failure: dict[str, Any]) -> None:
        """Journal a call that ends now. `reply`: what was paid, also where the call failed."""
        paid = {} if reply is None else {"model": reply.model, "dollars": reply.dollars, **reply_fields(reply)}
        journal({
            "type": "reply" if call.turn else "call", "key": call.key, "root_model": call.name, "turn": call.turn,
            "order": call.order, "start_seconds": round(call.started, 6),
            "execution_time": round(self.elapsed() - call.started, 6), **paid, **failure,
        })  # fmt: skip


def _key_of(model: str, messages: list[Message]) -> str:
    """The key of a call. Equal for the root of a child run that is run again: its outputs may name other cells, and
    other child runs may have left it more or fewer turns."""
    if len(messages) > 1:
        messages = [{**item, "content": _TURNS.sub(r"\1", VOLATILE.sub("", item["content"]))} for item in messages]
    return call_key(model, messages)
