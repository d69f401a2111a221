"""Answer questions, one after another, in one namespace over one context. A run is a session with one question."""

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
from rlm.context.lazy import Cost, ReadMeter, cost_between, lazy_texts
from rlm.errors import BudgetSpent, ChannelAbuse, InvalidArgument, LLMError, TrajectoryError
from rlm.loop import Loop, Setup
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

_COPIED_CHARACTERS = 100_000  # the largest context that is copied into a trajectory, which then can be resumed alone
_MOST_CHARACTERS_PER_TOKEN = 8  # more than prose or code has: a longer question cannot fit into a window


class Session:
    """A conversation about one context. Variables persist, and the model sees earlier questions and answers.

    Each question has the whole budget of the RLM. A second thread waits until the first has its answer. `close`, or the
    end of a `with` block, ends code that is still running.
    """

    def __init__(
        self, setup: Setup, context: object = None, *, parent: Gateway | None = None, depth: int = 1,
        path: str | os.PathLike[str] | None = None, source: str | None = None,
    ) -> None:  # fmt: skip
        """- `parent`, `depth`: for a child run, the gateway of its parent, and its depth, which is at least 2
        - `path`: the file or directory of the trajectory, in place of that of `setup`
        - `source`: where the context came from; the trajectory records it
        """
        self._setup, self._source, self._depth = setup, source, depth
        self.context = context
        """The object that all questions are about."""
        self._is_top = parent is None
        if self._is_top:  # for a child run, the error would tell the model which files this machine has
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
            functions = {name: tool for text in lazy_texts(context) for name, tool in text.repl_tools().items()}
            text_tools, text_tool_lines = describe_tools(functions)
            tools, tool_lines = {**text_tools, **tools}, (*text_tool_lines, *tool_lines)
        self._runner = make_runner(
            setup.runner, context, self._subcalls, cell_timeout=setup.cell_timeout, output_limit=setup.output_limit,
            names=tools, **setup.runner_options,
        )  # fmt: skip
        self._system_prompt = system_prompt(
            self._description, prompt_characters=setup.prompt_characters, output_limit=setup.output_limit,
            children=may_spawn, tools=tool_lines,
        )  # fmt: skip
        self._turns = 0  # the turns of all questions so far
        self._was_interrupted = False  # whether the last question ended with an exception
        self._is_closed = False
        self._lock = threading.Lock()  # held while a question is answered
        self._cancelled: threading.Event | None = None  # the event that cancels this question, if its caller gave one
        self._loop = Loop(
            setup, context, runner=self._runner, gateway=self.gateway, subcalls=self._subcalls, meter=self._meter,
            is_top=self._is_top, has_text=self._description.kind != "nothing" and self._description.length != 0,
        )  # fmt: skip

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the runner, and the question in progress if there is one. Completions can still be read."""
        self._is_closed = True
        if self._is_top and self._lock.locked():  # a child run has the gateway of its parent
            self.gateway.stop("cancelled")
        self._runner.close()

    @property
    def path(self) -> Path | None:
        """The file of the trajectory; None if nothing is recorded."""
        return self._trajectory.path

    def ask(self, query: str, *, cancelled: threading.Event | None = None) -> Completion:
        """Answer one question. A second thread waits until the first has its answer.

        `cancelled`: the event to give to `cancel`, which ends this question with its best answer. Raises LLMError when
        the root model fails, BudgetSpent when the question is cancelled before it begins, TypeError for a question that
        is not a str, and InvalidArgument for one that is empty or longer than the model's window.
        """
        advice = "call completion(query, context)"
        if not isinstance(query, str):
            raise TypeError(f"the question must be a str, not {type(query).__name__}: {advice}")
        if not query.strip():
            raise InvalidArgument("the question is empty: ask something about the context")
        if len(query) > self._setup.window_tokens * _MOST_CHARACTERS_PER_TOKEN:
            too_long = f"more than the model's window of {self._setup.window_tokens:,} tokens"
            raise InvalidArgument(f"the question has {len(query):,} characters, {too_long}: {advice}")
        with self._lock:
            self._cancelled = cancelled
            if self._is_top:
                self.gateway.renew(Usage(self._setup.prices))
            if self._is_closed:  # checked after `renew`, which undoes the stop of the gateway by `close`
                raise InvalidArgument("this session is closed: begin a new one")
            if cancelled and cancelled.is_set():
                raise BudgetSpent("the question was cancelled", reason="cancelled")
            is_follow_up = bool(self._loop.messages)
            if is_follow_up:
                lost = self._runner.run(prompts.CLEAR_DRAFT_CODE).stderr
                self._loop.messages.append(prompts.next_question(query, broken_off=self._was_interrupted, lost=lost))
                self._trajectory.reopen()
            else:
                self._loop.messages = opening_messages(query, self._description, self._system_prompt)
                self._trajectory.begin(self._metadata(query))
            return self._run_turns(query, is_follow_up=is_follow_up)

    def cancel(self, cancelled: threading.Event) -> None:
        """End the question that was asked with this event; if it still waits for another one, it never begins."""
        cancelled.set()
        if self._cancelled is cancelled:
            self.gateway.stop("cancelled")

    def resume(self, recording: Recording) -> Completion:
        """Continue a run that was interrupted, or that ended at a limit which is higher now, without paying recorded
        calls again. For a run that ended otherwise, return its completion.

        Raises TrajectoryError for a context of another length than the recorded one, and LLMError when the root model
        fails.
        """
        with self._lock:
            recorded_length, length = recording.metadata["context"].get("length"), self._description.length
            if recorded_length != length:
                recorded = f"the trajectory was recorded over a context of length {recorded_length}"
                raise TrajectoryError(f"{recorded}, and this one has length {length}: pass the same context")
            self._trajectory.resume([recording.metadata, *recording.iterations])
            recording.reopen_if_allowed(self._setup.budget)
            usage = Usage(self._setup.prices)
            has_ended = bool(recording.iterations) and not recording.open_lines
            if has_ended:
                count_lines(recording.iterations, usage)
                turns, last = own_turns(recording.iterations), recording.steps()[-1]
                return self._completion(last, turns=turns, usage=usage, io=None, seconds=recording.seconds)
            self.gateway.paid = recording
            recording.count_into(usage)
            self.gateway.renew(usage, turns=recording.turns, seconds=recording.seconds)
            query = str(recording.metadata["query"])
            if not recording.iterations:
                self._loop.messages = opening_messages(query, self._description, self._system_prompt)
                return self._run_turns(query)
            steps = recording.steps()
            self._run_again(steps)
            self._turns = len(steps) - len(recording.open_lines)
            self._loop.messages = prompts.messages_after(steps[-1], self._loop.window)
            query = str(recording.open_lines[0].get("question", query))
            return self._run_turns(query, steps[self._turns :])

    def _metadata(self, query: str) -> dict[str, Any]:
        """The first line of the trajectory: settings of the RLM, the first question, and facts about the context."""
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
        is_short = isinstance(context, str) and len(context) <= _COPIED_CHARACTERS
        copy = str(context) if is_short else _copy_if_small(context)
        if copy is not None:
            metadata["context_value"] = copy
        return metadata

    def _run_again(self, steps: Sequence[Step]) -> None:
        """Run the cells of recorded turns again to restore the namespace. Their calls are not paid again."""
        for step in steps:
            for number, cell in enumerate(step.cells, 1):
                if cell.result.stderr == notices.CUT_NOT_RUN:
                    continue
                printed = self._runner.run(cell.code).stdout
                if printed != cell.result.stdout.removesuffix(notices.CUT_AND_RUN):
                    block = f"block {number} of turn {step.iteration}"
                    self.gateway.note(f"{block} printed something else when it ran again")
            if step.final_answer is not None:
                self._runner.run(prompts.CLEAR_DRAFT_CODE)
            self._loop.window = self._loop.window.after(step.prompt, step.reply)
        self._loop.has_run = any(statements_of(cell.code) for step in steps for cell in step.cells)

    def _run_turns(self, query: str, earlier: Sequence[Step] = (), *, is_follow_up: bool = False) -> Completion:
        """Run the turns of a question until it ends. `earlier`: its turns before an interruption. `is_follow_up`:
        whether the metadata line has an earlier question, so that this one is recorded with its first turn."""
        setup, steps, turns_before = self._setup, list(earlier), self._turns
        cost_before = self._meter.cost() if self._meter.texts else None
        self._was_interrupted = True
        try:
            for step in self._loop.run(query, turns_before, earlier):
                question = query if is_follow_up and not steps else None
                steps.append(step)
                has_sources = step.reason is not None and self._is_top and (step.claims or self._meter.texts)
                sources, reads = self._find_sources_and_reads(steps) if has_sources else ([], [])
                self._trajectory.add(step, self.gateway.usage, question, sources, reads)
                self._turns = step.iteration
                if setup.on_step and self._is_top:
                    setup.on_step(step)
        except BaseException:
            if self._is_top:
                self.gateway.stop("cancelled")  # batches and child runs in progress make no more calls
            raise
        self._was_interrupted = False
        turns = sum(step.reason != "max_iterations" for step in steps)  # a forced answer is not a turn
        io = cost_between(cost_before, self._meter.cost()) if cost_before else None
        seconds = self.gateway.elapsed()
        return self._completion(steps[-1], turns=turns, usage=self.gateway.usage, io=io, seconds=seconds)

    def _completion(self, last: Step, *, turns: int, usage: Usage, io: Cost | None, seconds: float) -> Completion:
        """The result of the question that the step `last` ended."""
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

    def _find_sources_and_reads(self, steps: Sequence[Step]) -> tuple[list[Source], list[Read]]:
        """The sources of the answer in the last step, and the ranges that code received. Notes say what is left out."""
        cells = [cell for step in steps for cell in step.cells]
        read_ranges = [(start, stop) for cell in cells for start, stop in cell.ranges or ()]
        handed_ranges = [(start, stop) for cell in cells for start, stop in cell.handed or ()]
        has_ranges = any(cell.ranges is not None for cell in cells)
        try:
            sources, notes = cite(self.context, steps[-1].claims, union(read_ranges) if has_ranges else None)
            reads = reads_of(self.context, union(handed_ranges))
        except Exception as exc:  # a context of any class may raise anything; the answer is kept
            sources, reads = [], []
            notes = [f"the sources of the answer could not be read back: {type(exc).__name__}: {exc}"]
        for note in notes:
            self.gateway.note(note)
        return sources, reads

    def _spawn(self, query: str, context: object, model: str | None) -> ChildRun:
        """Run a child with a namespace of its own, within the budget of this run. `model`: by default this run's."""
        setup = replace(self._setup, root_model=model or self._setup.root_model)
        completion: Completion | None = None
        with Session(setup, context, parent=self.gateway, depth=self._depth + 1) as child:
            try:
                completion = child.ask(query)
                error = _failure_of(completion)
            except LLMError as exc:
                error = exc
            except ChannelAbuse as exc:
                error = LLMError(f"the child run failed: {exc}")
            lines = child._trajectory.records[1:]
        usage = Usage(setup.prices)
        count_lines(lines, usage)
        turns = [{key: value for key, value in line.items() if key != "prompt"} for line in lines]
        answer = completion.answer if completion and not error else ""
        return ChildRun(answer, usage, turns, completion.reason if completion else None, error)


def _failure_of(child: Completion) -> LLMError | None:
    """The error of a child run that ended without an answer of its own; None if it has one."""
    if child.reason not in ("answer", "max_iterations", "repetition"):
        return BudgetSpent(f"the child run ended early: {describe_end(child.reason)}", reason=child.reason)
    return None if child.answer else LLMError(f"the child run ended without an answer ({child.reason})")


def _copy_if_small(context: object) -> object:
    """A copy of a list or dict that JSON holds exactly, of at most 100,000 characters; None of anything else."""
    if not isinstance(context, (list, dict)) or len(context) > 1_000:
        return None
    items = context.values() if isinstance(context, dict) else context
    if any(isinstance(item, str) and len(item) > _COPIED_CHARACTERS for item in items):
        return None
    try:
        text = json.dumps(context)
    except (TypeError, ValueError, RecursionError):
        return None
    copy = json.loads(text) if len(text) <= _COPIED_CHARACTERS else None
    return copy if copy == context else None
