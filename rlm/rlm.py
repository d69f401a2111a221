"""The class `RLM`: make one from keywords, ask it questions about a context, and resume recorded runs."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import asdict, fields, replace
from typing import Any, ClassVar, Protocol, Self, Unpack, cast, overload

from rlm.calls.backoff import Backoff
from rlm.calls.budget import Budget
from rlm.calls.cache import SubCache
from rlm.calls.gateway import Gateway
from rlm.calls.prices import check_prices, dollars
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.errors import TrajectoryError, takes
from rlm.loop import UNBOUNDED
from rlm.models import registry as backends
from rlm.models.lm import CHARACTERS_PER_TOKEN, LM, Reply, strip_url
from rlm.options import RLMOptions
from rlm.runners import check_runner
from rlm.runners.runner import DEFAULT_RUNNER
from rlm.runners.tools import describe_tools
from rlm.session import Session, Setup
from rlm.trajectory.completion import Completion
from rlm.trajectory.recording import Recording
from rlm.trajectory.step import Step
from rlm.trajectory.trajectory import run_metadata

_PROMPT_CHARACTERS = 100_000  # as rlms tells its models; a sub-model that knows better has `prompt_characters`
_OUTPUT_CHARACTERS = 20_000  # of a block; at most a quarter of the window
_WINDOW_TOKENS = 128_000  # the smallest of today's root models; an LM that knows better has `window_tokens`

READ_ALL = "Please read through the context and answer any queries or respond to any instructions contained within it."
"""The default question, as in rlm-minimal and rlms."""

_NOT_GIVEN: Any = object()


class _ResumeByClass(Protocol):
    """The signature of `RLM.resume`."""

    def __call__(
        self,
        path: str | os.PathLike[str],
        context: object = ...,
        *,
        model: str = ...,
        sub_model: str | None = ...,
        **options: Unpack[RLMOptions],
    ) -> Completion: ...


class _ResumeByObject(Protocol):
    """The signature of `rlm.resume`."""

    def __call__(self, path: str | os.PathLike[str], context: object = ...) -> Completion: ...


class _OnClassOrObject:
    """`RLM.resume(path)` makes an RLM from the trajectory, `rlm.resume(path)` uses `rlm`."""

    def __init__(self, function: Callable[..., Completion]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, rlm: None, kind: type[RLM]) -> _ResumeByClass: ...
    @overload
    def __get__(self, rlm: RLM, kind: type[RLM]) -> _ResumeByObject: ...
    def __get__(self, rlm: RLM | None, kind: type[RLM]) -> Callable[..., Completion]:
        def resume(path: str | os.PathLike[str], context: object = _NOT_GIVEN, **options: Any) -> Completion:
            if rlm is not None and options:
                raise TypeError(
                    f"resume() on an RLM object uses the options of that object: to set {', '.join(options)}, call "
                    "RLM.resume(path, ...) on the class"
                )
            return self._function(rlm, path, context, **options)

        resume.__doc__ = self.__doc__
        return resume


class _Shaped:
    """Choose the class that `RLM(...)` makes, by its keywords: RLM, or a subclass with the API of another package.

    A base class with `__new__`, so that the signature of RLM is that of its `__init__`.
    """

    _shapes: ClassVar[dict[str, type[Any]]] = {}

    def __init_subclass__(cls, *, keywords: Iterable[str] = ()) -> None:
        """Register a subclass for calls with one of these keywords; later subclasses come first. See `rlm.compat`."""
        cls._shapes.update(dict.fromkeys(keywords, cls))

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """An object of the class for these keywords: `RLM(backend=...)` has the API of rlms."""
        shapes = cls._shapes if cls is RLM else {}
        chosen = next((shapes[name] for name in reversed(shapes) if name in options), cls)
        return super().__new__(cast("type[Self]", chosen))


class RLM(_Shaped):
    """A Recursive Language Model: a root model that writes Python over a `context` it never has to read whole.

    The code runs in a confined process of its own, without a network, files or keys; see `runner`. Safe for use by many
    threads.
    """

    @takes(RLMOptions)
    def __init__(self, model: str = "gpt-5", sub_model: str | None = None, **options: Unpack[RLMOptions]) -> None:
        """`model` answers the root and `sub_model` the sub-calls, at an OpenAI-compatible endpoint.

        Models: a name may have its maker before it: `anthropic:claude-opus-5-5`. `base_url`, `api_key` and `headers`
        are for the maker of `model`; `preset` ("openai", "anthropic") names a pair of models. `lm` and `sub_lm` take
        their place. Sub-calls go to `sub_lm`, by default `lm`, and ask it for `sub_model`, by default its own model.
        `sampling` are options of the root's requests, such as `{"temperature": 0}`, and of sub-calls where both are one
        object; `sub_sampling` those of sub-calls. `models`: all that code may name in a sub-call; without it any, under
        `max_dollars` those that have a price in `prices`: model -> dollars per million tokens (input, output).

        Limits: `budget`, or its parts by keyword, over the whole tree of a run: `max_iterations`, `max_calls`,
        `max_tokens`, `max_dollars`, `max_seconds`. `max_depth` (1): 2 lets `rlm_query` start child runs. `max_retries`
        (5) of a call that fails for a while. `cell_timeout` (120.0) in seconds of a cell's own time, None for no limit.
        `window_tokens` of the root, by default what its backend knows, else 128,000; with `compaction` (True), a
        history that nears it is shortened. `output_limit` in characters per block: 20,000, or a quarter of that window.
        `prompt_characters` that a sub-call may hold: 100,000, or half of the window of its model.

        Running: `runner` is where the code runs. `"subprocess"`, a confined process of this machine (Linux), refused
        where nothing confines it; `"wasm"`, Python in WebAssembly under Node; `"confined"`, the first of these that
        there is; `"local"`, this process, with its rights: no sandbox; `"docker"`; `"modal"`; `"sandbox"`, one of
        another provider (docs/runners.md). `runner_options`: `limits` of memory, CPU, disk and files for `subprocess`,
        `pyodide` for `wasm`, `image` for `docker`, `make` for `sandbox`.
        `custom_tools`: name -> function or value. `persistent` keeps one namespace for all questions. `outline` tells
        the root first what a lazy text is: its `outline()`, 16 GETs and up to some 2,500 tokens.
        `sub_cache=True` keeps sub-answers in memory, `cache_dir` in a directory.

        Recording: `trajectory` is a `.jsonl` file, or a directory that gets one file per run. `on_step` is called after
        each turn, `on_delta` with each piece of the root's reply, both in the thread of the run. `verbose` prints the
        steps to stderr.

        Raises RunnerUnavailable, and UnknownOption, which names the nearest keyword.
        """
        runner = options.get("runner") or DEFAULT_RUNNER
        check_runner(runner, options.get("runner_options"))
        max_depth = options.get("max_depth", 1)
        if max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, not {max_depth}")
        preset = options.get("preset")
        chosen = backends.choose(
            None if preset and model == "gpt-5" else model, sub_model, preset=preset, lm=options.get("lm"),
            sub_lm=options.get("sub_lm"), sampling=options.get("sampling"), sub_sampling=options.get("sub_sampling"),
            base_url=options.get("base_url"), api_key=options.get("api_key"), headers=options.get("headers"),
        )  # fmt: skip
        root, sub_lm, self._made = chosen.root, chosen.sub, chosen.made
        window_tokens = options.get("window_tokens") or int(getattr(root, "window_tokens", _WINDOW_TOKENS))
        output_limit = options.get("output_limit")
        tools, tool_lines = describe_tools(options.get("custom_tools"))
        self._model = str(getattr(root, "model", model))
        self._persistent = options.get("persistent", False)
        self._setup = Setup(
            root=root,
            root_model=None,
            sub_lm=sub_lm,
            sub_model=chosen.sub_model,
            runner=runner,
            runner_options=dict(options.get("runner_options") or {}),
            budget=_budget(options),
            cell_timeout=options.get("cell_timeout", 120.0),
            output_limit=min(_OUTPUT_CHARACTERS, window_tokens) if output_limit is None else output_limit,
            max_depth=max_depth,
            tools=tools,
            tool_lines=tool_lines,
            prices=dict(check_prices(options.get("prices") or {})),
            outline=options.get("outline", False),
            models=_models(options.get("models")),
            backoff=Backoff(retries=options.get("max_retries", 5)),
            cache=_cache(options.get("sub_cache"), options.get("cache_dir")),
            window_tokens=window_tokens if options.get("compaction", True) else UNBOUNDED,
            prompt_characters=options.get("prompt_characters") or _prompt_characters(sub_lm, root, window_tokens),
            target=options.get("trajectory"),
            metadata={},
            on_step=options.get("on_step") or _step_printer(options.get("verbose", False)),
            on_delta=options.get("on_delta"),
        )
        self._persistent_session: Session | None = None
        self._lock = threading.Lock()
        self._setup = replace(self._setup, metadata=self._metadata())
        self._warn_of_prices()

    def _warn_of_prices(self) -> None:
        """Warn before the first call if a budget of dollars cannot count a model."""
        setup = self._setup
        if setup.budget.dollars is None:
            return
        names = dict.fromkeys((self._model, setup.sub_model or str(getattr(setup.sub_lm, "model", self._model))))
        unpriced = [name for name in names if dollars(Reply("", 1, 1, name), setup.prices) is None]
        if unpriced:
            warnings.warn(
                f"no price is known for {', '.join(unpriced)}: max_dollars counts only what its endpoint reports; pass "
                "prices=", stacklevel=4,
            )  # fmt: skip

    def __repr__(self) -> str:
        turns = self._setup.budget.iterations
        return f"<RLM {self._model}, runner {self._setup.runner}, at most {turns} turns>"

    def __enter__(self) -> RLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End a persistent namespace, and close the connections of models that this RLM made from their names."""
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
        """Questions in a row over one context, in one namespace: `with rlm.session(context) as s: s.ask("...")`.

        `source` goes into the trajectory: where the context came from, for a command that resumes the run.
        """
        return Session(self._setup, context, source=source)

    @contextmanager
    def sub_calls(self, context: object = None) -> Iterator[SubCalls]:
        """Call `llm_query` and `llm_query_batched` without a root model, within the limits of this RLM."""
        setup = self._setup
        gateway = Gateway(
            Usage(setup.prices), setup.budget, backoff=setup.backoff, cache=setup.cache, models=setup.models
        )  # fmt: skip
        yield SubCalls(setup.sub_lm, gateway.usage, model=setup.sub_model, gate=gateway, context=context)

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

    def completion_at(
        self, path: str | os.PathLike[str], query: str, context: object = None, *, budget: Budget | None = None
    ) -> Completion:
        """`completion`, recorded at `path`, within another `budget`; a run recorded there already goes on.

        Raises TrajectoryError where `path` holds another question.
        """
        setup = replace(self._setup, budget=budget or self._setup.budget)
        recording, whole_bytes = Recording.load(path) if _has_begun(path) else (None, 0)
        if recording and recording.metadata.get("query") != query:
            raise TrajectoryError(f"{path} records the run of another question: give another path")
        with Session(setup, context, path=path) as session:
            return session.go_on(recording, whole_bytes) if recording else session.ask(query)

    async def acompletion(self, query: str, context: object = None) -> Completion:
        """`completion`, without blocking the event loop: the run has its own thread, and `on_step` is called there.

        When the task is cancelled, the run asks no model any more and ends with the cell that it is in.
        """
        import asyncio  # 25 ms that a caller of `completion` need not pay
        from concurrent.futures import Future

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
        in_context = copy_context()  # so that the run is inside the task's context, where spans have their parents
        threading.Thread(target=in_context.run, args=(run,), name="rlm-run", daemon=True).start()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            session.gate.stop("cancelled")
            raise

    @_OnClassOrObject
    def resume(self: Any, path: Any, context: Any, **options: Any) -> Completion:
        """Continue the run that the trajectory `path` records; where it has ended, return its completion.

        Recorded cells run again to restore the namespace, with the recorded sub-answers: nothing that was recorded is
        paid again. `RLM.resume(path, **options)`, on the class, takes models and limits from the trajectory, unless
        `options` say otherwise. The trajectory holds a `context` of up to 100,000 plain characters; pass any other one
        again. Raises TrajectoryError.
        """
        recording, whole_bytes = Recording.load(path)
        metadata = recording.metadata
        if "query" not in metadata or not isinstance(metadata.get("context"), dict):
            raise TrajectoryError(f"{path} does not hold the question: it was written by another program")
        if context is _NOT_GIVEN:
            recorded = metadata["context"]
            if "context_value" not in metadata and recorded["type"] != "NoneType":
                kind, where = recorded["type"], f" at {recorded['uri']}" if recorded.get("uri") else ""
                raise TrajectoryError(f"the context of this run, a {kind}{where}, is missing: give context=...")
            context = metadata.get("context_value")
        if "sub_model" in options:
            options.setdefault("sub_lm", None)
        rlm = RLM(**recorded_options(metadata) | options) if self is None else self
        with Session(rlm._setup, context, path=path) as session:
            return session.go_on(recording, whole_bytes)

    def _session(self, context: object) -> Session:
        with self._lock:
            session = self._persistent_session = self._persistent_session or self.session(context)
            if context is not None and not _is_same(context, session.context):
                raise ValueError("a persistent RLM keeps the context of its first question: close() it first")
            return session

    def _metadata(self) -> dict[str, Any]:
        setup = self._setup
        backend, sub_backend = (getattr(lm, "backend", type(lm).__name__) for lm in (setup.root, setup.sub_lm))
        url = getattr(setup.sub_lm, "base_url", None)
        ours: dict[str, Any] = {
            "sub_backend": None if sub_backend == backend else sub_backend,
            "sub_base_url": strip_url(str(url)) if sub_backend != backend and url else None,
            "sampling": getattr(setup.root, "sampling", None),
            "sub_sampling": None if setup.sub_lm is setup.root else getattr(setup.sub_lm, "sampling", None),
            "models": None if setup.models is None else sorted(setup.models),
            "outline": setup.outline or None,
        }
        return run_metadata(
            root_model=self._model,
            backend=backend,
            base_url=getattr(setup.root, "base_url", None),
            runner=setup.runner,
            max_iterations=setup.budget.iterations,
            runner_options={"cell_timeout": setup.cell_timeout, "output_limit": setup.output_limit},
            context=None,
            max_depth=setup.max_depth,
            sub_model=setup.sub_model or (str(getattr(setup.sub_lm, "model", "")) or None),
            budget=asdict(setup.budget),
            **{name: value for name, value in ours.items() if value or (name == "models" and value is not None)},
        )


def recorded_options(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of an RLM that continues a recorded run, from its metadata; models are given by name."""
    options: dict[str, Any] = {
        "budget": Budget(**metadata["budget"]),
        "max_depth": metadata["max_depth"],
        "runner": metadata["environment_type"],
        "cell_timeout": metadata["environment_kwargs"]["cell_timeout"],
        "output_limit": metadata["environment_kwargs"]["output_limit"],
        "models": metadata.get("models"),
        "outline": metadata.get("outline", False),
    }
    if backends.is_known(backend := metadata["backend"]):
        named, sub_backend = metadata["backend_kwargs"], metadata.get("sub_backend")
        options |= {
            "model": f"{backend}:{named['model_name']}",
            "sub_model": f"{sub_backend}:{metadata['sub_model']}" if sub_backend else metadata["sub_model"],
            "base_url": named.get("base_url"),
            "sampling": metadata.get("sampling"),
            "sub_sampling": metadata.get("sub_sampling"),
        }
        if (url := metadata.get("sub_base_url")) and sub_backend and backends.is_known(sub_backend):
            # RLM has no keyword for the endpoint of another maker
            sub_lm = backends.make_lm(sub_backend, metadata["sub_model"], base_url=url)
            options |= {"sub_model": None, "sub_lm": sub_lm}
    return options


def _prompt_characters(sub_lm: LM, root: LM, window_tokens: int) -> int:
    """The longest prompt of a sub-call, in characters: as the model says, else half of its window, up to 100,000."""
    window: int = getattr(sub_lm, "window_tokens", window_tokens if sub_lm is root else _WINDOW_TOKENS)
    own: int = getattr(sub_lm, "prompt_characters", min(_PROMPT_CHARACTERS, window * CHARACTERS_PER_TOKEN // 2))
    return own


def _has_begun(path: str | os.PathLike[str]) -> bool:
    """Whether there is a trajectory with a complete first line at `path`."""
    try:
        with open(path, "rb") as file:
            return file.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def _is_same(context: object, other: object) -> bool:
    """Whether two contexts are the same; never reads a lazy one."""
    return context is other or (isinstance(context, str) and isinstance(other, str) and context == other)


def _budget(options: RLMOptions) -> Budget:
    """The budget of the options: limits by keyword override those of `budget`."""
    parts: dict[str, Any] = {field.name: options.get(f"max_{field.name}") for field in fields(Budget)}
    given = {name: value for name, value in parts.items() if value is not None}
    return replace(options.get("budget") or Budget(), **given)


def _models(given: Collection[str] | None) -> frozenset[str] | None:
    if isinstance(given, str) or not all(isinstance(name, str) for name in given or ()):
        raise TypeError(f"models= must be a list of names, not {given!r}")
    return None if given is None else frozenset(given)


def _cache(
    sub_cache: SubCache | str | os.PathLike[str] | bool | None, directory: str | os.PathLike[str] | None
) -> SubCache | None:
    if isinstance(sub_cache, SubCache):
        return sub_cache
    if isinstance(sub_cache, (str, os.PathLike)):
        return SubCache(sub_cache)
    return SubCache(directory) if sub_cache or directory else None


def _step_printer(verbose: bool) -> Callable[[Step], object] | None:
    if not verbose:
        return None
    from rlm.trajectory.display import print_step

    return print_step
