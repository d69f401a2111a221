"""The loop: ask the root model, run its code, tell it what came of it, until it answers or a budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rlm import hooks, prompts
from rlm.compaction import compacted
from rlm.errors import AnswerRefused, BudgetSpent
from rlm.gate import Gate
from rlm.lm import LM, Message, Reply
from rlm.replies import Block, ParsedReply, parse_reply
from rlm.runner import CellResult, Runner
from rlm.step import Cell, Step
from rlm.subcalls import SubCalls


@dataclass(frozen=True, slots=True)
class Loop:
    """What the turns of one run share."""

    root: LM
    model: str | None
    """Asked of `root`; None for its own."""
    gate: Gate
    subcalls: SubCalls
    runner: Runner
    context: object
    window_tokens: int
    is_top: bool
    """False for a child run."""
    on_step: Callable[[Step], object]
    """Called after each turn: trajectory, display."""
    on_delta: Callable[[str], object] | None = None
    """Called with each piece of a reply."""

    def run(self, messages: list[Message], asked_turns: int = 0, before: int = 0) -> Step:
        """The step that ended the question; it holds the answer and the reason. Extends `messages`.

        `asked_turns` of this question and `before` in all were taken earlier. Raises LLMError when the root fails.
        """
        while True:
            left = self.gate.turns_left
            forced = not self.gate.take_turn()
            turn = asked_turns + 1
            last = None if left is None else asked_turns + left
            messages.append(prompts.forced_message(asked_turns) if forced else prompts.turn_message(turn, last))
            step = self._turn(before + turn, messages, forced)
            self.on_step(step)
            messages += prompts.feedback(step)
            if step.reason is not None:
                return step
            asked_turns = turn

    def _turn(self, turn: int, messages: list[Message], forced: bool) -> Step:
        started = self.gate.elapsed()
        messages[:], shortened = compacted(messages, self.window_tokens)
        cells: list[Cell] = []
        final = notice = reason = None
        before = hooks.read_ahead(self.context)
        try:
            reply = self._ask(turn, messages)
        except BudgetSpent as exc:
            reply, reason = Reply("", 0, 0, ""), exc.reason
        thought, ahead = self.gate.elapsed() - started, hooks.spent(before, hooks.read_ahead(self.context))
        parsed = parse_reply(reply.text)
        if forced and reason is None:
            final, _ = self._text_answer(parsed)
            final, reason = reply.text.strip() if final is None else final, "max_iterations"
        elif reason is None:
            for block in parsed.blocks:
                cells.append(self._run(block))
                if cells[-1].result.final_answer is not None or self.gate.spent:
                    break
            final, notice = (cells[-1].result.final_answer, None) if cells else self._text_answer(parsed)
            reason = "answer" if final is not None else self.gate.spent
        if final is None and reason is not None:
            final = self._partial(messages, cells, reply)
        seconds = self.gate.elapsed() - started
        prompt = tuple(dict(message) for message in messages)
        return Step(
            turn, prompt, reply, tuple(cells), final, notice, thought, seconds, reason, started, shortened, ahead
        )

    def _ask(self, turn: int, messages: list[Message]) -> Reply:
        """One reply of the root model; the context is told that there is time, and what the reply says so far."""
        hint = hooks.hint(self.context)
        streamed = False

        def on_delta(delta: str) -> None:
            nonlocal streamed
            streamed = True
            hint(delta)
            if self.on_delta:
                self.on_delta(delta)

        with hooks.thinking(self.context):
            of_top = turn if self.is_top else None
            reply = self.gate.ask(self.root, messages, model=self.model, on_delta=on_delta, turn=of_top)
            if not streamed:
                on_delta(reply.text)
        return reply

    def _run(self, block: Block) -> Cell:
        if not block.runs:
            return Cell(block.code, CellResult(stderr=prompts.CUT_NOT_RUN), start_seconds=self.gate.elapsed())
        started, waited = self.gate.elapsed(), self.subcalls.waited_seconds
        before, (mark, _) = hooks.reading(self.context), hooks.reads_since(self.context)
        ahead = hooks.read_ahead(self.context)
        result = self.runner.run(block.code)
        if block.cut:
            result = replace(result, stdout=result.stdout + prompts.CUT_AND_RUN)
        io = hooks.spent(before, hooks.reading(self.context))
        _, ranges = hooks.reads_since(self.context, mark)
        ahead = hooks.spent(ahead, hooks.read_ahead(self.context))
        return Cell(block.code, result, io, ranges, started, self.subcalls.waited_seconds - waited, ahead)

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

    def _partial(self, messages: list[Message], cells: list[Cell], reply: Reply) -> str:
        """The best there is when nothing more may be asked: the draft in `answer`, else what was said or shown last."""
        draft = self.runner.run(prompts.DRAFT).final_answer
        shown = [cell.result.stdout for cell in reversed(cells)]
        told = [message["content"] for message in reversed(messages) if message["role"] == "assistant"]
        said = [text for text in (reply.text, *told) if not parse_reply(text).blocks]  # code is no answer
        earlier = [message["content"] for message in reversed(messages) if message["content"].startswith("REPL output")]
        return next((text.strip() for text in (draft, *shown, *said, *earlier) if text and text.strip()), "")
