"""Answer questions in a row, in one namespace over one context. A run is a session of one question."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm.calls.budget import describe_end
from rlm.calls.gateway import Gateway
from rlm.calls.records import ChildRun
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.context.description import check_context, describe
from rlm.context.lazy import ReadMeter, cost_between, lazy_texts
from rlm.errors import BudgetSpent, ChannelAbuse, InvalidArgument, LLMError, TrajectoryError
from rlm.loop import Loop, Setup
from rlm.models.lm import Message
from rlm.prompts import messages as prompts
from rlm.prompts import notices
from rlm.prompts.system import opening_messages, system_prompt
from rlm.runners import make_runner
from rlm.runners.syntax import statements_of
from rlm.runners.tools import describe_tools
from rlm.trajectory.completion import Completion
from rlm.trajectory.decoding import count_lines, own_turns
from rlm.trajectory.fields import union
from rlm.trajectory.recording import Recording
from rlm.trajectory.source import Read, Source, cite, reads_of
from rlm.trajectory.step import Step
from rlm.trajectory.trajectory import Trajectory

# The largest context that a trajectory holds itself, so that small runs can be resumed from it alone.
_COPIED_CHARACTERS = 100_000
_CHARACTERS_PER_TOKEN = 8  # more than any text of words has: a longer question cannot fit into a window


class Session:
    """Questions in a row over one context. Variables persist, and the model sees the earlier questions and answers.

    Each question has the whole budget of its RLM. One question at a time: a second thread waits. Close it, or use it in
    `with`, to end code that still runs.
    """

    def __init__(
        self, setup: Setup, context: object = None, *, parent: Gateway | None = None, depth: int = 1,
        path: str | os.PathLike[str] | None = None, source: str | None = None,
    ) -> None:  # fmt: skip
        """- `setup`: the settings of the RLM
        - `context`: that of all questions
        - `parent`, `depth`: the gateway of the parent run and the depth, for a child run
        - `path`: the trajectory to continue
        - `source`: the origin of the context, for the record
        """
        self._setup, self._source, self._depth = setup, source, depth
        self.context = context
        """The context of all questions."""
        self._is_top = parent is None
        if self._is_top:  # code of a model must not learn which files this machine has
            check_context(context)
        self._description = describe(context)
        target = path or (setup.target if self._is_top else None)
        self._trajectory = Trajectory(target, secrets=setup.secrets)
        self.gateway = parent or Gateway(
            Usage(setup.prices), setup.budget, backoff=setup.backoff, cache=setup.cache, models=setup.models,
            journal=self._trajectory.write_ahead if self._trajectory.path else None,
        )  # fmt: skip
        self._meter = ReadMeter(context, lazy_texts(list(setup.tools.values())))
        may_spawn = depth < setup.max_depth
        self._subcalls = SubCalls(
            setup.sub_lm, self.gateway.usage, model=setup.sub_model, gateway=self.gateway, texts=self._meter.texts,
            spawn=self._spawn if may_spawn else None,
        )  # fmt: skip
        tools, tool_lines = setup.tools, setup.tool_lines
        if self._meter.texts:
            functions = {name: tool for part in lazy_texts(context) for name, tool in part.repl_tools().items()}
            offered, lines = describe_tools(functions)
            tools, tool_lines = {**offered, **tools}, (*lines, *tool_lines)
        self._runner = make_runner(
            setup.runner, context, self._subcalls, cell_timeout=setup.cell_timeout, output_limit=setup.output_limit,
            names=tools, **setup.runner_options,
        )  # fmt: skip
        self._system = system_prompt(
            self._description, prompt_characters=setup.prompt_characters, output_limit=setup.output_limit,
            children=may_spawn, tools=tool_lines,
        )  # fmt: skip
        self._messages: list[Message] = []
        self._turns = 0
        self._broken_off = False  # whether the last question ended with an exception
        self._is_closed = False
        self._lock = threading.Lock()  # held while a question is answered
        self._cancelled: threading.Event | None = None  # the event of that question, if it has one
        self._loop = Loop(
            setup, context, self._runner, self.gateway, self._subcalls, self._meter, is_top=self._is_top,
            to_read=self._description.kind != "nothing" and self._description.length != 0,
        )  # fmt: skip

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the runner, and a question that is under way. Completions can still be read."""
        self._is_closed = True
        if self._is_top and self._lock.locked():  # a child run has the gateway of its parent
            self.gateway.stop("cancelled")
        self._runner.close()

    @property
    def path(self) -> Path | None:
        """The file of the trajectory, if there is one."""
        return self._trajectory.path

    def ask(self, query: str, *, cancelled: threading.Event | None = None) -> Completion:
        """Answer one question; a second thread waits until the first has its answer. `cancelled`: an event for
        `cancel`; if it is set before the question has its turn, BudgetSpent is raised.

        Raises LLMError when the root model fails, TypeError for a question that is not a str, and InvalidArgument for
        one that is empty or longer than the model's window.
        """
        order = "the order is completion(query, context)"
        if not isinstance(query, str):
            raise TypeError(f"the question must be a str, not {type(query).__name__}: {order}")
        if not query.strip():
            raise InvalidArgument("the question is empty: ask something about the context")
        if len(query) > self._setup.window_tokens * _CHARACTERS_PER_TOKEN:
            fits = f"more than the model's window of {self._setup.window_tokens:,} tokens"
            raise InvalidArgument(f"the question has {len(query):,} characters, {fits}: {order}")
        with self._lock:
            self._cancelled = cancelled
            if self._is_top:
                self.gateway.renew(Usage(self._setup.prices))
            if self._is_closed:  # looked at after `renew`, which forgets that `close` has stopped the gateway
                raise InvalidArgument("this session is closed: begin another one")
            if cancelled and cancelled.is_set():
                raise BudgetSpent("the question was cancelled", reason="cancelled")
            is_later = bool(self._messages)
            if is_later:
                lost = self._runner.run(prompts.CLEAR_DRAFT_CODE).stderr
                self._messages.append(prompts.next_question(query, broken_off=self._broken_off, lost=lost))
                self._trajectory.reopen()
            else:
                self._messages = opening_messages(query, self._description, self._system)
                self._trajectory.begin(self._metadata(query))
            return self._finish(query, is_later=is_later)

    def cancel(self, cancelled: threading.Event) -> None:
        """End the question that was asked with this event, and no other; one that waits never begins."""
        cancelled.set()
        if self._cancelled is cancelled:
            self.gateway.stop("cancelled")

    def go_on(self, recording: Recording, whole_bytes: int) -> Completion:
        """Continue a run that was interrupted, or that ended at a limit which is higher now.

        Recorded calls are not paid again. A run that ended otherwise gives its completion. `whole_bytes`: the length of
        the complete lines in the trajectory's file. Raises TrajectoryError for a recording over another context.
        """
        with self._lock:
            recorded = recording.metadata["context"].get("length")
            if recorded != self._description.length:
                raise TrajectoryError(
                    f"the trajectory was recorded over a context of length {recorded}, and this one has length "
                    f"{self._description.length}: give the same context"
                )
            self._trajectory.resume([recording.metadata, *recording.iterations], whole_bytes)
            recording.reopen(self._setup.budget)
            usage = Usage(self._setup.prices)
            if recording.iterations and not recording.open_lines:  # it has ended
                count_lines(recording.iterations, usage)
                return self._completion(
                    recording.steps()[-1], own_turns(recording.iterations), usage, None, recording.seconds
                )
            self.gateway.paid = recording
            recording.count_into(usage)
            self.gateway.renew(usage, turns=recording.turns, seconds=recording.seconds)
            query = str(recording.metadata["query"])
            if not recording.open_lines:
                self._messages = opening_messages(query, self._description, self._system)
                return self._finish(query)
            steps = recording.steps()
            self._run_again(steps)
            self._turns = len(steps) - len(recording.open_lines)
            self._messages = prompts.messages_after(steps[-1], self._loop.window)
            return self._finish(str(recording.open_lines[0].get("question", query)), steps[self._turns :])

    def _metadata(self, query: str) -> dict[str, Any]:
        """The first line of the trajectory: the settings of the RLM, the first question, and its context."""
        facts, context = self._description, self.context
        metadata: dict[str, Any] = {**self._setup.metadata, "query": query, "started_at": time.time(), "context": {
            "uri": facts.uri, "type": facts.type_name, "lines": facts.lines, "length": facts.length,
            "chars": facts.length if facts.kind in ("lazy text", "str") else None,
        }}  # fmt: skip
        if self._source:
            metadata["source"] = self._source
        confinement = getattr(self._runner, "confinement", None)
        if confinement is not None:
            metadata["environment_kwargs"] = {**metadata["environment_kwargs"], "confinement": confinement}
        if not isinstance(context, str):
            copy = _copy_if_small(context)
        else:
            copy = str(context) if len(context) <= _COPIED_CHARACTERS else None
        if copy is not None:
            metadata["context_value"] = copy
        return metadata

    def _run_again(self, steps: Sequence[Step]) -> None:
        """Run the cells of recorded turns again, which restores the namespace; their calls are not paid again."""
        for step in steps:
            for number, cell in enumerate(step.cells, 1):
                if cell.result.stderr == notices.CUT_NOT_RUN:
                    continue
                printed = self._runner.run(cell.code).stdout
                if printed != cell.result.stdout.removesuffix(prompts.CUT_AND_RUN):
                    self.gateway.note(f"block {number} of turn {step.iteration} printed something else when it ran again")
            if step.final_answer is not None:
                self._runner.run(prompts.CLEAR_DRAFT_CODE)
            self._loop.window = self._loop.window.after(step.prompt, step.reply)
        self._loop.has_run = any(statements_of(cell.code) for step in steps for cell in step.cells)

    def _finish(self, query: str, earlier: Sequence[Step] = (), *, is_later: bool = False) -> Completion:
        """Run the turns of a question until it ends; `earlier` are its turns that were run before. `is_later`: the
        question is not the one in the metadata line, and stands in the line of its first turn."""
        setup, steps, turns_before = self._setup, list(earlier), self._turns
        cost_before = self._meter.cost() if self._meter.texts else None
        self._broken_off = True
        try:
            for step in self._loop.run(query, self._messages, turns_before, earlier):
                question = query if is_later and not steps else None
                steps.append(step)
                places: tuple[Sequence[Source], Sequence[Read]] = (), ()
                if step.reason is not None and self._is_top and (step.claims or self._meter.texts):
                    places = self._find_places(steps)
                self._trajectory.add(step, self.gateway.usage, question, *places)
                self._turns = step.iteration
                if setup.on_step and self._is_top:
                    setup.on_step(step)
        except BaseException:
            if self._is_top:
                self.gateway.stop("cancelled")  # batches and child runs under way make no more calls
            raise
        self._broken_off = False
        last = steps[-1]
        turns = sum(step.reason != "max_iterations" for step in steps)  # a forced answer is no turn
        io = cost_between(cost_before, self._meter.cost()) if self._meter.texts else None
        return self._completion(last, turns, self.gateway.usage, io, self.gateway.elapsed())

    def _completion(
        self, last: Step, turns: int, usage: Usage, io: dict[str, float] | None, seconds: float
    ) -> Completion:
        notes = [self._trajectory.warning] if self._trajectory.warning else []
        if self._is_top:
            notes += self.gateway.take_notes()
        line = self._trajectory.records[-1]
        notes += usage.notes()
        return Completion(
            answer=last.final_answer or "", finished=last.reason == "answer", reason=last.reason or "answer",
            iterations=turns, usage=usage, io=io, seconds=seconds, notes=tuple(notes),
            trajectory=self._trajectory.records, trajectory_path=self._trajectory.path,
            sources=tuple(map(Source.from_dict, line.get("sources", ()))),
            reads=tuple(map(Read.from_dict, line.get("reads", ()))),
        )  # fmt: skip

    def _find_places(self, steps: Sequence[Step]) -> tuple[list[Source], list[Read]]:
        """The sources of the answer of the last step, and what code was handed in all; notes what is left out."""
        cells = [cell for step in steps for cell in step.cells]
        read = [(start, stop) for cell in cells for start, stop in cell.ranges or ()]
        handed = [(start, stop) for cell in cells for start, stop in cell.handed or ()]
        are_known = any(cell.ranges is not None for cell in cells)
        try:
            sources, notes = cite(self.context, steps[-1].claims, union(read) if are_known else None)
            reads = reads_of(self.context, union(handed))
        except Exception as exc:  # a context is any object: whatever its reading raises, the answer is there
            sources, reads = [], []
            notes = [f"the sources of the answer could not be read back: {type(exc).__name__}: {exc}"]
        for note in notes:
            self.gateway.note(note)
        return sources, reads

    def _spawn(self, query: str, context: object, model: str | None) -> ChildRun:
        """Run a child with a namespace of its own and the gateway of this run."""
        setup = replace(self._setup, root_model=model or self._setup.root_model)
        with Session(setup, context, parent=self.gateway, depth=self._depth + 1) as child:
            answer, reason = "", None
            try:
                completion = child.ask(query)
                answer, reason, error = completion.answer, completion.reason, _why_no_answer(completion)
            except LLMError as exc:
                error = exc
            except ChannelAbuse as exc:
                error = LLMError(f"the child run failed: {exc}")
            lines = child._trajectory.records[1:]
        usage = Usage(setup.prices)
        count_lines(lines, usage)
        turns = [{key: value for key, value in line.items() if key != "prompt"} for line in lines]
        return ChildRun("" if error else answer, usage, turns, reason, error)


def _why_no_answer(child: Completion) -> LLMError | None:
    """Why the end of a child run is a failed call; None if it has an answer."""
    if child.reason not in ("answer", "max_iterations", "repetition"):
        return BudgetSpent(f"the child run ended early: {describe_end(child.reason)}", reason=child.reason)
    return None if child.answer else LLMError(f"the child run ended without an answer ({child.reason})")


def _copy_if_small(context: object) -> object:
    """A copy of a list or dict for the record, if it has at most 100,000 plain characters; else None."""
    if not isinstance(context, (list, dict)) or len(context) > 1_000:
        return None
    items = context.values() if isinstance(context, dict) else context
    if any(isinstance(item, str) and len(item) > _COPIED_CHARACTERS for item in items):
        return None
    try:
        text = json.dumps(context)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= _COPIED_CHARACTERS and json.loads(text) == context else None
