"""Define `RLM`: configure it by keywords, ask questions about a context, and resume recorded runs."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from contextvars import copy_context
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rlm.calls.backoff import Backoff
from rlm.calls.budget import Budget
from rlm.calls.sub_cache import SubCache
from rlm.calls.usage import Prices, check_prices, cost_of
from rlm.errors import InvalidArgument, TrajectoryError, UnknownOption
from rlm.loop import UNBOUNDED_TOKENS, Setup
from rlm.models import registry as backends
from rlm.models.lm import CHARACTERS_PER_TOKEN, LM, Reply
from rlm.models.sdk_options import Sampling, strip_url
from rlm.runners import check_runner
from rlm.runners.runner import DEFAULT_RUNNER
from rlm.runners.tools import describe_tools
from rlm.session import Session
from rlm.trajectory.completion import Completion
from rlm.trajectory.display import print_step
from rlm.trajectory.recording import load_resumable
from rlm.trajectory.step import Step

_MODEL = "gpt-5"
_PROMPT_CHARACTERS = 100_000  # the longest prompt of a sub-call, as in rlms, unless the sub-model knows its own
_OUTPUT_CHARACTERS = 20_000  # of a block; but at most a quarter of the window, at 4 characters a token
_WINDOW_TOKENS = 128_000  # the smallest window of today's root models, unless the root model knows its own

READ_ALL = "Please read through the context and answer any queries or respond to any instructions contained within it."
"""The default question, as in rlm-minimal and rlms."""

_NOT_GIVEN: Any = object()  # unlike None, which is a context too


class RLM:
    """A Recursive Language Model: a root model that explores a `context` with Python, and never has to read all of it.
    By default the code runs in a confined process, without network, files and keys. Safe for use by many threads."""

    def __init__(
        self, model: str | None = None, sub_model: str | None = None, *,
        lm: LM | None = None, sub_lm: LM | None = None,
        preset: str | None = None,
        base_url: str | None = None, api_key: str | None = None, headers: Mapping[str, str] | None = None,
        sampling: Sampling | None = None, sub_sampling: Sampling | None = None,
        models: Collection[str] | None = None, prices: Prices | None = None,
        backend: str | None = None, backend_kwargs: Mapping[str, Any] | None = None,
        budget: Budget | None = None, max_iterations: int | None = None, max_calls: int | None = None,
        max_tokens: int | None = None, max_dollars: float | None = None, max_seconds: float | None = None,
        max_depth: int = 1, max_retries: int = 5, cell_timeout: float | None = 120.0, compaction: bool = True,
        output_limit: int | None = None, window_tokens: int | None = None, prompt_characters: int | None = None,
        runner: str | None = None, runner_options: Mapping[str, Any] | None = None,
        environment: str | None = None, environment_kwargs: Mapping[str, Any] | None = None,
        custom_tools: Mapping[str, object] | None = None, persistent: bool = False,
        sub_cache: SubCache | str | os.PathLike[str] | bool | None = None,
        trajectory: str | os.PathLike[str] | None = None,
        on_step: Callable[[Step], object] | None = None, on_delta: Callable[[str], object] | None = None,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        """Models:

        - `model`: the root model, at an OpenAI-compatible endpoint or as `anthropic:claude-opus-5-5`; by default gpt-5
        - `sub_model`: the model of sub-calls, by default the root model
        - `lm`, `sub_lm`: objects that make the calls instead; `sub_lm` is by default `lm`, asked for `sub_model`
        - `preset`: `openai` or `anthropic`, a pair of models
        - `base_url`, `api_key`, `headers`: for the provider of the root model
        - `sampling`: options of the root's requests, such as `{"temperature": 0}`, and of sub-calls that go to the same
          object; `sub_sampling`: options of sub-calls
        - `models`: the models that code may name in a sub-call; by default any, under `max_dollars` those with a price
        - `prices`: model -> dollars per million tokens (input, output)
        - `backend`, `backend_kwargs`: the provider and its options, with `model_name`, as in `rlms`; not with `lm`

        Limits of a question, with all its sub-calls and child runs:

        - `budget`, or its parts by keyword: `max_iterations` (turns, 30), `max_calls`, `max_tokens`, `max_dollars`,
          `max_seconds`
        - `max_depth`: 2 lets `rlm_query` start child runs
        - `max_retries`: how often a call that failed for a transient reason is made again
        - `cell_timeout`: seconds that a cell may run, without its waits for sub-calls; None for no limit
        - `output_limit`: characters of output per block; by default 20,000, but at most a quarter of the window
        - `window_tokens`: the root's window; by default what its provider says, else 128,000
        - `prompt_characters`: the most characters of a sub-call's prompt; by default 100,000, at most half its window
        - `compaction`: whether to shorten a history that nears the window

        Running:

        - `runner`: where code runs. `subprocess`: a confined process (Linux); `wasm`: Python in WebAssembly under Node;
          `confined`, the default: the first of these that works; `local`: this process with its rights, no sandbox;
          `docker`; `sandbox`: one of a provider (docs/runners.md)
        - `runner_options`: `limits` for `subprocess`, `pyodide` for `wasm`, `image` for `docker`, `make` for `sandbox`
        - `environment`, `environment_kwargs`: `runner` and `runner_options`, as `rlms` names them
        - `custom_tools`: name -> function or value for the code
        - `persistent`: keep one namespace for all questions
        - `sub_cache`: where to keep answers of sub-calls for later runs: a directory, or True for memory

        Recording:

        - `trajectory`: a `.jsonl` file, or a directory that gets one file per run
        - `on_step`: called after each turn, in the thread of the run; `on_delta`: with each piece of the root's reply
        - `verbose`: print the steps to stderr

        Raises RunnerUnavailable; UnknownOption for a provider, preset or option of a model that does not exist.
        """
        runner, runner_options = runner or environment or DEFAULT_RUNNER, runner_options or environment_kwargs or {}
        check_runner(runner, runner_options)
        if max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, not {max_depth}")
        chosen = _choose_models(
            model, sub_model=sub_model, lm=lm, sub_lm=sub_lm, preset=preset, backend=backend,
            backend_kwargs=backend_kwargs, base_url=base_url, api_key=api_key, headers=headers, sampling=sampling,
            sub_sampling=sub_sampling,
        )  # fmt: skip
        if isinstance(models, str) or not all(isinstance(name, str) for name in models or ()):
            raise TypeError(f"models= must be a list of names, not {models!r}")
        limits: dict[str, Any] = {"iterations": max_iterations, "calls": max_calls, "tokens": max_tokens,
                                  "dollars": max_dollars, "seconds": max_seconds}  # fmt: skip
        budget = replace(budget or Budget(), **{key: limit for key, limit in limits.items() if limit is not None})
        if isinstance(sub_cache, bool):
            sub_cache = SubCache() if sub_cache else None
        elif sub_cache is not None and not isinstance(sub_cache, SubCache):
            sub_cache = SubCache(sub_cache)
        tools, tool_lines = describe_tools(custom_tools)
        self._model = str(getattr(chosen.root, "model", model))
        self._made, self._persistent = chosen.made, persistent
        self._setup = Setup(
            root=chosen.root, root_model=None, sub_lm=chosen.sub, sub_model=chosen.sub_model, runner=runner,
            runner_options=dict(runner_options), budget=budget, cell_timeout=cell_timeout, max_depth=max_depth,
            tools=tools, tool_lines=tool_lines, prices=dict(check_prices(prices or {})),
            models=None if models is None else frozenset(models), backoff=Backoff(retries=max_retries), cache=sub_cache,
            target=trajectory, metadata={}, on_step=on_step or (print_step if verbose else None), on_delta=on_delta,
            **_limits_of_windows(chosen, window_tokens, prompt_characters, output_limit, compaction=compaction),
        )  # fmt: skip
        self._setup = replace(self._setup, metadata=self._metadata())
        self._persistent_session: Session | None = None
        self._lock = threading.Lock()  # guards `_persistent_session`
        _warn_of_missing_prices(self._setup, self._model)

    def __repr__(self) -> str:
        return f"<RLM {self._model}, runner {self._setup.runner}, at most {self.budget.iterations} turns>"

    def __enter__(self) -> RLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the namespace of a persistent RLM, and close the connections of the models that it made from names."""
        with self._lock:
            session, self._persistent_session = self._persistent_session, None
        if session:
            session.close()
        for lm in self._made:
            if callable(close := getattr(lm, "close", None)):
                close()

    @property
    def lms(self) -> tuple[LM, ...]:
        """The root model, and the model of sub-calls if it is another object."""
        root, sub = self._setup.root, self._setup.sub_lm
        return (root,) if sub is root else (root, sub)

    @property
    def budget(self) -> Budget:
        """The limits of a run."""
        return self._setup.budget

    def session(self, context: object = None, *, source: str | None = None) -> Session:
        """Begin a conversation about one context, in one namespace: `with rlm.session(context) as s: s.ask("...")`.
        `source`: where the context came from; the trajectory records it, so that the command can resume the run."""
        return Session(self._setup, context, source=source)

    def completion(
        self, query: str, context: object = None, *, budget: Budget | None = None,
        trajectory: str | os.PathLike[str] | None = None,
    ) -> Completion:  # fmt: skip
        """Answer `query` about `context`, such as a str, a lazy text, a list or a dict.

        Each call has a namespace of its own. With `persistent` all calls share one, with the context of the first call,
        which later calls may leave out. A lazy text stays in storage: code gets the pieces that it looks at. Plain data
        is copied to where the code runs. The runner `local` takes any object, by reference.

        - `budget`: the limits of this call, in place of those of this RLM; not with `persistent`
        - `trajectory`: the file to record this run in, or a directory for a new file; not with `persistent`. A run of
          this question that the file already records is continued

        Raises LLMError when the root model fails, RunnerUnavailable when the runner cannot start here or cannot take
        this context, ChannelAbuse when code in a sandbox tampers with the channel to this process, and TrajectoryError
        when `trajectory` records another question.
        """
        if self._persistent:
            if budget is not None or trajectory is not None:
                raise InvalidArgument("a persistent RLM takes budget= and trajectory= in RLM(...), not in a call")
            return self._shared_session(context).ask(query)
        setup = replace(self._setup, budget=budget or self._setup.budget)
        recording = None
        if trajectory and os.path.isfile(trajectory) and b"\n" in Path(trajectory).read_bytes():
            recording = load_resumable(trajectory)
            if recording.metadata["query"] != query:
                raise TrajectoryError(f"{trajectory} records the run of another question: give another path")
        with closing(Session(setup, context, path=trajectory)) as session:
            return session.resume(recording) if recording else session.ask(query)

    async def acompletion(self, query: str, context: object = None) -> Completion:
        """Answer as `completion` does, without blocking the event loop. The run has a thread of its own, which calls
        `on_step`. If the task is cancelled, the run makes no more calls, and ends after its current cell."""
        import asyncio  # takes 25 ms, which callers of `completion` need not wait
        from concurrent.futures import Future

        session = self._shared_session(context) if self._persistent else self.session(context)
        future: Future[Completion] = Future()
        cancelled = threading.Event()

        def run() -> None:
            try:
                future.set_result(session.ask(query, cancelled=cancelled))
            except BaseException as exc:
                future.set_exception(exc)
            finally:
                if not self._persistent:
                    session.close()

        future.set_running_or_notify_cancel()
        task_context = copy_context()  # so that the spans of the task are parents of the run's
        threading.Thread(target=task_context.run, args=(run,), name="rlm-run", daemon=True).start()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            session.cancel(cancelled)
            raise

    def resume(self, path: str | os.PathLike[str], context: object = _NOT_GIVEN) -> Completion:
        """Continue the run that the trajectory `path` records; if it has ended, return its completion.

        Recorded cells run again to restore the namespace, with the recorded answers of their sub-calls, so no call is
        paid twice. Only child runs over an object, or a derived lazy text such as `text.lower()`, run anew. Contexts of
        at most 100,000 characters of plain data are in the trajectory; pass any other again. Raises TrajectoryError.
        """
        recording = load_resumable(path)
        metadata = recording.metadata
        if context is _NOT_GIVEN:
            recorded = metadata["context"]
            if "context_value" not in metadata and recorded["type"] != "NoneType":
                location = f" at {recorded['uri']}" if recorded.get("uri") else ""
                raise TrajectoryError(f"the context, a {recorded['type']}{location}, is missing: pass it as `context`")
            context = metadata.get("context_value")
        with Session(self._setup, context, path=path) as session:
            return session.resume(recording)

    @classmethod
    def resume_run(cls, path: str | os.PathLike[str], context: object = _NOT_GIVEN, **options: Any) -> Completion:
        """Resume a run with its recorded models and limits. `options`: keywords of RLM that override them."""
        metadata = load_resumable(path).metadata
        if "sub_model" in options:
            options.setdefault("sub_lm", None)
        with cls(**recorded_options(metadata) | options) as rlm:
            return rlm.resume(path, context)

    def _shared_session(self, context: object) -> Session:
        """The session of a persistent RLM. Raises ValueError for another context than that of the first call."""
        with self._lock:
            session = self._persistent_session = self._persistent_session or self.session(context)
            first = session.context
            is_same = context is first or (isinstance(context, str) and isinstance(first, str) and context == first)
            if context is not None and not is_same:
                raise ValueError("a persistent RLM keeps its first context: call close() before you pass another one")
            return session

    def _metadata(self) -> dict[str, Any]:
        """The settings that the first line of each trajectory records."""
        setup = self._setup
        backend, sub_backend = (getattr(lm, "backend", type(lm).__name__) for lm in (setup.root, setup.sub_lm))
        url = getattr(setup.sub_lm, "base_url", None)
        optional: dict[str, Any] = {
            "sub_backend": None if sub_backend == backend else sub_backend,
            "sub_base_url": strip_url(str(url)) if sub_backend != backend and url else None,
            "sampling": getattr(setup.root, "sampling", None),
            "sub_sampling": None if setup.sub_lm is setup.root else getattr(setup.sub_lm, "sampling", None),
        }
        models = {} if setup.models is None else {"models": sorted(setup.models)}  # recorded also if none is allowed
        backend_kwargs = {"model_name": self._model}
        if (root_url := getattr(setup.root, "base_url", None)) is not None:
            backend_kwargs["base_url"] = strip_url(str(root_url))
        return {
            "root_model": self._model, "max_depth": setup.max_depth, "max_iterations": setup.budget.iterations,
            "backend": backend, "backend_kwargs": backend_kwargs, "environment_type": setup.runner,
            "environment_kwargs": {"cell_timeout": setup.cell_timeout, "output_limit": setup.output_limit},
            "other_backends": None, "context": None, "budget": asdict(setup.budget),
            "sub_model": setup.sub_model or (str(getattr(setup.sub_lm, "model", "")) or None),
            **{name: value for name, value in optional.items() if value}, **models,
        }  # fmt: skip


def _choose_models(
    model: str | None, *, lm: LM | None, preset: str | None, backend: str | None,
    backend_kwargs: Mapping[str, Any] | None, **others: Any,
) -> backends.Models:  # fmt: skip
    """Choose the models of an RLM. `others`: more keywords of `registry.choose`; `backend_kwargs` override them."""
    if backend_kwargs and lm is not None:
        raise UnknownOption("backend_kwargs= has no effect on the object lm=: set these options on lm itself")
    options = others | dict(backend_kwargs or {})
    model = options.pop("model_name", None) or model
    if model is None and not preset and lm is None and backend in (None, "openai"):
        model = _MODEL
    return backends.choose(model, preset=preset, backend=backend, lm=lm, **options)


def _limits_of_windows(
    chosen: backends.Models, window_tokens: int | None, prompt_characters: int | None, output_limit: int | None,
    *, compaction: bool
) -> dict[str, int]:  # fmt: skip
    """The fields of a Setup whose defaults follow from the windows of its models."""
    tokens = window_tokens or int(getattr(chosen.root, "window_tokens", _WINDOW_TOKENS))
    sub_tokens = int(getattr(chosen.sub, "window_tokens", tokens if chosen.sub is chosen.root else _WINDOW_TOKENS))
    half_window = min(_PROMPT_CHARACTERS, sub_tokens * CHARACTERS_PER_TOKEN // 2)
    return {
        "window_tokens": tokens if compaction else UNBOUNDED_TOKENS,
        "prompt_characters": prompt_characters or int(getattr(chosen.sub, "prompt_characters", half_window)),
        "output_limit": min(_OUTPUT_CHARACTERS, tokens) if output_limit is None else output_limit,
    }


def _warn_of_missing_prices(setup: Setup, root_model: str) -> None:
    """Warn the caller of RLM of models without a known price, whose cost `max_dollars` may not be able to limit."""
    if setup.budget.dollars is None:  # then no price need be loaded
        return
    names = dict.fromkeys((root_model, setup.sub_model or str(getattr(setup.sub_lm, "model", root_model))))
    if unpriced := [name for name in names if cost_of(Reply("", 1, 1, name), setup.prices) is None]:
        counted = "max_dollars counts only what its endpoint reports (see `prices`)"
        warnings.warn(f"no price is known for {', '.join(unpriced)}: {counted}", stacklevel=3)


def recorded_options(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of an RLM that continues a recorded run, from the metadata of that run."""
    options: dict[str, Any] = {
        "budget": Budget(**metadata["budget"]), "max_depth": metadata["max_depth"],
        "runner": metadata["environment_type"], "cell_timeout": metadata["environment_kwargs"].get("cell_timeout"),
        "output_limit": metadata["environment_kwargs"]["output_limit"], "models": metadata.get("models"),
    }  # fmt: skip
    backend, sub_backend = metadata["backend"], metadata.get("sub_backend")
    if not backends.is_known(backend):  # the run had an object, whose class is recorded
        return options
    root, sub_model = metadata["backend_kwargs"], metadata.get("sub_model")
    options |= {
        "model": f"{backend}:{root['model_name']}", "base_url": root.get("base_url"),
        "sub_model": f"{sub_backend}:{sub_model}" if sub_backend else sub_model,
        "sampling": metadata.get("sampling"), "sub_sampling": metadata.get("sub_sampling"),
    }  # fmt: skip
    sub_base_url = metadata.get("sub_base_url")
    if sub_base_url and sub_backend and backends.is_known(sub_backend):
        # RLM has no keyword for the endpoint of a second provider.
        options |= {"sub_model": None, "sub_lm": backends.make_lm(sub_backend, str(sub_model), base_url=sub_base_url)}
    return options
