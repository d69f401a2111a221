"""The loop: ask the root model, run its code, tell it what came of it, until it gives an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from rlm import hooks, prompts
from rlm.errors import AnswerRefused
from rlm.lm import LM, Message, Reply
from rlm.replies import Block, ParsedReply, parse_reply
from rlm.runner import CellResult, Runner
from rlm.step import Cell, Step


@dataclass(frozen=True, slots=True)
class Loop:
    """What the turns of one run share."""

    root: LM
    runner: Runner
    context: object
    max_iterations: int
    on_step: Callable[[Step], object]
    """Called after each turn: usage, trajectory, display."""

    def run(self, messages: list[Message]) -> tuple[str, int, bool]:
        """The answer, the turns it took, and whether the model gave it by itself. Extends `messages`.

        Raises LLMError when the root model fails.
        """
        for turn in range(1, self.max_iterations + 1):
            messages.append(prompts.turn_message(turn, self.max_iterations))
            step = self._turn(turn, messages)
            self.on_step(step)
            messages += prompts.feedback(step)
            if step.final_answer is not None:
                return step.final_answer, turn, True
        messages.append(prompts.forced_message(self.max_iterations))
        step = self._forced(messages)
        self.on_step(step)
        messages += prompts.feedback(step)
        return step.final_answer or "", self.max_iterations, False

    def _turn(self, turn: int, messages: list[Message]) -> Step:
        started = time.perf_counter()
        reply = self._ask(messages)
        thought = time.perf_counter() - started
        parsed = parse_reply(reply.text)
        cells: list[Cell] = []
        for block in parsed.blocks:
            cells.append(self._run(block))
            if cells[-1].result.final_answer is not None:
                break
        if parsed.blocks:
            final, notice = cells[-1].result.final_answer, None
        else:
            final, notice = self._text_answer(parsed)
        seconds = time.perf_counter() - started
        return Step(turn, _copied(messages), reply, tuple(cells), final, notice, thought, seconds)

    def _ask(self, messages: list[Message]) -> Reply:
        """One reply of the root model; the context is told that there is time, and what the reply says so far."""
        hint = hooks.hint(self.context)
        streamed = False

        def on_delta(delta: str) -> None:
            nonlocal streamed
            streamed = True
            hint(delta)

        with hooks.thinking(self.context):
            reply = self.root.complete(messages, on_delta=on_delta)
            if not streamed:
                hint(reply.text)
        return reply

    def _run(self, block: Block) -> Cell:
        if not block.runs:
            return Cell(block.code, CellResult(stderr=prompts.CUT_NOT_RUN))
        before = hooks.reading(self.context)
        result = self.runner.run(block.code)
        if block.cut:
            result = replace(result, stdout=result.stdout + prompts.CUT_AND_RUN)
        return Cell(block.code, result, hooks.spent(before, hooks.reading(self.context)))

    def _text_answer(self, parsed: ParsedReply) -> tuple[str | None, str | None]:
        """The answer of a reply without code, or what the model is to be told."""
        if parsed.final is None:
            return None, prompts.NO_CODE
        if not parsed.final.is_name:
            return parsed.final.text, None
        try:
            return self.runner.variable(parsed.final.text), None
        except AnswerRefused as exc:
            return None, f"Answer refused: {exc}"

    def _forced(self, messages: list[Message]) -> Step:
        """One more call, whose whole text is the answer unless it marks one. Its code does not run."""
        started = time.perf_counter()
        reply = self._ask(messages)
        answer, _ = self._text_answer(parse_reply(reply.text))
        seconds = time.perf_counter() - started
        text = reply.text.strip() if answer is None else answer
        return Step(self.max_iterations + 1, _copied(messages), reply, (), text, None, seconds, seconds)


def _copied(messages: list[Message]) -> tuple[Message, ...]:
    return tuple(dict(message) for message in messages)
