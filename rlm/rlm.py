"""The two classes that callers use: `RLM`, and `RLM_REPL` in the shape of rlm-minimal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from rlm import hooks, prompts
from rlm.completion import Completion
from rlm.held import describe
from rlm.lm import LM, OpenAILM
from rlm.loop import Loop
from rlm.runners import check_runner, make_runner
from rlm.step import Step
from rlm.subcalls import SubCalls
from rlm.trajectory import Trajectory, run_metadata
from rlm.usage import Usage

_PROMPT_CHARACTERS = 100_000  # what rlms tells its models; a sub-model that knows better has `prompt_characters`

_MINIMAL_QUERY = (
    "Please read through the context and answer any queries or respond to any instructions contained within it."
)


class RLM:
    """A Recursive Language Model: a root model that writes Python over a `context` it never has to read whole.

    The code runs in a confined process of its own, without a network, files or keys; see `runner`.
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
        runner: str = "subprocess",
        runner_options: Mapping[str, Any] | None = None,
        max_iterations: int = 30,
        cell_timeout: float | None = 120.0,
        trajectory: str | os.PathLike[str] | None = None,
        on_step: Callable[[Step], object] | None = None,
        output_limit: int = 20_000,
    ) -> None:
        """`lm` and `sub_lm` take the place of `model` at an OpenAI-compatible endpoint (`base_url`, `api_key`).

        Sub-calls go to `sub_lm`, by default `lm`, and ask it for `sub_model`, by default its own model.
        `cell_timeout` is in seconds of a cell's own time, None for no limit; `output_limit` in characters per block.
        `trajectory`: a `.jsonl` file, or a directory that gets one file per run. `on_step` is called after each turn.

        `runner`: where the code runs. `"subprocess"`, a confined process of this machine (Linux), which `completion`
        refuses to start where nothing confines it; `"local"`, this process, with its rights: no sandbox; `"docker"`;
        `"modal"`. `runner_options`: `limits` of memory, CPU, disk and files for `subprocess`, `image` for `docker`.
        Raises RunnerUnavailable for a runner that there is not.
        """
        check_runner(runner)
        if max_iterations < 1:
            raise ValueError(f"max_iterations must be at least 1, not {max_iterations}")
        self._root = lm or OpenAILM(model, base_url=base_url, api_key=api_key)
        self._sub_lm = sub_lm or self._root
        self._sub_model = sub_model
        self._model = str(getattr(self._root, "model", model))
        self._runner = runner
        self._runner_options = dict(runner_options or {})
        self._max_iterations = max_iterations
        self._cell_timeout = cell_timeout
        self._trajectory = trajectory
        self._on_step = on_step
        self._output_limit = output_limit

    def __repr__(self) -> str:
        return f"<RLM {self._model}, runner {self._runner}, at most {self._max_iterations} turns>"

    def completion(self, query: str, context: object = None) -> Completion:
        """Answer `query` from `context`: a str, a lazy text, a list, a dict.

        A lazy text is served to where the code runs, piece by piece as it looks; plain data is copied there. The runner
        `local` takes any object, by reference. Safe for use by many threads; each call has a namespace of its own.

        Raises LLMError when the root model fails, RunnerUnavailable when the runner cannot start here or cannot take
        this context, ChannelAbuse when code in a sandbox tampers with the way out.
        """
        started = time.perf_counter()
        usage = Usage()
        held = describe(context)
        trajectory = Trajectory(self._trajectory, secrets=self._secrets)

        def on_step(step: Step) -> None:
            usage.add(step.reply)
            trajectory.add(step)
            if self._on_step:
                self._on_step(step)

        subcalls = SubCalls(self._sub_lm, usage, model=self._sub_model)
        before = hooks.reading(context)
        runner = make_runner(
            self._runner,
            context,
            subcalls,
            cell_timeout=self._cell_timeout,
            output_limit=self._output_limit,
            **self._runner_options,
        )
        try:
            trajectory.begin(self._metadata(held.to_dict(), getattr(runner, "confinement", None)))
            loop = Loop(self._root, runner, context, self._max_iterations, on_step)
            messages = prompts.opening_messages(
                query,
                held,
                prompt_characters=getattr(self._sub_lm, "prompt_characters", _PROMPT_CHARACTERS),
                output_limit=self._output_limit,
            )
            answer, turns, finished = loop.run(messages)
        finally:
            runner.close()
        return Completion(
            answer=answer,
            finished=finished,
            reason="answer" if finished else "max_iterations",
            iterations=turns,
            usage=usage,
            io=hooks.spent(before, hooks.reading(context)),
            seconds=time.perf_counter() - started,
            trajectory=trajectory.records,
            trajectory_path=trajectory.path,
        )

    def _secrets(self) -> list[str]:
        return [secret for lm in (self._root, self._sub_lm) for secret in getattr(lm, "secrets", ())]

    def _metadata(self, context: dict[str, Any], confinement: str | None) -> dict[str, Any]:
        options: dict[str, Any] = {"cell_timeout": self._cell_timeout, "output_limit": self._output_limit}
        if confinement is not None:
            options["confinement"] = confinement
        return run_metadata(
            root_model=self._model,
            backend="openai" if isinstance(self._root, OpenAILM) else type(self._root).__name__,
            base_url=getattr(self._root, "base_url", None),
            runner=self._runner,
            max_iterations=self._max_iterations,
            runner_options=options,
            context=context,
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
        **options: Any,
    ) -> None:
        """`recursive_model` answers the sub-calls. `depth` is accepted and unused, as in rlm-minimal.

        `enable_logging` prints each step to stderr. Other keywords are those of `RLM`.
        """
        if enable_logging and "on_step" not in options:
            from rlm.console import print_step

            options["on_step"] = print_step
        self.depth = depth
        self._rlm = RLM(model, recursive_model, api_key=api_key, max_iterations=max_iterations, **options)

    def completion(self, context: object, query: str | None = None) -> str:
        """The answer to `query`, by default to what the context itself asks. Raises LLMError."""
        return self._rlm.completion(query or _MINIMAL_QUERY, context).answer
