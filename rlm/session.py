"""One namespace over one context, and the questions asked in it: a run is a session of one question."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from rlm import hooks, prompts
from rlm.backoff import Backoff
from rlm.budget import Budget
from rlm.completion import Completion
from rlm.errors import BudgetSpent, TrajectoryError
from rlm.gate import Gate
from rlm.held import describe
from rlm.lm import LM, Message
from rlm.loop import Loop
from rlm.prices import Prices
from rlm.recording import Recording, count_lines
from rlm.runners import make_runner
from rlm.step import Step
from rlm.sub_cache import SubCache
from rlm.subcalls import ChildAnswer, SubCalls
from rlm.tools import placed, tools_and_lines
from rlm.trajectory import Trajectory
from rlm.usage import Usage

# What a trajectory may hold of the context itself, so that small runs can be resumed from it alone.
_KEPT_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Setup:
    """What all runs of one RLM share."""

    root: LM
    root_model: str | None
    """Asked of `root`; None for its own."""
    sub_lm: LM
    sub_model: str | None
    runner: str
    runner_options: Mapping[str, Any]
    budget: Budget
    cell_timeout: float | None
    output_limit: int
    max_depth: int
    """1 for no child runs."""
    tools: Mapping[str, object]
    """Further names of the namespace."""
    tool_lines: tuple[str, ...]
    """What the model is told of them."""
    prices: Prices
    backoff: Backoff
    cache: SubCache | None
    window_tokens: int
    """Of the root: a history that nears it is shortened."""
    prompt_characters: int
    """What one prompt of a sub-call may hold."""
    target: str | os.PathLike[str] | None
    """Where trajectories go."""
    metadata: Mapping[str, Any]
    """Of the trajectory, as far as it is the same for all runs."""
    on_step: Callable[[Step], object] | None
    on_delta: Callable[[str], object] | None

    def secrets(self) -> list[str]:
        """What must not be written down."""
        return [secret for lm in (self.root, self.sub_lm) for secret in getattr(lm, "secrets", ())]


class Session:
    """Questions in a row over one context. Variables persist, and the model sees what was asked and answered before.

    Each question has the whole budget of its RLM. One question at a time: a second thread waits. Close it, or use it
    in `with`, to end the code that still runs.
    """

    def __init__(
        self,
        setup: Setup,
        context: object = None,
        *,
        parent: Gate | None = None,
        depth: int = 1,
        path: str | os.PathLike[str] | None = None,
        source: str | None = None,
    ) -> None:
        """`parent` is the gate of the run that this one is a child of; `path`, of a trajectory that goes on; `source`,
        where the context came from, is written down."""
        self._source = source
        self._setup = setup
        self.context = context
        """What the questions are about."""
        self._depth = depth
        self._is_top = parent is None
        self._held = describe(context)
        target = path or (setup.target if parent is None else None)
        self._trajectory = Trajectory(target, secrets=setup.secrets)
        self.gate = parent or Gate(
            Usage(setup.prices), setup.budget, backoff=setup.backoff, cache=setup.cache,
            journal=self._trajectory.write_ahead,
        )  # fmt: skip
        self._subcalls = SubCalls(
            setup.sub_lm, self.gate.usage, model=setup.sub_model, gate=self.gate, context=context,
            spawn=self._spawn if depth < setup.max_depth else None,
        )  # fmt: skip
        calls = {"rlm_query": self._subcalls.rlm_query, "rlm_query_batched": self._subcalls.rlm_query_batched}
        offered, lines = tools_and_lines(hooks.repl_tools(context))
        self._tool_lines = (*lines, *setup.tool_lines)
        here, there = placed({**offered, **setup.tools}, setup.runner)
        self._runner = make_runner(
            setup.runner, context, self._subcalls, cell_timeout=setup.cell_timeout, output_limit=setup.output_limit,
            functions=calls | here, **setup.runner_options,
        )  # fmt: skip
        if there:
            self._runner.run(there)
        self._messages: list[Message] = []
        self._turns = 0
        self._lock = threading.Lock()
        self._notes: list[str] = []

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the runner. What was answered stays."""
        self._runner.close()

    @property
    def path(self) -> Path | None:
        """The file of the trajectory, if there is one."""
        return self._trajectory.path

    def variables(self) -> str:
        """The variables made so far, a line each."""
        shown = self._runner.run("print('\\n'.join(f'{name}  {value}' for name, value in SHOW_VARS().items()))")
        return shown.stdout.strip()

    def ask(self, query: str) -> Completion:
        """Answer one question. Raises LLMError when the root model fails."""
        with self._lock:
            if self._is_top:
                self.gate.renew(Usage(self._setup.prices))
            if self._messages:
                self._runner.run(prompts.NEW_QUESTION)
                self._messages.append(prompts.next_question(query))
                self._trajectory.reopen()
            else:
                self._messages = self._opening(query)
                self._trajectory.begin({**self._setup.metadata, **self._about(query)})
            return self._finish(query, 0)

    def go_on(self, recording: Recording, whole_bytes: int) -> Completion:
        """The completion of a run that was broken off, or of one that had ended; what was paid is not paid again.

        Raises TrajectoryError for a recording over another context.
        """
        with self._lock:
            told = recording.metadata["context"]
            if told["length"] != self._held.length:
                raise TrajectoryError(
                    f"this run is about {told['length']} (length), the context given holds {self._held.length}"
                )
            self._trajectory.go_on([recording.metadata, *recording.iterations], whole_bytes)
            if recording.iterations and not recording.open:
                return self._ended(recording)
            self.gate.paid = recording
            usage = Usage(self._setup.prices)
            recording.count_into(usage)
            self.gate.renew(usage, turns=recording.turns, seconds=recording.seconds)
            query = str(recording.metadata["query"])
            if not recording.open:
                self._messages = self._opening(query)
                return self._finish(query, 0)
            steps = recording.steps()
            for step in steps:
                self._replay(step)
            self._turns = len(steps) - len(recording.open)
            self._messages = [*steps[-1].prompt, *prompts.feedback(steps[-1])]
            return self._finish(str(recording.open[0].get("question", query)), len(recording.open))

    def _finish(self, query: str, turns: int) -> Completion:
        """Go on with the turns of a question, of which some may be taken."""
        setup = self._setup
        before = hooks.reading(self.context)
        first = self._turns + 1

        def on_step(step: Step) -> None:
            self._trajectory.add(step, self.gate.usage, query if step.iteration == first > 1 else None)
            if setup.on_step and self._is_top:
                setup.on_step(step)

        loop = Loop(
            setup.root, setup.root_model, self.gate, self._subcalls, self._runner, self.context, setup.window_tokens,
            self._is_top, on_step, setup.on_delta if self._is_top else None,
        )  # fmt: skip
        try:
            last = loop.run(self._messages, turns, self._turns)
        except BaseException:
            if self._is_top:
                self.gate.stop("cancelled")  # batches and child runs under way ask nothing more: nobody waits for them
            raise
        taken = last.iteration - self._turns - (last.reason == "max_iterations")
        self._turns = last.iteration
        io = hooks.spent(before, hooks.reading(self.context))
        return self._completion(last, taken, self.gate.usage, io, self.gate.elapsed())

    def _ended(self, recording: Recording) -> Completion:
        """What the run had answered."""
        last = recording.steps()[-1]
        usage = Usage(self._setup.prices)
        count_lines(recording.iterations, usage)
        return self._completion(last, len(recording.iterations), usage, None, recording.seconds)

    def _completion(
        self, last: Step, turns: int, usage: Usage, io: dict[str, float] | None, seconds: float
    ) -> Completion:
        notes = list(self._notes)
        if usage.unpriced:
            notes.append(f"no price is known for {', '.join(usage.unpriced)}: the cost is not known; pass prices=")
        return Completion(
            answer=last.final_answer or "",
            finished=last.reason == "answer",
            reason=last.reason or "answer",
            iterations=turns,
            usage=usage,
            io=io,
            seconds=seconds,
            trajectory=self._trajectory.records,
            trajectory_path=self._trajectory.path,
            notes=tuple(notes),
        )

    def _replay(self, step: Step) -> None:
        """Run the cells of a recorded turn again, for what they leave in the namespace; their output is known."""
        for i, cell in enumerate(step.cells, 1):
            if cell.result.stderr == prompts.CUT_NOT_RUN:
                continue
            shown = self._runner.run(cell.code).stdout
            if shown != cell.result.stdout.removesuffix(prompts.CUT_AND_RUN):
                self._notes.append(f"block {i} of turn {step.iteration} printed something else when it ran again")
        if step.final_answer is not None:
            self._runner.run(prompts.NEW_QUESTION)

    def _spawn(self, query: str, context: object, model: str | None) -> ChildAnswer:
        """A child run with a namespace of its own and the gate of this one."""
        setup = self._setup if model is None else replace(self._setup, root_model=model)
        with Session(setup, context, parent=self.gate, depth=self._depth + 1) as child:
            completion = child.ask(query)
        if completion.reason not in ("answer", "max_iterations"):
            raise BudgetSpent(f"the child run ended early: {completion.reason} is reached", reason=completion.reason)
        usage = Usage(setup.prices)
        lines = completion.trajectory[1:]
        count_lines(lines, usage)
        steps = [{key: value for key, value in line.items() if key != "prompt"} for line in lines]
        return ChildAnswer(completion.answer, usage, steps, completion.reason)

    def _opening(self, query: str) -> list[Message]:
        return prompts.opening_messages(
            query,
            self._held,
            prompt_characters=self._setup.prompt_characters,
            output_limit=self._setup.output_limit,
            children=self._depth < self._setup.max_depth,
            tools=self._tool_lines,
        )

    def _about(self, query: str) -> dict[str, Any]:
        about: dict[str, Any] = {"query": query, "context": self._held.to_dict(), "started_at": time.time()}
        if self._source:
            about["source"] = self._source
        if (confinement := getattr(self._runner, "confinement", None)) is not None:
            kwargs = {**self._setup.metadata["environment_kwargs"], "confinement": confinement}
            about["environment_kwargs"] = kwargs
        value = _kept(self.context)
        return about if value is None else about | {"context_value": value}


def _kept(context: object) -> object:
    """A context that is small and plain enough to be written down; else None."""
    if isinstance(context, str):
        return str(context) if len(context) <= _KEPT_CHARACTERS else None
    if not isinstance(context, (list, dict)) or len(context) > 1_000:
        return None
    items = context.values() if isinstance(context, dict) else context
    if any(isinstance(item, str) and len(item) > _KEPT_CHARACTERS for item in items):
        return None
    try:
        text = json.dumps(context)
    except (TypeError, ValueError):
        return None
    return json.loads(text) if len(text) <= _KEPT_CHARACTERS and json.loads(text) == context else None
