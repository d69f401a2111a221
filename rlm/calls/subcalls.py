"""Make the model calls of cells, `llm_query` and `rlm_query`, one at a time or in batches."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from monocontext.text.lazy_kinds import LazyContext
from rlm.calls.gateway import Gateway
from rlm.calls.records import ChildRun, SubCall
from rlm.calls.usage import Usage, cost_of
from rlm.calls.waiting import WaitClock, run_side_by_side
from rlm.context.excerpt import shorten
from rlm.context.lazy import is_lazy, is_text, thinking
from rlm.errors import BudgetSpent, LLMError, PromptTooLong
from rlm.models.lm import LM, Reply, call_key, reply_fields

CALLS_AT_ONCE = 16  # of one batch; the figure of rlms
CHILDREN_AT_ONCE = 4  # child runs of one batch; the figure of rlms

# The budget does not count calls that fail, so their records have limits of their own.
_MOST_FAILED_RECORDS = 10_000
_FAILED_PROMPT_CHARACTERS = 10_000
_QUESTION_CHARACTERS = 4_000  # a longer prompt of a child run is not a question, but text that contains one
_LONG_PROMPT = "Read the beginning of `context`: it says what to do with the rest of it. Do that."

RunChild = Callable[[str, object, str | None], ChildRun]  # called with query, context and model
_CellCall = Callable[[int], str]  # makes the call with this number; returns its answer, or raises LLMError


class SubCalls:
    """Makes the model calls of the cells of one run, and records each. Safe for use by many threads."""

    def __init__(
        self, lm: LM, usage: Usage, *, model: str | None = None, gateway: Gateway | None = None,
        texts: Sequence[LazyContext] = (), spawn: RunChild | None = None,
    ) -> None:  # fmt: skip
        """- `lm`, `model`: the model of sub-calls, and the name to ask it for
        - `usage`: counts the calls, unless there is a `gateway`
        - `gateway`: makes the calls, within the budget of the run; by default there is no budget
        - `texts`: lazy texts, which read ahead while calls are in progress
        - `spawn`: makes a child run; without it `rlm_query` makes the call of `llm_query`
        """
        self.gateway = gateway or Gateway(usage)
        self.seconds_left = self.gateway.seconds_left  # of a cell, for its runner
        self._lm = lm
        self._model = model
        self._texts = texts
        self._spawn = spawn
        self._lock = threading.Lock()
        self._records: list[SubCall] = []  # since the last drain
        self._failed = 0  # the number of failed calls since then
        self._abandonments = 0  # how often `abandon` was called
        self.waited = WaitClock()  # runs while at least one call is in progress
        functions = (self.llm_query, self.llm_query_batched, self.rlm_query, self.rlm_query_batched)
        self.functions: dict[str, Callable[..., Any]] = {function.__name__: function for function in functions}

    def llm_query(self, prompt: str, model: str | None = None) -> str:
        """Ask a language model; it sees only this prompt. Raises LLMError when the call fails."""
        return self._make_one(partial(self._ask_model, _check_prompt(prompt), model))

    def llm_query_batched(
        self, prompts: Iterable[str], model: str | None = None, return_exceptions: bool = False
    ) -> list[str | LLMError]:
        """Ask many prompts, at most 16 at the same time; answers come in the order of the prompts.

        When calls fail, LLMError is raised after all have ended; with `return_exceptions=True` the list has an LLMError
        for each failed call instead.
        """
        texts = _check_prompts(prompts, "llm_query_batched")
        calls = [partial(self._ask_model, text, model) for text in texts]
        return self._make_batch(calls, CALLS_AT_ONCE, return_exceptions)

    def rlm_query(self, prompt: str, context: object = None, model: str | None = None) -> str:
        """Let a child run answer `prompt` over `context`, with code. At the limit of depth, ask as llm_query does.
        Raises LLMError when the child or the call fails."""
        return self._make_one(partial(self._run_child, _check_prompt(prompt), context, model))

    def rlm_query_batched(
        self, prompts: Iterable[str], contexts: Iterable[object] | None = None, model: str | None = None,
        return_exceptions: bool = False,
    ) -> list[str | LLMError]:  # fmt: skip
        """Run a child for each prompt and its context, at most 4 at once.

        Answers come in the order of the prompts. Failures are raised or returned as by llm_query_batched.
        """
        texts = _check_prompts(prompts, "rlm_query_batched")
        values = [None] * len(texts) if contexts is None else list(contexts)
        if len(values) != len(texts):
            raise ValueError(f"contexts must have one item for each of the {len(texts)} prompts, not {len(values)}")
        calls = [partial(self._run_child, text, value, model) for text, value in zip(texts, values, strict=True)]
        return self._make_batch(calls, CHILDREN_AT_ONCE if self._spawn else CALLS_AT_ONCE, return_exceptions)

    def drain(self) -> tuple[SubCall, ...]:
        """The records since the last drain, in the order of the calls; those of a batch in the order of its prompts."""
        with self._lock:
            records, self._records, self._failed = self._records, [], 0
        return tuple(sorted(records, key=lambda record: record.order))

    def abandon(self) -> None:
        """Begin no more calls of the batches in progress."""
        self._abandonments += 1

    def _ask_model(self, prompt: str, model: str | None, order: int) -> str:
        """Make and record a call of a model. Returns its answer; raises LLMError."""
        self._check_model(model)
        name = model or self._model
        recorded_name = name or getattr(self._lm, "model", None) or "unknown"
        messages = [{"role": "user", "content": prompt}]
        started = self.gateway.elapsed()
        error: LLMError | None = None
        try:
            paid: Reply | None = self.gateway.ask(self._lm, messages, model=name, order=order, must_be_whole=True)
        except LLMError as exc:  # also for a reply that is cut or empty, which may have been paid for
            error, paid = exc, exc.reply
            if isinstance(exc, PromptTooLong):
                self._explain_too_long(exc, len(prompt))
        except Exception as exc:  # such as of a file of the cache: other calls of a batch still count
            error, paid = LLMError(f"{type(exc).__name__}: {exc}"), None
            error.__cause__ = exc
        cost = cost_of(paid, self.gateway.usage.prices) if paid else None
        reply = paid or Reply("", 0, 0, recorded_name)
        sent = messages[0]["content"]  # cleaned by the gateway
        self._record(SubCall(
            sent, reply, dollars=cost, start_seconds=started, execution_seconds=self.gateway.elapsed() - started,
            key=call_key(recorded_name, messages), order=order, error=str(error) if error else None,
        ))  # fmt: skip
        if error:
            raise error
        return reply.text

    def _explain_too_long(self, error: PromptTooLong, characters: int) -> None:
        """Add to the error how many characters may fit: by the endpoint's counts less a tenth, else half the prompt."""
        if error.tokens and error.window_tokens:
            fitting = min(characters, int(0.9 * characters * error.window_tokens / error.tokens))
        else:
            fitting = min(getattr(self._lm, "prompt_characters", None) or characters, characters) // 2
        error.args = (f"{error}; this prompt has {characters:,} characters, and about {fitting:,} fit",)

    def _run_child(self, prompt: str, context: object, model: str | None, order: int) -> str:
        """Run and record a child; at the limit of depth, call a model. Returns the answer; raises LLMError."""
        if self._spawn is None:
            return self._ask_model(self._join_context(prompt, context), model, order)
        self._check_model(model)
        query = prompt
        if context is None and len(prompt) > _QUESTION_CHARACTERS:
            query, context = _LONG_PROMPT, prompt
        key, started = _child_key(query, context, model), self.gateway.elapsed()
        recorded = self.gateway.paid.take_child(key) if self.gateway.paid else None
        child = recorded or self._spawn(query, context, model)
        usage, error = child.usage, str(child.error) if child.error else None
        name = model or next(iter(usage.models), "child run")
        reply = Reply(child.answer, usage.input_tokens, usage.output_tokens, name)
        call = SubCall(
            prompt, reply, dollars=usage.dollars, start_seconds=started,
            execution_seconds=self.gateway.elapsed() - started, key=key, order=order, error=error, child=child,
        )  # fmt: skip
        if not recorded:
            self._journal_child(call, child)
        self._record(call)
        if child.error:
            raise child.error
        return child.answer

    def _journal_child(self, call: SubCall, child: ChildRun) -> None:
        """Journal a child run, so that a resumed run need not repeat it, unless a limit ended the child run."""
        if self.gateway.journal and not isinstance(child.error, BudgetSpent):
            self.gateway.journal({
                "type": "child", "key": call.key, "root_model": call.reply.model, "turn": None, "order": call.order,
                **reply_fields(call.reply), **child.to_dict(), **({"error": call.error} if call.error else {}),
            })  # fmt: skip

    def _join_context(self, prompt: str, context: object) -> str:
        """Prompt and context as one prompt, for a call in place of a child run. Raises LLMError if they do not fit."""
        if context is None:
            return prompt
        limit = getattr(self._lm, "prompt_characters", None) or 100_000
        if not is_text(context) or len(context) > limit:  # type: ignore[arg-type] # `is_text` says that it has a length
            raise LLMError(
                f"max_depth allows no further child run, so the context must be text that fits into one prompt "
                f"({limit:,} characters), and this {type(context).__name__} is not: pass a shorter str"
            )
        return f"{prompt}\n\n{context}"

    def _make_batch(self, calls: Sequence[_CellCall], at_once: int, return_exceptions: bool) -> list[str | LLMError]:
        """Make the calls of a batch. Returns the answers in order, with an error in place of each that failed if
        `return_exceptions`; otherwise raises an LLMError that counts the failures and quotes the first."""
        answers = self._make_all(calls, at_once)
        failed = [(index, answer) for index, answer in enumerate(answers) if isinstance(answer, LLMError)]
        if not failed or return_exceptions:
            return answers
        index, error = failed[0]
        failures = f"{len(failed)} of {len(calls)} calls failed"
        can_repeat = len(failed) < len(calls) and not self.gateway.reason_to_stop
        advice = " (return_exceptions=True keeps the other answers)" if can_repeat else ""
        raise LLMError(f"{failures}; the first was prompts[{index}]: {error}{advice}") from error

    def _make_one(self, call: _CellCall) -> str:
        """Make a call. Returns its answer; raises LLMError."""
        (answer,) = self._make_all([call], 1)
        if isinstance(answer, LLMError):
            raise answer
        return answer

    def _make_all(self, calls: Sequence[_CellCall], at_once: int) -> list[str | LLMError]:
        """Make calls, at most `at_once` at the same time. Returns the answer or the error of each, in order."""
        abandonments_before = self._abandonments

        def attempt(call: _CellCall, order: int) -> str | LLMError:
            if self._abandonments != abandonments_before:
                return LLMError("the call was not made: its cell was stopped")
            try:
                return call(order)
            except LLMError as exc:
                return exc

        jobs = [partial(attempt, *job) for job in zip(calls, self.gateway.number_calls(len(calls)), strict=True)]
        # The clock runs while this lock is held. An interrupt at any point releases it, and so stops the clock.
        with (lock := threading.Lock()), self.waited.running(lock), thinking(self._texts):
            return run_side_by_side(jobs, at_once)

    def _check_model(self, model: object) -> None:
        """Raise TypeError or LLMError for a model that a cell may not name; its default is always allowed."""
        if model is not None and not isinstance(model, str):
            raise TypeError(f"model must be the name of a model, not {type(model).__name__}: put text into the prompt")
        if model and model not in (self._model, getattr(self._lm, "model", None)):
            self.gateway.check_model(model)

    def _record(self, call: SubCall) -> None:
        """Record a call. Of failed calls, only the first 10,000 are kept, with shortened prompts and no text."""
        has_failed = call.error is not None
        if has_failed:
            prompt = shorten(call.prompt, _FAILED_PROMPT_CHARACTERS)
            call = replace(call, prompt=prompt, reply=replace(call.reply, text=""))
        with self._lock:
            self._failed += has_failed
            if not has_failed or self._failed <= _MOST_FAILED_RECORDS:
                self._records.append(call)


def _child_key(query: str, context: object, model: str | None) -> str:
    """The key of a child run in a recording, equal only for an equal question over an equal context. A context that
    must be read to be identified (`text.lower()`, an object) gets a new key each time, so its child run is repeated."""
    try:
        contents = json.dumps(context, default=_identify_stored)
    except (TypeError, ValueError, RecursionError):
        contents = os.urandom(16).hex()
    digest = hashlib.sha256(contents.encode()).hexdigest()
    return call_key(f"rlm_query:{model}", [{"role": "user", "content": f"{query}\n{digest}"}])


def _identify_stored(value: Any) -> dict[str, object]:
    """The range (in its repr), URL and generation of a text in storage. Raises TypeError for any other value."""
    if is_lazy(value) and is_text(value) and value.url:
        return {"text": repr(value), "url": value.url, "generation": value.generation}
    raise TypeError(f"a {type(value).__name__} cannot be identified without reading it")


def _check_prompts(prompts: Iterable[str], name: str) -> list[str]:
    """The prompts of the function `name` as a list. Raises TypeError for one text in place of a list."""
    if is_text(prompts):
        raise TypeError(f"{name} takes a list of prompts, not one str: write {name}([prompt])")
    return [_check_prompt(prompt) for prompt in prompts]


def _check_prompt(prompt: object) -> str:
    """A prompt as a `str`; a lazy text is read. Raises TypeError, and ContextTooLarge for a text beyond its limit."""
    if is_text(prompt):
        return f"{prompt}"
    raise TypeError(f"a prompt must be a str, not {type(prompt).__name__}: pass text such as context[a:b]")
