"""Run the loop: ask the root model, run its code, send back the output, until it answers or a limit is reached."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from rlm.answers import WrittenAnswers, answers_by_code
from rlm.calls.backoff import Backoff
from rlm.calls.budget import Budget
from rlm.calls.gateway import Gateway
from rlm.calls.sub_cache import SubCache
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Prices
from rlm.context.excerpt import VOLATILE
from rlm.context.lazy import ReadMeter, Reads, thinking
from rlm.errors import BudgetSpent, PromptTooLong, ReplyRefused, ScriptExhausted
from rlm.models.lm import LM, Message, Reply
from rlm.prompts import faults, notices
from rlm.prompts import messages as prompts
from rlm.prompts.replies import CodeBlock, ParsedReply, parse_reply
from rlm.runners.runner import CellResult, Runner
from rlm.runners.syntax import compiles, statements_of
from rlm.trajectory.step import Cell, Step

UNBOUNDED_TOKENS = 2**62  # a window that no history fills, so that nothing is shortened
REPEATS_THAT_END = 4  # a run ends with this many turns in a row that repeat the one before


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings that all runs of one RLM share. `RLM` explains those that are its keywords."""

    root: LM
    root_model: str | None  # the name to ask `root` for; None for its default
    sub_lm: LM
    sub_model: str | None  # the name to ask `sub_lm` for; None for its default
    runner: str
    runner_options: Mapping[str, Any]
    budget: Budget
    cell_timeout: float | None  # seconds
    output_limit: int  # characters of output per block
    max_depth: int
    tools: Mapping[str, object]  # the custom tools, by the names that code uses
    tool_lines: tuple[str, ...]  # a line of the system prompt for each tool
    prices: Prices
    backoff: Backoff
    cache: SubCache | None
    window_tokens: int  # the window of the root model
    prompt_characters: int  # the longest prompt of a sub-call
    models: frozenset[str] | None  # the models that code may name; None for any
    target: str | os.PathLike[str] | None  # the file or directory of trajectories; None to record nothing
    metadata: Mapping[str, Any]  # the metadata of trajectories that is the same for all runs
    on_step: Callable[[Step], object] | None
    on_delta: Callable[[str], object] | None

    def secrets(self) -> list[str]:
        """Strings that must not be recorded."""
        return [secret for lm in (self.root, self.sub_lm) for secret in getattr(lm, "secrets", ())]


@dataclass(slots=True)
class _Question:
    """A question, and the progress of its turns."""

    text: str
    turns_before: int  # the turns of earlier questions of the session
    turns: int  # the turns of this question so far
    previous: Step | None  # the last of them; None before the first
    has_refused_unseen: bool  # whether an answer was refused because no code had run, which happens once
    empty_replies: int = 0


class Loop:
    """Runs the turns of questions over one context in one namespace."""

    def __init__(
        self, setup: Setup, context: object, *, runner: Runner, gateway: Gateway, subcalls: SubCalls, meter: ReadMeter,
        is_top: bool, has_text: bool,
    ) -> None:  # fmt: skip
        """`is_top`: false for a child run. `has_text`: whether there is a context that is not empty."""
        self._setup, self._runner = setup, runner
        self._gateway, self._subcalls, self._meter = gateway, subcalls, meter
        self._is_top, self._has_text = is_top, has_text
        self._answers = WrittenAnswers(runner, setup.tools)
        self._hint: Callable[[str], object] | None = getattr(context, "hint", None) if meter.texts else None
        self.window = prompts.ModelWindow(setup.window_tokens)  # of the root; each reply refines its estimates
        self.messages: list[Message] = []  # the conversation so far; empty before the first question
        self.has_run = False  # whether code of the model has run in this namespace

    def run(self, query: str, turns_before: int = 0, earlier: Sequence[Step] = ()) -> Iterator[Step]:
        """Run turns until one ends the question, which `messages` already has, and yield each. The last step has the
        answer and the reason. `turns_before`: the number of turns of earlier questions. `earlier`: the turns of this
        question that have run already. Raises LLMError when the root fails."""
        question = _Question(
            query, turns_before, turns=len(earlier), previous=earlier[-1] if earlier else None,
            has_refused_unseen=any(step.refusal == "unseen" for step in earlier),
        )  # fmt: skip
        while True:
            previous = question.previous
            try:
                step = self._take_turn(question)
            except ScriptExhausted:
                if previous is None or previous.refusal != "unseen":
                    raise
                step = self._accept_refused(previous)  # a script or a replay ends with an answer that was refused once
            yield step
            self.messages = prompts.messages_after(step, self.window)
            question.turns, question.previous = question.turns + 1, step
            question.has_refused_unseen = question.has_refused_unseen or step.refusal == "unseen"
            if step.reason in (None, "repetition") and not step.reply.text.strip() and not step.reply.cut:
                question.empty_replies += 1
            if step.reason is not None:
                break
        if question.empty_replies:
            self._gateway.note(f"{question.empty_replies} of {question.turns} replies of the root model were empty")

    def _take_turn(self, question: _Question) -> Step:
        """Take the next turn of a question: ask the root, and run its code or take its answer. With no turn left, the
        root must answer."""
        remaining = self._gateway.take_turn()
        if remaining == 0:
            opening = notices.FORCED.format(turns=question.turns)
        else:
            opening = prompts.turn_message(
                question.turns + 1, None if remaining is None else question.turns + remaining, question.text,
                has_text=self._has_text, has_run=self.has_run,
                is_repeat=question.previous is not None and question.previous.repeats > 0,
            )  # fmt: skip
        step = self._ask(question.turns_before + question.turns + 1, prompts.with_opening(self.messages, opening))
        step = self._handle_reply(step, question, remaining)
        return replace(step, seconds=self._gateway.elapsed() - step.start_seconds)

    def _ask(self, number: int, messages: list[Message]) -> Step:
        """Ask the root in turn `number`, with the messages shortened to its window, and once more with shorter ones if
        its endpoint refuses them. Returns the turn so far; its `reason` is set if there is no usable reply."""
        started = self._gateway.elapsed()
        sent = prompts.compact(messages, self.window)
        reply, reason = Reply("", 0, 0, ""), None
        with self._meter.measure() as reads:
            try:
                try:
                    reply = self._call_root(number, sent)
                except PromptTooLong as exc:
                    sent = self._shorten_refused(sent, exc)
                    reply = self._call_root(number, sent)
                self.window = self.window.after(sent, reply)
            except BudgetSpent as exc:
                reason = exc.reason
            except ReplyRefused as exc:
                if not self._is_top:  # the cell that started this child run gets the error
                    raise
                self._gateway.note(str(exc))
                reply, reason = replace(exc.reply or reply, text=""), exc.reason
        seconds = self._gateway.elapsed() - started
        shortened = sum(old != new for old, new in zip(messages, sent, strict=True))
        return Step(
            number, tuple(dict(message) for message in sent), prompts.with_call(reply) if reply.called else reply,
            cells=(), final_answer=None, notice=None, thinking_seconds=seconds, seconds=seconds, reason=reason,
            start_seconds=started, compacted=shortened, ahead=reads.ahead,
        )  # fmt: skip

    def _call_root(self, turn: int, messages: list[Message]) -> Reply:
        """Call the root model. While it writes, the context reads ahead, and `RLM.on_delta` gets each piece."""
        setup, has_streamed = self._setup, False

        def on_delta(delta: str) -> None:
            nonlocal has_streamed
            has_streamed = True
            if self._hint:
                self._hint(delta)
            if self._is_top and setup.on_delta:
                setup.on_delta(delta)

        recorded = turn if self._is_top else None
        with thinking(self._meter.texts) if self._meter.texts else nullcontext():
            reply = self._gateway.ask(setup.root, messages, model=setup.root_model, on_delta=on_delta, turn=recorded)
            if not has_streamed:
                on_delta(reply.text)
        return reply

    def _shorten_refused(self, messages: list[Message], refusal: PromptTooLong) -> list[Message]:
        """Shorten the messages of a refused prompt to what the endpoint accepts. Later turns keep to this smaller
        window. Raises `refusal` if the window is unbounded, or if nothing can be shortened."""
        window = self.window.refused(messages, refusal)
        shorter = prompts.compact(messages, window)
        if self.window.tokens == UNBOUNDED_TOKENS or shorter == messages:
            raise refusal
        self.window = window
        advice = f"window_tokens={window.tokens} avoids the refused call"
        self._gateway.note(f"{refusal}: the call was repeated with a shorter history; {advice}")
        return shorter

    def _handle_reply(self, step: Step, question: _Question, remaining: int | None) -> Step:
        """Run the code of a reply, or take the answer in its words. Returns the complete step; a step that ends the run
        has the best answer so far. `remaining`: the turns left, this one included; None for no limit."""
        parsed, previous = parse_reply(step.reply.text), question.previous
        if parsed.fault == faults.TO_COME and previous and previous.refusal == "to come":
            parsed = replace(parsed, fault="")  # the model insists on its answer
        has_invented_turn = parsed.own_text != step.reply.text.replace("\r\n", "\n")
        if has_invented_turn:  # after its code, the reply made up the output and the next turn, which are left out
            step = replace(step, reply=replace(step.reply, text=parsed.own_text.rstrip()))
        if step.reason is None and remaining == 0:
            step = self._take_forced_answer(step, parsed)
        elif step.reason is None:
            if step.reply.cut and parsed.final and not parsed.final.ends_line:
                parsed = replace(parsed, final=None)  # the cut may have struck inside of the answer
            cells = self._run_blocks(parsed.blocks)
            if cells:
                step = self._take_cells(step, parsed, cells)
            else:
                step = self._take_words(step, parsed, may_refuse=remaining != 1 and not question.has_refused_unseen)
            if step.final_answer is None:
                step = self._add_notices(step, has_invented_turn=has_invented_turn)
            repeats = count_repeats(previous, step) if previous else 0
            is_stuck = step.reason is None and repeats == REPEATS_THAT_END
            step = replace(step, repeats=repeats, reason="repetition" if is_stuck else step.reason)
        if step.final_answer is None and step.reason is not None:
            step = replace(step, final_answer=self._answers.find_partial(step.prompt, parsed))
        return step

    def _take_cells(self, step: Step, parsed: ParsedReply, cells: Sequence[Cell]) -> Step:
        """The step with its cells, and with the answer that the last of them gave."""
        last, final = cells[-1].result, parsed.final
        answer = last.final_answer
        skipped = len(parsed.blocks) - len(cells)
        notice = notices.SKIPPED.format(skipped) if last.raised and skipped else None
        # The reply `FINAL(Paris)` was run as code and raised NameError: its words are the answer.
        has_name_error = answer is None and last.raised and "NameError: " in last.stderr
        if has_name_error and final and final.stands_alone(parsed.own_text, ""):
            answer = self._answers.resolve(final, step.prompt, is_alone=False).answer
        reason = None if answer is None else "answer"
        return replace(step, cells=tuple(cells), final_answer=answer, notice=notice, reason=reason, claims=last.claims)

    def _take_words(self, step: Step, parsed: ParsedReply, *, may_refuse: bool) -> Step:
        """The step with the answer that a reply without code gives in words, or with a notice for the model.
        `may_refuse`: whether to refuse the answer if the model has not looked at the context."""
        final = parsed.final
        if final is None or parsed.fault:
            has_only_thought = step.reply.thinking and not step.reply.text.strip()
            notice = notices.ONLY_THINKING if has_only_thought else parsed.fault or notices.NO_CODE
            return replace(step, notice=notice, refusal="to come" if parsed.fault == faults.TO_COME else "")
        is_alone = final.stands_alone(parsed.own_text, step.reply.thinking)
        written = self._answers.resolve(final, step.prompt, is_alone=is_alone)
        is_unseen = self._has_text and not self.has_run
        if may_refuse and is_unseen and written.answer is not None and self._gateway.reason_to_stop is None:
            return replace(step, notice=notices.UNSEEN, refusal="unseen")
        reason = None if written.answer is None else "answer"
        return replace(step, final_answer=written.answer, notice=written.notice, reason=reason, claims=final.claims)

    def _add_notices(self, step: Step, *, has_invented_turn: bool) -> Step:
        """A step without an answer, with all notices for the model. If a limit is reached, the step ends the run."""
        notice = step.notice
        if has_invented_turn:
            notice = f"{notice}\n\n{notices.INVENTED}" if notice else notices.INVENTED
        notice = notices.combine_notices(step.reply, step.cells, notice)
        return replace(step, notice=notice, reason=self._gateway.reason_to_stop, claims=())

    def _take_forced_answer(self, step: Step, parsed: ParsedReply) -> Step:
        """End `step`, whose call demanded an answer, with the answer that its code gives, or else its words."""
        cells = self._run_blocks(parsed.blocks) if answers_by_code(parsed) else []
        answer = cells[-1].result.final_answer if cells else None
        if answer is None:
            has_raised = bool(cells) and cells[-1].result.raised
            answer = self._answers.find_forced(parsed, step, has_raised=has_raised)
        if step.reply.cut:
            self._gateway.note("the forced answer was cut by a token limit")
        return replace(step, cells=tuple(cells), final_answer=answer, reason="max_iterations")

    def _accept_refused(self, refused: Step) -> Step:
        """A step that accepts the answer that was refused in the step `refused`, because no code had run."""
        final = parse_reply(refused.reply.text).final
        assert final is not None  # since it was refused
        answer, notice = self._answers.resolve(final, refused.prompt, is_alone=True)
        return replace(
            refused, iteration=refused.iteration + 1, reply=Reply("", 0, 0, ""), final_answer=answer, notice=notice,
            reason="answer", refusal="", claims=final.claims, start_seconds=self._gateway.elapsed(), seconds=0.0,
            thinking_seconds=0.0,
        )  # fmt: skip

    def _run_blocks(self, blocks: Sequence[CodeBlock]) -> list[Cell]:
        """Run blocks in order, until one answers, raises or spends the budget. Returns the cells of those that ran."""
        cells: list[Cell] = []
        for block in blocks:
            started, waited_before = self._gateway.elapsed(), self._subcalls.waited.seconds
            if block.cut and not compiles(block.code):
                reads, result = Reads(), CellResult(stderr=notices.CUT_NOT_RUN, raised=True)
            else:
                with self._meter.measure() as reads:
                    result = self._runner.run(block.code)
                self.has_run = self.has_run or bool(statements_of(block.code))
                if block.cut:
                    result = replace(result, stdout=result.stdout + notices.CUT_AND_RUN)
            waited = self._subcalls.waited.seconds - waited_before
            cells.append(Cell(
                block.code, result, io=reads.cost, ranges=reads.ranges, start_seconds=started, calls_seconds=waited,
                ahead=reads.ahead, handed=reads.handed,
            ))  # fmt: skip
            if result.final_answer is not None or result.raised or self._gateway.reason_to_stop:
                break
        return cells


def count_repeats(previous: Step, step: Step) -> int:
    """The number of turns in a row, up to `step`, that repeated the one before. Turns with code are compared by code
    and output; turns without code by words."""
    if step.cells or previous.cells:
        is_repeat = _stable_texts(previous.cells) == _stable_texts(step.cells)
    else:
        is_repeat = previous.reply.text.strip() == step.reply.text.strip() and previous.notice == step.notice
    return previous.repeats + 1 if is_repeat else 0


def _stable_texts(cells: Sequence[Cell]) -> list[str]:
    """The code and the output of cells, without the numbers and addresses that differ each time."""
    texts = [text for cell in cells for text in (cell.code.strip(), cell.result.stdout, cell.result.stderr)]
    return [VOLATILE.sub("", text.removesuffix(notices.CUT_AND_RUN)) for text in texts]
