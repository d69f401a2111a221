"""Print the steps and the cost of a run to stderr, and its progress as a live line on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.text import Text

from rlm.calls.budget import describe_end
from rlm.calls.gateway import Gateway
from rlm.context.excerpt import make_printable, shorten
from rlm.trajectory.completion import Completion
from rlm.trajectory.step import Step

_SHOWN_CHARACTERS = 1_500  # of a reply or an output; a longer one keeps its ends


class Display:
    """Prints steps as they end and, on a terminal, a live line. Without `shown` it prints only what `say` is given."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._console = Console(stderr=True)
        self._gateway: Gateway | None = None
        self._live: Live | None = None
        self._reply_characters = 0  # of the reply that is being written
        self._spinner = Spinner("dots")

    def __enter__(self) -> Display:
        if self._shown and self._console.is_terminal:
            self._live = Live(get_renderable=self._render, console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def watch(self, gateway: Gateway) -> None:
        """Show the calls and costs of this gateway in the live line."""
        self._gateway = gateway

    def delta(self, delta: str) -> None:
        """Count a piece of the root's reply in the live line."""
        self._reply_characters += len(delta)

    def step(self, step: Step) -> None:
        """Print a turn that has ended."""
        self._reply_characters = 0
        if self._shown:
            print_step(step, self._console)

    def say(self, text: str) -> None:
        """Print a line of the command itself, even without `shown`."""
        _print(self._console, text)

    def _render(self) -> Any:
        written = self._reply_characters
        parts = [f"the model has written {written:,} characters" if written else "waiting"]
        if self._gateway:
            usage = self._gateway.usage
            parts += [f"{self._gateway.elapsed():.0f} s", f"{usage.calls} calls", f"{usage.tokens:,} tokens"]
            if usage.dollars:
                parts.append(f"${usage.dollars:.3f}")
        self._spinner.update(text=Text(" · ".join(parts), style="dim"))
        return self._spinner


def print_step(step: Step, console: Console | None = None) -> None:
    """Print one turn: its time, code and output."""
    console = console or Console(stderr=True)
    console.rule(Text(f"turn {step.iteration}  thinking {step.thinking_seconds:.1f} s"), align="left")
    if step.compacted:
        console.print(Text(f"The history was long: {step.compacted} messages were shortened.", style="yellow"))
    if step.reply.thinking:
        console.print(Text(f"The model thought first: {len(step.reply.thinking):,} characters.", style="dim"))
    if not step.cells:
        console.print(Text(_shorten(step.reply.text.strip(), console)))
    for cell in step.cells:
        code = make_printable(cell.code, terminal=console.is_terminal)
        if console.is_terminal:
            console.print(Panel(Syntax(code, "python", word_wrap=True), title="code", title_align="left"))
        else:
            console.print(Text(code))
        for text, style in ((cell.result.stdout, ""), (cell.result.stderr, "red")):
            if text:
                console.print(Text(_shorten(text.rstrip("\n"), console), style=style))
        calls = f", {len(cell.result.calls)} sub-calls" if cell.result.calls else ""
        cost = f"ran {cell.result.execution_seconds:.2f} s{calls}{_format_storage(cell.io)}"
        console.print(Text(cost, style="dim"))
    if step.notice:
        console.print(Text(_shorten(step.notice, console), style="yellow"))


def _shorten(text: str, console: Console) -> str:
    return shorten(make_printable(text, terminal=console.is_terminal), _SHOWN_CHARACTERS)


def print_summary(completion: Completion, *, unfinished: bool = True) -> None:
    """Print a line of costs, a line on why the run did not finish (if `unfinished`), and a line for each note."""
    console, usage = Console(stderr=True), completion.usage
    cost = "cost not known" if usage.dollars is None else f"${usage.dollars:.4f}"
    line = (
        f"{completion.iterations} turns, {usage.calls} calls, {usage.input_tokens:,} tokens in, "
        f"{usage.output_tokens:,} out, {cost}, {completion.seconds:.1f} s{_format_storage(completion.io)}"
    )
    _print(console, line, "dim")
    if unfinished and not completion.finished:
        _print(console, why_unfinished(completion), "yellow")
    for note in completion.notes:
        _print(console, note, "dim")


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(Text(make_printable(text, terminal=True), style=style))


def why_unfinished(completion: Completion) -> str:
    """A sentence that says why the run did not finish, and how far its answer can be trusted."""
    reason = completion.reason
    if reason == "max_iterations":
        forced = "this answer was forced after its last turn" if completion.answer else "no answer after its last turn"
        return f"The model did not finish: {forced}."
    best = "this is the best that it had" if completion.answer else "it had no answer yet"
    if reason == "repetition":
        return f"The model repeated itself until the run ended: {best}."
    if reason in ("refusal", "content_filter"):
        return f"The model declined, or a filter of its provider did: {best}."
    return f"The model did not finish: {describe_end(reason)}; {best}."


def _format_storage(io: dict[str, float] | None) -> str:
    if not io:
        return ""
    return (
        f", storage: {io.get('gets', 0):,.0f} GETs, {io.get('bytes', 0):,.0f} bytes, {io.get('hits', 0):,.0f} hits, "
        f"{io.get('ms', 0) / 1000:.2f} s waited"
    )
