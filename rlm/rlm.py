"""The two classes that callers use: `RLM`, and `RLM_REPL` in the shape of rlm-minimal."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, replace
from types import TracebackType
from typing import Any, ClassVar, Self

from rlm import backends
from rlm.backoff import Backoff
from rlm.budget import Budget
from rlm.completion import Completion
from rlm.errors import TrajectoryError
from rlm.gate import Gate
from rlm.lm import LM
from rlm.options import refuse_unknown
from rlm.prices import Prices
from rlm.recording import Recording
from rlm.runner import DEFAULT_RUNNER
from rlm.runners import check_runner
from rlm.session import Session, Setup
from rlm.step import Step
from rlm.sub_cache import SubCache
from rlm.subcalls import SubCalls
from rlm.tools import tools_and_lines
from rlm.trajectory import run_metadata
from rlm.usage import Usage

_PROMPT_CHARACTERS = 100_000  # what rlms tells its models; a sub-model that knows better has `prompt_characters`
_WINDOW_TOKENS = 128_000  # the smallest of today's root models; an LM that knows better has `window_tokens`

READ_ALL = "Please read through the context and answer any queries or respond to any instructions contained within it."
"""What is asked where no question is given, as in rlm-minimal and rlms."""

_NOT_GIVEN: Any = object()


class _OnClassOrObject:
    """`RLM.resume(path)` makes an RLM as the trajectory describes it; `rlm.resume(path)` uses that very object."""

    def __init__(self, function: Callable[..., Completion]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, rlm: RLM | None, kind: type[RLM]) -> Callable[..., Completion]:
        def resume(path: str | os.PathLike[str], context: object = _NOT_GIVEN, **options: Any) -> Completion:
            return self._function(rlm, path, context, **options)

        resume.__doc__ = self.__doc__
        return resume


class _Shaped:
    """What `RLM(...)` makes: an RLM, or the shape of a peer. Apart from RLM, whose signature is that of `__init__`."""

    _shapes: ClassVar[dict[str, type[Any]]] = {}

    def __init_subclass__(cls, *, keyword: str | None = None) -> None:
        """A subclass that stands for the shape of a peer says by which keyword it is known; see `rlm.rlms`."""
        if keyword:
            cls._shapes[keyword] = cls

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """`RLM(backend=...)` is written for rlms, and gets its shape."""
        shapes = cls._shapes if cls is RLM else {}
        made: Self = super().__new__(next((shapes[name] for name in options if name in shapes), cls))
        return made


class RLM(_Shaped):
    """A Recursive Language Model: a root model that writes Python over a `context` it never has to read whole.

    The code runs in a confined process of its own, without a network, files or keys; see `runner`. Safe for use by many
    threads.
    """

    def __init__(
        self,
        model: str = "gpt-5",
        sub_model: str | None = None,
        *,
        lm: LM | None = None,
        sub_lm: LM | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        preset: str | None = None,
        runner: str | None = None,
        runner_options: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        max_iterations: int | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_dollars: float | None = None,
        max_cost: float | None = None,
        max_seconds: float | None = None,
        max_depth: int = 1,
        max_retries: int = 5,
        custom_tools: Mapping[str, object] | None = None,
        persistent: bool = False,
        cell_timeout: float | None = 120.0,
        output_limit: int = 20_000,
        compaction: bool = True,
        window_tokens: int | None = None,
        sub_cache: SubCache | str | os.PathLike[str] | bool | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        prices: Prices | None = None,
        trajectory: str | os.PathLike[str] | None = None,
        on_step: Callable[[Step], object] | None = None,
        on_delta: Callable[[str], object] | None = None,
        verbose: bool = False,
        **unknown: Any,
    ) -> None:
        """Models: `lm` and `sub_lm` take the place of `model` at an OpenAI-compatible endpoint (`base_url`, `api_key`);
        `preset` ("openai", "anthropic") names a pair of models. Sub-calls go to `sub_lm`, by default `lm`, and ask it
        for `sub_model`, by default its own model.

        Limits: `budget`, or its parts by keyword, over the whole tree of a run (`max_cost` is `max_dollars`);
        `max_depth` 2 lets `rlm_query` start child runs. `cell_timeout` is in seconds of a cell's own time, None for no
        limit; `output_limit` in characters per block. `max_retries` of a call that fails for a while.

        `runner`: where the code runs. `"subprocess"`, a confined process of this machine (Linux), refused where nothing
        confines it; `"local"`, this process, with its rights: no sandbox; `"docker"`; `"modal"`.
        `runner_options`: `limits` of memory, CPU, disk and files for `subprocess`, `image` for `docker`.

        More: `custom_tools`, name -> function or value. `persistent` keeps one namespace for all questions. With
        `compaction`, a history that nears `window_tokens` is shortened. `sub_cache=True` keeps sub-answers in memory,
        `cache_dir` in a directory. `prices`: model -> dollars per million tokens (input, output). `trajectory`: a
        `.jsonl` file, or a directory that gets one file per run. `on_step` is called after each turn, `on_delta` with
        each piece of the root's reply, both in the thread of the run. `verbose` prints the steps to stderr.

        Raises RunnerUnavailable, and UnknownOption for a keyword of a peer, naming ours.
        """
        refuse_unknown(unknown, inspect.signature(RLM.__init__).parameters)
        runner = runner or DEFAULT_RUNNER
        check_runner(runner)
        if max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, not {max_depth}")
        self._made: list[LM] = []
        backend = "openai"
        if preset is not None:
            backend, preset_model, preset_sub = backends.preset(preset)
            model, sub_model = (preset_model if model == "gpt-5" else model), sub_model or preset_sub
        root = lm or self._make(backend, model, base_url, api_key)
        model = str(getattr(root, "model", model))
        self._setup = Setup(
            root=root,
            root_model=None,
            sub_lm=sub_lm or root,
            sub_model=sub_model,
            runner=runner,
            runner_options=dict(runner_options or {}),
            budget=_budget(
                budget,
                iterations=max_iterations,
                calls=max_calls,
                tokens=max_tokens,
                dollars=max_dollars if max_dollars is not None else max_cost,
                seconds=max_seconds,
            ),
            cell_timeout=cell_timeout,
            output_limit=output_limit,
            max_depth=max_depth,
            tools=(tools := tools_and_lines(custom_tools))[0],
            tool_lines=tools[1],
            prices=dict(prices or {}),
            backoff=Backoff(retries=max_retries),
            cache=_cache(sub_cache, cache_dir),
            window_tokens=_window(root, window_tokens) if compaction else 2**62,
            prompt_characters=getattr(sub_lm or root, "prompt_characters", _PROMPT_CHARACTERS),
            target=trajectory,
            metadata={},
            on_step=on_step or _shown(verbose),
            on_delta=on_delta,
        )
        self._model, self._persistent = model, persistent
        self._kept: Session | None = None
        self._lock = threading.Lock()
        self._setup = replace(self._setup, metadata=self._metadata(backend))

    def __repr__(self) -> str:
        turns = self._setup.budget.iterations
        return f"<RLM {self._model}, runner {self._setup.runner}, at most {turns} turns>"

    def __enter__(self) -> RLM:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End a persistent namespace, and close the connections of the models that were made here."""
        with self._lock:
            kept, self._kept = self._kept, None
        if kept:
            kept.close()
        for lm in self._made:
            if callable(close := getattr(lm, "close", None)):
                close()

    @property
    def budget(self) -> Budget:
        """What a run may spend."""
        return self._setup.budget

    def session(self, context: object = None, *, source: str | None = None) -> Session:
        """Questions in a row over one context, in one namespace: `with rlm.session(context) as s: s.ask("...")`.

        `source` goes into the trajectory: where the context came from, for a command that resumes the run.
        """
        return Session(self._setup, context, source=source)

    @contextmanager
    def asking(self, context: object = None) -> Iterator[SubCalls]:
        """`llm_query` and `llm_query_batched` without a root, in the limits of this RLM."""
        setup = self._setup
        gate = Gate(Usage(setup.prices), setup.budget, backoff=setup.backoff, cache=setup.cache)
        yield SubCalls(setup.sub_lm, gate.usage, model=setup.sub_model, gate=gate, context=context)

    def completion(self, query: str, context: object = None) -> Completion:
        """Answer `query` from `context`: a str, a lazy text, a list, a dict.

        Each call has a namespace of its own, unless `persistent`: then there is one over the context of the first call,
        and later calls may leave it out. A lazy text is served to where the code runs, piece by piece as it looks;
        plain data is copied there; the runner `local` takes any object, by reference.

        Raises LLMError when the root model fails, RunnerUnavailable when the runner cannot start here or cannot take
        this context, ChannelAbuse when code in a sandbox tampers with the way out.
        """
        if self._persistent:
            return self._session(context).ask(query)
        with self.session(context) as session:
            return session.ask(query)

    async def acompletion(self, query: str, context: object = None) -> Completion:
        """`completion`, without blocking the event loop: the run has its own thread, and `on_step` is called there.

        When the task is cancelled, the run asks no model any more and ends with the cell that it is in.
        """
        session = self._session(context) if self._persistent else self.session(context)
        future: Future[Completion] = Future()

        def run() -> None:
            try:
                future.set_result(session.ask(query))
            except BaseException as exc:
                future.set_exception(exc)
            finally:
                if not self._persistent:
                    session.close()

        future.set_running_or_notify_cancel()
        threading.Thread(target=run, name="rlm-run", daemon=True).start()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            session.gate.stop("cancelled")
            raise

    @_OnClassOrObject
    def resume(self: Any, path: Any, context: Any, **options: Any) -> Completion:
        """Go on with the run that the trajectory `path` records; of one that has ended, give its completion again.

        Recorded cells run again for what they leave in the namespace, with the recorded sub-answers: nothing that was
        recorded is paid again. Called on the class, `RLM.resume(path, **options)`, models and limits are those of the
        trajectory, unless `options` say otherwise. A `context` of up to 100,000 plain characters is in the trajectory;
        any other is to be given again. Raises TrajectoryError.
        """
        recording, whole_bytes = Recording.load(path)
        metadata = recording.metadata
        if "query" not in metadata or not isinstance(metadata.get("context"), dict):
            raise TrajectoryError(f"{path} does not hold the question: it was written by another program")
        if context is _NOT_GIVEN:
            told = metadata["context"]
            if "context_value" not in metadata and told["type"] != "NoneType":
                where = f" at {told['uri']}" if told.get("uri") else ""
                raise TrajectoryError(f"the context of this run, a {told['type']}{where}, is to be given: context=...")
            context = metadata.get("context_value")
        rlm = RLM(**recorded_options(metadata) | options) if self is None else self
        with Session(rlm._setup, context, path=path) as session:
            return session.go_on(recording, whole_bytes)

    def _session(self, context: object) -> Session:
        with self._lock:
            if self._kept is None:
                self._kept = self.session(context)
            elif context is not None and not _same(context, self._kept.context):
                raise ValueError("a persistent RLM keeps the context of its first question: close() it first")
            return self._kept

    def _make(self, backend: str, model: str, base_url: str | None, api_key: str | None) -> LM:
        self._made.append(backends.make_lm(backend, model, base_url=base_url, api_key=api_key))
        return self._made[-1]

    def _metadata(self, backend: str) -> dict[str, Any]:
        setup = self._setup
        made = type(setup.root).__name__
        return run_metadata(
            root_model=self._model,
            backend={"OpenAILM": "openai", "AnthropicLM": "anthropic", "ClaudeAgentLM": "claude-agent"}.get(made, made),
            base_url=getattr(setup.root, "base_url", None),
            runner=setup.runner,
            max_iterations=setup.budget.iterations,
            runner_options={"cell_timeout": setup.cell_timeout, "output_limit": setup.output_limit},
            context=None,
            max_depth=setup.max_depth,
            sub_model=setup.sub_model or (str(getattr(setup.sub_lm, "model", "")) or None),
            budget=asdict(setup.budget),
        )


class RLM_REPL:
    """The shape of rlm-minimal: `RLM_REPL(...).completion(context, query)` gives the answer as a str."""

    def __init__(
        self,
        api_key: str | None = None,
        model: str = "gpt-5",
        recursive_model: str | None = None,
        max_iterations: int = 20,
        depth: int = 0,
        enable_logging: bool = False,
        context_obj: object = None,
        **options: Any,
    ) -> None:
        """`recursive_model` answers the sub-calls. `depth` is accepted and unused, as in rlm-minimal.

        `enable_logging` prints each step to stderr. `context_obj` is the context of calls that give none, as in its
        fork DeepRecurse. Other keywords are those of `RLM`.
        """
        self.depth = depth
        self.context_obj = context_obj
        options.setdefault("verbose", enable_logging)
        self._rlm = RLM(model, recursive_model, api_key=api_key, max_iterations=max_iterations, **options)

    def completion(self, context: object = None, query: str | None = None, *, context_obj: object = None) -> str:
        """The answer to `query`, by default to what the context itself asks. Raises LLMError."""
        given = (held for held in (context_obj, context, self.context_obj) if held is not None)
        return self._rlm.completion(query or READ_ALL, next(given, None)).answer


def recorded_options(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of an RLM that continues a recorded run, with models by name."""
    kept = {"openai", "anthropic", "claude-agent"}
    options: dict[str, Any] = {
        "budget": Budget(**metadata["budget"]),
        "max_depth": metadata["max_depth"],
        "runner": metadata["environment_type"],
        "cell_timeout": metadata["environment_kwargs"]["cell_timeout"],
        "output_limit": metadata["environment_kwargs"]["output_limit"],
    }
    if metadata["backend"] in kept:
        named = metadata["backend_kwargs"]
        options["lm"] = backends.make_lm(metadata["backend"], named["model_name"], base_url=named.get("base_url"))
        options["sub_model"] = metadata["sub_model"]
    return options


def _window(root: LM, given: int | None) -> int:
    own: int = getattr(root, "window_tokens", _WINDOW_TOKENS)
    return given or own


def _same(context: object, other: object) -> bool:
    """Whether it is the same context, without reading a lazy one."""
    return context is other or (isinstance(context, str) and isinstance(other, str) and context == other)


def _budget(budget: Budget | None, **parts: float | None) -> Budget:
    """The parts given by keyword go before those of `budget`."""
    given: dict[str, Any] = {name: value for name, value in parts.items() if value is not None}
    return replace(budget or Budget(), **given)


def _cache(
    sub_cache: SubCache | str | os.PathLike[str] | bool | None, directory: str | os.PathLike[str] | None
) -> SubCache | None:
    if isinstance(sub_cache, SubCache):
        return sub_cache
    if isinstance(sub_cache, (str, os.PathLike)):
        return SubCache(sub_cache)
    return SubCache(directory) if sub_cache or directory else None


def _shown(verbose: bool) -> Callable[[Step], object] | None:
    if not verbose:
        return None
    from rlm.console import print_step

    return print_step
