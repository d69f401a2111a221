"""The model calls that code in a cell makes: `llm_query` and `llm_query_batched`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from rlm.errors import LLMError
from rlm.lm import LM
from rlm.usage import Usage

CONCURRENCY = 16
"""Calls of one batch that are under way at once; the figure of rlms."""


@dataclass(frozen=True, slots=True)
class SubCall:
    """The record of one call, answered or failed."""

    model: str
    prompt: str
    response: str
    """Empty when the call failed."""
    input_tokens: int
    output_tokens: int
    execution_seconds: float
    error: str | None = None
    """Why it failed."""


class SubCalls:
    """Asks the sub-model for the cells of one run, and keeps the books. Safe for use by many threads."""

    def __init__(self, lm: LM, usage: Usage, *, model: str | None = None) -> None:
        self._lm = lm
        self._model = model
        self._usage = usage
        self._lock = threading.Lock()
        self._records: list[SubCall] = []
        self._open = 0
        self._opened_at = 0.0
        self._waited_seconds = 0.0

    def llm_query(self, prompt: str, model: str | None = None) -> str:
        """Ask a language model; it sees only this prompt. Raises LLMError when the call fails."""
        _demand_str(prompt)
        name = model or self._model
        started = time.perf_counter()
        with self._waiting():
            try:
                reply = self._lm.complete([{"role": "user", "content": prompt}], model=name)
            except Exception as exc:
                error = exc if isinstance(exc, LLMError) else LLMError(f"{type(exc).__name__}: {exc}")
                shown = name or getattr(self._lm, "model", None) or "unknown"
                self._record(SubCall(shown, prompt, "", 0, 0, time.perf_counter() - started, str(error)))
                raise error from (exc.__cause__ if error is exc else exc)
        self._usage.add(reply)
        seconds = time.perf_counter() - started
        self._record(SubCall(reply.model, prompt, reply.text, reply.input_tokens, reply.output_tokens, seconds))
        return reply.text

    def llm_query_batched(
        self, prompts: Iterable[str], model: str | None = None, return_exceptions: bool = False
    ) -> list[str | LLMError]:
        """Ask many prompts at once, at most 16 under way; answers come in the order of the prompts.

        When calls fail, LLMError is raised after all have ended; with `return_exceptions=True` each failed place holds
        its LLMError instead.
        """
        if isinstance(prompts, str):
            raise TypeError("llm_query_batched takes a list of prompts, not one str")
        asked = list(prompts)
        for prompt in asked:
            _demand_str(prompt)

        def attempt(prompt: str) -> str | LLMError:
            try:
                return self.llm_query(prompt, model)
            except LLMError as exc:
                return exc

        with ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="rlm-sub") as pool:
            answers = list(pool.map(attempt, asked))
        failed = [(i, answer) for i, answer in enumerate(answers) if isinstance(answer, LLMError)]
        if failed and not return_exceptions:
            index, error = failed[0]
            raise LLMError(f"{len(failed)} of {len(asked)} calls failed, first prompts[{index}]: {error}") from error
        return answers

    def drain(self) -> tuple[SubCall, ...]:
        """The records since the last drain."""
        with self._lock:
            records, self._records = tuple(self._records), []
        return records

    @property
    def waited_seconds(self) -> float:
        """Time so far during which at least one call was under way."""
        with self._lock:
            return self._waited_seconds + (time.perf_counter() - self._opened_at if self._open else 0.0)

    def _record(self, call: SubCall) -> None:
        with self._lock:
            self._records.append(call)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        with self._lock:
            if not self._open:
                self._opened_at = time.perf_counter()
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1
                if not self._open:
                    self._waited_seconds += time.perf_counter() - self._opened_at


def _demand_str(prompt: object) -> None:
    if not isinstance(prompt, str):
        raise TypeError(f"a prompt is a str, not {type(prompt).__name__}: pass text such as context[a:b]")
