"""Run the loop: ask the root model, run its code, send back the output, until it answers or a budget is spent."""

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

UNBOUNDED = 2**62  # a window size in tokens that no history fills, so that nothing is shortened
REPEATS_THAT_END = 4  # a run ends with this many turns in a row that repeat the one before


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings that all runs of one RLM share; most are keywords of `RLM`."""

    root: LM
    root_model: str | None  # the model name to ask `root` for; None for its default
    sub_lm: LM
    sub_model: str | None
    runner: str
    runner_options: Mapping[str, Any]
    budget: Budget
    cell_timeout: float | None
    output_limit: int
    max_depth: int
    tools: Mapping[str, object]
    tool_lines: tuple[str, ...]  # a line for the model on each tool
    prices: Prices
    backoff: Backoff
    cache: SubCache | None
    window_tokens: int
    prompt_characters: int
    models: frozenset[str] | None
    target: str | os.PathLike[str] | None  # the file or directory of trajectories
    metadata: Mapping[str, Any]  # the metadata of trajectories that is the same for all runs
    on_step: Callable[[Step], object] | None
    on_delta: Callable[[str], object] | None

    def secrets(self) -> list[str]:
        """Strings that must not be recorded."""
        return [secret for lm in (self.root, self.sub_lm) for secret in getattr(lm, "secrets", ())]


@dataclass(slots=True)
class _Question:
    """A question of the session, and its turns so far."""

    text: str
    turns_before: int  # the turns of earlier questions
    turns: int
    previous: Step | None  # its last turn
    has_refused: bool  # whether a turn gave an answer that was refused because no code had run
    empty_replies: int = 0


class Loop:
    """Runs the turns of questions over one context in one namespace."""

    def __init__(
        self, setup: Setup, context: object, runner: Runner, gateway: Gateway, subcalls: SubCalls, meter: ReadMeter, *,
        is_top: bool, to_read: bool,
    ) -> None:  # fmt: skip
        """- `runner`, `gateway`, `subcalls`: run the cells, and make the calls of the root and of cells
        - `meter`: measures what is read of the lazy texts of the run
        - `is_top`: false for a child run
        - `to_read`: whether there is a context that is not empty
        """
        self._setup, self._runner = setup, runner
        self._gateway, self._subcalls, self._meter = gateway, subcalls, meter
        self._is_top, self._to_read = is_top, to_read
        self._answers = WrittenAnswers(runner, setup.tools)
        self._hint: Callable[[str], object] | None = getattr(context, "hint", None) if meter.texts else None
        self.window = ModelWindow(setup.window_tokens)  # of the root's prompt; each reply refines it
        self.has_run = False  # whether code of the model has run in this namespace

    def run(
        self, query: str, messages: list[Message], turns_before: int = 0, earlier: Sequence[Step] = ()
    ) -> Iterator[Step]:
        """Run turns until one ends the question, and yield each; the last step holds the answer and the reason.

        - `messages`: the conversation so far; each turn adds to it
        - `turns_before`: the number of turns of earlier questions
        - `earlier`: the turns of this question that ran already

        Raises LLMError when the root model fails.
        """
        previous = earlier[-1] if earlier else None
        has_refused = any(step.refusal == "unseen" for step in earlier)
        question = _Question(query, turns_before, len(earlier), previous, has_refused)
        while True:
            previous = question.previous
            try:
                step = self._turn(question, messages)
            except ScriptExhausted:
                if previous is None or previous.refusal != "unseen":
                    raise
                step = self._accept(previous)  # a script or a replay ends with an answer that was refused once
            yield step
            messages[:] = prompts.messages_after(step, self.window)
            question.turns, question.previous = question.turns + 1, step
            question.has_refused = question.has_refused or step.refusal == "unseen"
            if step.reason in (None, "repetition") and not step.reply.text.strip() and not step.reply.cut:
                question.empty_replies += 1
            if step.reason is not None:
                break
        if question.empty_replies:
            self._gateway.note(f"{question.empty_replies} of {question.turns} replies of the root model were empty")

    def _turn(self, question: _Question, messages: Sequence[Message]) -> Step:
        """Open the next turn of a question, ask the root, and judge its reply. `messages`: the conversation so far."""
        remaining = self._gateway.take_turn()
        if remaining == 0:
            opened = notices.FORCED.format(turns=question.turns)
        else:
            opened = prompts.turn_message(
                question.turns + 1, None if remaining is None else question.turns + remaining, question.text,
                to_read=self._to_read, has_run=self.has_run,
                again=question.previous is not None and question.previous.repeats > 0,
            )  # fmt: skip
        step = self._ask(question.turns_before + question.turns + 1, prompts.with_opening(messages, opened))
        return replace(self._judge(step, question, remaining), seconds=self._gateway.elapsed() - step.start_seconds)

    def _ask(self, number: int, messages: list[Message]) -> Step:
        """Ask the root with messages shortened to its window, and once more if it finds them too long. Returns the turn
        so far; its `reason` says why the run ends, if there is no reply to judge."""
        started, (sent, shortened) = self._gateway.elapsed(), compact(messages, self.window)
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
                if not self._is_top:  # a failed call, for the cell that made it
                    raise
                self._gateway.note(str(exc))
                reply, reason = replace(exc.reply or reply, text=""), exc.reason
        seconds = self._gateway.elapsed() - started
        return Step(
            number, tuple(dict(message) for message in sent), prompts.with_call(reply) if reply.called else reply,
            cells=(), final_answer=None, notice=None, thinking_seconds=seconds, seconds=seconds, reason=reason,
            start_seconds=started, compacted=shortened, ahead=reads.ahead,
        )  # fmt: skip

    def _call_root(self, turn: int, messages: list[Message]) -> Reply:
        """Call the root model. While it writes, the context reads ahead, and the caller of the RLM gets each piece."""
        setup, streamed = self._setup, False

        def on_delta(delta: str) -> None:
            nonlocal streamed
            streamed = True
            if self._hint:
                self._hint(delta)
            if self._is_top and setup.on_delta:
                setup.on_delta(delta)

        recorded_turn = turn if self._is_top else None
        with thinking(self._meter.texts) if self._meter.texts else nullcontext():
            reply = self._gateway.ask(
                setup.root, messages, model=setup.root_model, on_delta=on_delta, turn=recorded_turn
            )
            if not streamed:
                on_delta(reply.text)
        return reply

    def _shorten_refused(self, messages: list[Message], refusal: PromptTooLong) -> list[Message]:
        """The messages of a refused prompt, shortened to what its endpoint takes. Later turns keep to the smaller
        window. Raises `refusal` if the window is unbounded, or nothing can be shortened."""
        window = self.window.refused(messages, refusal)
        shorter = prompts.compact(messages, window)
        if self.window.tokens == UNBOUNDED or shorter == messages:
            raise refusal
        self.window = window
        advice = f"window_tokens={window.tokens} shortens it in time"
        self._gateway.note(f"{refusal}: the history was shortened and asked again; {advice}")
        return shorter, count

    def _judge(self, step: Step, question: _Question, remaining: int | None) -> Step:
        """The step with what its reply came to; if the run ends without an answer, with the best that there is.
        `remaining`: the turns that were left, this one included; None for no limit."""
        parsed, previous = parse_reply(step.reply.text), question.previous
        if parsed.fault == faults.TO_COME and previous and previous.refusal == "to come":
            parsed = replace(parsed, fault="")  # the model insists on its answer
        has_invented = parsed.own_text != step.reply.text.replace("\r\n", "\n")
        if has_invented:  # the reply went on with a turn of its own making, which is left out
            step = replace(step, reply=replace(step.reply, text=parsed.own_text.rstrip()))
        if step.reason is None and remaining == 0:
            step = self._judge_forced(step, parsed)
        elif step.reason is None:
            if step.reply.cut and parsed.final and not parsed.final.ends_line:
                parsed = replace(parsed, final=None)  # half of an answer, perhaps
            cells = self._run(parsed.blocks)
            if cells:
                step = self._judge_cells(step, parsed, cells)
            else:
                step = self._judge_words(step, parsed, may_refuse=remaining != 1 and not question.has_refused)
            if step.final_answer is None:
                step = self._go_on(step, has_invented=has_invented)
            repeats = count_repeats(previous, step) if previous else 0
            is_stuck = step.reason is None and repeats == REPEATS_THAT_END
            step = replace(step, repeats=repeats, reason="repetition" if is_stuck else step.reason)
        if step.final_answer is None and step.reason is not None:
            step = replace(step, final_answer=self._answers.find_partial(step.prompt, parsed))
        return step

    def _judge_cells(self, step: Step, parsed: ParsedReply, cells: Sequence[Cell]) -> Step:
        """The step with its cells, and the answer that the last of them gave."""
        last, skipped, final = cells[-1].result, len(parsed.blocks) - len(cells), parsed.final
        answer, notice = last.final_answer, notices.SKIPPED.format(skipped) if last.raised and skipped else None
        # Such as a reply `FINAL(Paris)`: it was run as code, and its words are the answer.
        has_name_error = answer is None and last.raised and "NameError: " in last.stderr
        if has_name_error and final and final.stands_alone(parsed.own_text, ""):
            answer, _ = self._answers.read(final, step.prompt, is_alone=False)
        reason = None if answer is None else "answer"
        return replace(step, cells=tuple(cells), final_answer=answer, notice=notice, reason=reason, claims=last.claims)

    def _judge_words(self, step: Step, parsed: ParsedReply, *, may_refuse: bool) -> Step:
        """The step with the answer in the words of a reply without code, or with a notice for the model. `may_refuse`:
        refuse an answer if no code has run."""
        final = parsed.final
        if final is None or parsed.fault:
            is_thought = step.reply.thinking and not step.reply.text.strip()
            notice = notices.ONLY_THINKING if is_thought else parsed.fault or notices.NO_CODE
            return replace(step, notice=notice, refusal="to come" if parsed.fault == faults.TO_COME else "")
        is_alone = final.stands_alone(parsed.own_text, step.reply.thinking)
        answer, fault = self._answers.read(final, step.prompt, is_alone)
        if may_refuse and self._to_read and not self.has_run and answer is not None and self._gateway.spent is None:
            return replace(step, notice=prompts.UNSEEN, refusal="unseen")
        reason = None if answer is None else "answer"
        return replace(step, final_answer=answer, notice=fault, reason=reason, claims=final.claims)

    def _go_on(self, step: Step, *, has_invented: bool) -> Step:
        """A step without an answer, with all notices for the model; if a budget is spent, with that as its reason."""
        notice = step.notice
        if has_invented:
            notice = f"{notice}\n\n{prompts.INVENTED}" if notice else prompts.INVENTED
        notice = prompts.notice_of(step.reply, notice, step.cells)
        return replace(step, notice=notice, reason=self._gateway.spent, claims=())

    def _judge_forced(self, step: Step, parsed: ParsedReply) -> Step:
        """A step with the answer that its reply had to give: that of its code, else of its words."""
        cells = self._run(parsed.blocks) if answers_by_code(parsed) else []
        answer = cells[-1].result.final_answer if cells else None
        if answer is None:
            has_raised = bool(cells) and cells[-1].result.raised
            answer = self._answers.find_forced(parsed, step, has_raised)
        if step.reply.cut:
            self._gateway.note("the forced answer was cut by the limit of tokens")
        return replace(step, cells=tuple(cells), final_answer=answer, reason="max_iterations")

    def _accept(self, refused: Step) -> Step:
        """The step after one that refused an answer because no code had run: it takes that answer."""
        final = parse_reply(refused.reply.text).final
        assert final is not None  # it was refused as an answer
        answer, notice = self._answers.read(final, refused.prompt, is_alone=True)
        return replace(
            refused, iteration=refused.iteration + 1, reply=Reply("", 0, 0, ""), final_answer=answer, notice=notice,
            reason="answer", refusal="", claims=final.claims, start_seconds=self._gateway.elapsed(), seconds=0.0,
            thinking_seconds=0.0,
        )  # fmt: skip

    def _run(self, blocks: Sequence[CodeBlock]) -> list[Cell]:
        """The cells of blocks, which run up to one that answers, that raises, or that spends a budget."""
        cells: list[Cell] = []
        for block in blocks:
            started, waited = self._gateway.elapsed(), self._subcalls.waited.seconds
            if block.cut and not compiles(block.code):
                reads, result = Reads(), CellResult(stderr=notices.CUT_NOT_RUN, raised=True)
            else:
                with self._meter.measure() as reads:
                    result = self._runner.run(block.code)
                self.has_run = self.has_run or bool(statements_of(block.code))
                if block.cut:
                    result = replace(result, stdout=result.stdout + notices.CUT_AND_RUN)
            waited = self._subcalls.waited.seconds - waited
            cells.append(Cell(block.code, result, reads.cost, reads.ranges, started, waited, reads.ahead, reads.handed))
            if result.final_answer is not None or result.raised or self._gateway.spent:
                break
        return cells


def count_repeats(previous: Step, step: Step) -> int:
    """The number of turns in a row, up to `step`, that repeated the one before: by code and output, whatever the words
    around the code; without code, by words."""
    if step.cells or previous.cells:
        same = _shown(previous.cells) == _shown(step.cells)
    else:
        same = previous.reply.text.strip() == step.reply.text.strip() and previous.notice == step.notice
    return previous.repeats + 1 if same else 0


def _shown(cells: Sequence[Cell]) -> list[str]:
    """Code and output of cells, without what differs each time."""
    texts = [text for cell in cells for text in (cell.code.strip(), cell.result.stdout, cell.result.stderr)]
    return [VOLATILE.sub("", text.removesuffix(notices.CUT_AND_RUN)) for text in texts]
