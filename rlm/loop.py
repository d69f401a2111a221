"""Run the loop: ask the root model, run its code, send back the output, until it answers or a budget is spent."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from rlm.calls.budget import Budget
from rlm.calls.gateway import Backoff, Gateway, SubCache
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Prices
from rlm.context.lazy import ReadMeter, Reads, thinking
from rlm.errors import AnswerRefused, BudgetSpent, PromptTooLong, ReplyRefused, ScriptExhausted
from rlm.models.lm import LM, Message, Reply
from rlm.prompts import faults
from rlm.prompts import messages as prompts
from rlm.prompts.messages import ModelWindow, compact
from rlm.prompts.replies import CodeBlock, ParsedReply, parse_reply
from rlm.prompts.system import conversation
from rlm.runners.answers import check_written_answer
from rlm.runners.claims import Claim, TextFinal
from rlm.runners.runner import CellResult, Runner
from rlm.runners.syntax import assigned_names, compiles, gives_answer, statements
from rlm.trajectory.step import Cell, Step

UNBOUNDED = 2**62  # a window size in tokens that no history fills, so that nothing is shortened
MOST_REPEATS = 4  # the number of repeated turns in a row that ends a run
_CHANGES = re.compile(r"<cell \d+\.\d+>|\b0x[0-9a-f]{6,16}\b")
"""What differs between outputs that are the same: the number of a cell, an address."""
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})\w*[ \t]*$", re.MULTILINE)
_ON_LINE = re.compile(r"[ \t]+(?=(?:FINAL|FINAL_VAR|SUBMIT)\([^\n]*\)[*_`. \t]*$)", re.MULTILINE)
"""The space before an answer that ends its line."""


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


class Loop:
    """Runs the turns of questions over one context in one namespace."""

    def __init__(
        self,
        setup: Setup,
        context: object,
        runner: Runner,
        gate: Gateway,
        subcalls: SubCalls,
        meter: ReadMeter,
        *,
        is_top: bool,
        to_read: bool,
    ) -> None:
        """`meter`: of the lazy texts of the run. `is_top`: false for a child run. `to_read`: there is a context that is
        not empty."""
        self._setup, self._context, self._runner = setup, context, runner
        self._gate, self._subcalls, self._meter = gate, subcalls, meter
        self._is_top, self._to_read = is_top, to_read
        self._tell: Callable[[str], object] | None = getattr(context, "hint", None) if meter.parts else None
        self.window = ModelWindow(
            setup.window_tokens
        )  # the tokens that the root's prompt may hold; each reply refines it
        self.has_run = False  # whether code of the model has run in this namespace

    def run(
        self,
        query: str,
        messages: list[Message],
        on_step: Callable[[Step], object],
        before: int = 0,
        earlier: Sequence[Step] = (),
    ) -> Step:
        """Run turns until one ends the question; the last step holds the answer and the reason. Extends `messages`.

        `on_step` is called after each turn. `earlier`: the turns of this question that ran already; `before`: the
        number of turns of earlier questions.

        Raises LLMError when the root fails.
        """
        asked_turns, previous = len(earlier), earlier[-1] if earlier else None
        refused = any(step.notice == prompts.UNSEEN for step in earlier)
        empty = 0
        while True:
            remaining = self._gate.take_turn()
            forced = remaining == 0
            turn = asked_turns + 1
            opened = prompts.FORCED.format(turns=asked_turns) if forced else prompts.turn_message(
                turn, None if remaining is None else asked_turns + remaining, query, to_read=self._to_read,
                has_run=self.has_run, again=previous is not None and previous.repeats > 0,
            )  # fmt: skip
            may_refuse = self._to_read and not self.has_run and not refused and remaining not in (0, 1)
            try:
                step = self._turn(before + turn, prompts.join(messages, opened), forced, previous, may_refuse)
            except ScriptExhausted:
                if previous is None or previous.notice != prompts.UNSEEN:
                    raise
                step = self._accept(previous)  # a script or a replay ends with an answer that was refused once
            on_step(step)
            empty += step.reason in (None, "repetition") and not (step.reply.text.strip() or step.reply.cut)
            messages[:] = prompts.history(step, self.window)
            if step.reason is not None:
                if empty:
                    self._gate.note(f"{empty} of {turn} replies of the root model were empty")
                return step
            asked_turns, previous, refused = turn, step, refused or step.notice == prompts.UNSEEN

    def _turn(self, turn: int, messages: list[Message], forced: bool, previous: Step | None, may_refuse: bool) -> Step:
        """Ask, and run the code of the reply. `may_refuse`: an answer in words is sent back, since no code has run."""
        started = self._gate.elapsed()
        with self._meter.measure() as reads:
            messages, shortened, reply, reason = self._ask(turn, messages)
        thinking_seconds = self._gate.elapsed() - started
        reply = prompts.with_call(reply) if reply.called else reply
        parsed = parse_reply(reply.text)
        if parsed.fault == faults.TO_COME and previous and (previous.notice or "").startswith(faults.TO_COME):
            parsed = replace(parsed, fault="")  # it insists
        invented = parsed.own_text != reply.text.replace("\r\n", "\n")
        if invented:
            reply = replace(reply, text=parsed.own_text.rstrip())
        cells: list[Cell] = []
        claims: tuple[Claim, ...] = ()
        final = notice = None
        repeats = 0
        if reason is None and forced:
            final, reason = self._find_forced_answer(reply, parsed, messages, cells), "max_iterations"
            if reply.cut:
                self._gate.note("the forced answer was cut by the limit of tokens")
        elif reason is None:
            final, notice = self._find_answer(reply, parsed, messages, cells, may_refuse)
            if final is not None:
                reason = "answer"
                claims = cells[-1].result.claims if cells else parsed.final.claims if parsed.final else ()
            else:
                reason = self._gate.spent
                if invented:
                    notice = f"{notice}\n\n{prompts.INVENTED}" if notice else prompts.INVENTED
                notice = prompts.notice_of(reply, notice, cells)
            repeats = count_repeats(previous, reply.text, cells, notice) if previous else 0
            if reason is None and repeats == MOST_REPEATS:
                reason = "repetition"
        if final is None and reason is not None:
            final = self._find_partial_answer(messages, parsed)
        return Step(
            turn, tuple(dict(message) for message in messages), reply, tuple(cells), final, notice,
            thinking_seconds=thinking_seconds, seconds=self._gate.elapsed() - started, reason=reason,
            start_seconds=started, compacted=shortened, ahead=reads.ahead, claims=claims, repeats=repeats,
        )  # fmt: skip

    def _ask(self, turn: int, messages: list[Message]) -> tuple[list[Message], int, Reply, str | None]:
        """Ask the root with messages shortened to its window, and once more if it finds them too long. Returns the sent
        messages, how many were shortened, the reply, and why the run ends if there was no answer."""
        setup = self._setup
        streamed = False

        def on_delta(delta: str) -> None:
            nonlocal streamed
            streamed = True
            if self._tell:
                self._tell(delta)
            if self._is_top and setup.on_delta:
                setup.on_delta(delta)

        messages, shortened = compact(messages, self.window)
        of_top = turn if self._is_top else None
        too_long: PromptTooLong | None = None
        while True:
            try:
                with thinking(self._meter.parts) if self._meter.parts else nullcontext():
                    reply = self._gate.ask(setup.root, messages, model=setup.root_model, on_delta=on_delta, turn=of_top)
                    if not streamed:
                        on_delta(reply.text)
            except PromptTooLong as exc:
                if too_long or self.window.tokens == UNBOUNDED:
                    raise
                too_long, window = exc, self.window.refused(messages, exc)
                messages, more = compact(messages, window)
                if not more:
                    raise
                self.window, shortened = window, shortened + more
                advice = f"window_tokens={window.tokens} shortens it in time"
                self._gate.note(f"{exc}: the history was shortened and asked again; {advice}")
            except BudgetSpent as exc:
                return messages, shortened, Reply("", 0, 0, ""), exc.reason
            except ReplyRefused as exc:
                if not self._is_top:  # a failed call, for the cell that made it
                    raise
                self._gate.note(str(exc))
                return messages, shortened, replace(exc.reply or Reply("", 0, 0, ""), text=""), exc.reason
            else:
                self.window = self.window.after(messages, reply)
                return messages, shortened, reply, None

    def _find_answer(
        self, reply: Reply, parsed: ParsedReply, messages: list[Message], cells: list[Cell], may_refuse: bool
    ) -> tuple[str | None, str | None]:
        """Run the code of a reply, adding its cells to `cells`. Returns an answer, or a notice for the model."""
        final = parsed.final if not reply.cut or (parsed.final and parsed.final.ends_line) else None
        if parsed.blocks:
            self._run(parsed.blocks, cells)
            last, skipped = cells[-1].result, len(parsed.blocks) - len(cells)
            quoted = None
            if final and last.raised and "NameError: " in last.stderr and final.stands_alone(parsed.own_text, ""):
                quoted = self._text_answer(final, messages, is_alone=False)[0]
            notice = prompts.SKIPPED.format(skipped) if last.raised and skipped else None
            return quoted if last.final_answer is None else last.final_answer, notice
        if final is None or parsed.fault:
            is_thought = reply.thinking and not reply.text.strip()
            return None, prompts.ONLY_THINKING if is_thought else parsed.fault or prompts.NO_CODE
        is_alone = final.stands_alone(parsed.own_text, reply.thinking)
        answer, notice = self._text_answer(final, messages, is_alone)
        if may_refuse and answer is not None and self._gate.spent is None:
            return None, prompts.UNSEEN
        return answer, notice

    def _accept(self, refused: Step) -> Step:
        """The step after one that refused an answer because no code had run: it takes that answer."""
        final = parse_reply(refused.reply.text).final
        assert final is not None  # it was refused as an answer
        answer, notice = self._text_answer(final, refused.prompt, is_alone=True)
        return replace(
            refused, iteration=refused.iteration + 1, reply=Reply("", 0, 0, ""), final_answer=answer, notice=notice,
            reason="answer", claims=final.claims, start_seconds=self._gate.elapsed(), seconds=0.0, thinking_seconds=0.0,
        )  # fmt: skip

    def _run(self, blocks: Sequence[CodeBlock], cells: list[Cell]) -> None:
        """Run blocks up to one that answers, that raises, or that spends a budget, and add their cells to `cells`."""
        for block in blocks:
            started, waited = self._gate.elapsed(), self._subcalls.waited_seconds
            if block.cut and not compiles(block.code):
                reads, result = Reads(), CellResult(stderr=prompts.CUT_NOT_RUN, raised=True)
            else:
                with self._meter.measure() as reads:
                    result = self._runner.run(block.code)
                self.has_run = self.has_run or bool(statements(block.code))
                if block.cut:
                    result = replace(result, stdout=result.stdout + prompts.CUT_AND_RUN)
            waited = self._subcalls.waited_seconds - waited
            cells.append(Cell(block.code, result, reads.cost, reads.ranges, started, waited, reads.ahead, reads.handed))
            if result.final_answer is not None or result.raised or self._gate.spent:
                return

    def _text_answer(
        self, final: TextFinal, messages: Sequence[Message], is_alone: bool
    ) -> tuple[str | None, str | None]:
        """An answer in words, or the value of the variable that it names; else a notice for the model."""
        replies = (message["content"] for message in messages if message["role"] == "assistant")
        known = {*self._runner.run("").variables, *assigned_names(replies), *self._setup.tools, "context", "answer"}
        outputs = (message["content"] for message in conversation(messages)[1:] if message["role"] == "user")
        seen = "\n".join(prompts.without_turn(text).partition("Traceback (most recent")[0] for text in outputs)
        if fault := faults.judge(final, known, is_alone, seen):
            return None, f"Answer refused: {fault}"
        if (name := final.variable) and (final.is_name or name in known):
            looked_up = self._runner.run(f"FINAL({name}) if {name!r} in globals() else FINAL_VAR({name!r})")
            return looked_up.final_answer, None if looked_up.final_answer else looked_up.stderr.strip()
        try:
            check_written_answer(final.text)
            return final.text, None
        except AnswerRefused as exc:
            return None, f"Answer refused: {exc}"

    def _find_forced_answer(
        self, reply: Reply, parsed: ParsedReply, messages: Sequence[Message], cells: list[Cell]
    ) -> str | None:
        """The answer of a reply to the forced call: from its code, from its text, else all of its words."""
        if parsed.fault in (faults.TAKEN_BACK, faults.TO_COME):
            return parsed.own_text.strip()
        beside = parse_reply(parsed.words)
        if parsed.blocks and (beside.final or any(gives_answer(block.code) for block in parsed.blocks)):
            self._run(parsed.blocks, cells)
            if cells[-1].result.final_answer is not None:
                return cells[-1].result.final_answer
        broken = "\n".join(block.code for block in parsed.blocks if not compiles(block.code))
        plain = parsed if parsed.blocks else parse_reply(_ON_LINE.sub("\n", _FENCE_LINE.sub("", parsed.own_text)))
        if plain.final and not plain.final.stands_alone(plain.own_text, reply.thinking):
            plain = parsed
        has_raised = bool(cells) and cells[-1].result.raised
        for reading in (parsed, beside, parse_reply(broken), plain):
            if (final := reading.final) is not None:
                is_alone = not has_raised and final.stands_alone(reading.own_text, reply.thinking)
                answer, _ = self._text_answer(final, messages, is_alone)
                if answer is None and is_alone and final.call and not parsed.fault:
                    answer = self._runner.run(f"FINAL({final.text})").final_answer
                if answer := answer or _words_beside(final, reading.own_text):
                    return answer
        return _answer_words(parsed) or None

    def _find_partial_answer(self, messages: Sequence[Message], newest: ParsedReply) -> str:
        """The best answer when no call is allowed any more: the draft, else the model's last words; no output."""
        draft = self._runner.run(prompts.DRAFT).final_answer
        replies = [message["content"] for message in conversation(messages) if message["role"] == "assistant"]
        texts = map(_answer_words, (newest, *map(parse_reply, reversed(replies))))
        return draft or next((text for text in texts if text), "")


def _words_beside(final: TextFinal, reply: str) -> str:
    """The words of a reply around an answer that does not count; empty where they are code, marks, or announce it."""
    rest = (reply[: final.span[0]] + reply[final.span[1] :]).strip()
    around = parse_reply(rest)
    is_other = around.blocks or around.final or around.fault or rest.endswith(":") or "```" in rest
    return "" if is_other or not re.search(r"[^\W_]", re.sub(r"<[^<>\n]*>", "", rest)) else rest


def count_repeats(previous: Step, text: str, cells: Sequence[Cell], notice: str | None) -> int:
    """The number of turns in a row that repeated the one before, including the turn with this reply and these cells.

    A turn repeats another if its code and output are the same, whatever the words around the code; without code, if
    its words are.
    """
    if cells or previous.cells:
        same = _shown(previous.cells) == _shown(cells)
    else:
        same = previous.reply.text.strip() == text.strip() and previous.notice == notice
    return previous.repeats + 1 if same else 0


def _shown(cells: Sequence[Cell]) -> list[str]:
    texts = [text for cell in cells for text in (cell.code.strip(), cell.result.stdout, cell.result.stderr)]
    return [_CHANGES.sub("", text.removesuffix(prompts.CUT_AND_RUN)) for text in texts]


def _answer_words(reply: ParsedReply) -> str:
    """The words of a reply outside its code, or sentences that were fenced as code; empty for a refused answer."""
    fenced = [block.code for block in reply.blocks if not (re.search(r"[=(\[]", block.code) or compiles(block.code))]
    words = "\n".join(fenced).strip() if reply.blocks else reply.words
    return "" if parse_reply(words).final else words
