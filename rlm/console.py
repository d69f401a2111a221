"""Steps of a run on a terminal; plain lines where there is none. All of it goes to stderr."""

from __future__ import annotations

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from rlm.completion import Completion
from rlm.excerpt import cut
from rlm.step import Step

_SHOWN_CHARACTERS = 1_500


def print_step(step: Step) -> None:
    """One turn: the time it took, its code, what the code printed."""
    console = Console(stderr=True)
    console.rule(Text(f"turn {step.iteration}  thinking {step.thinking_seconds:.1f} s"), align="left")
    if not step.cells:
        console.print(Text(cut(step.reply.text.strip(), _SHOWN_CHARACTERS)))
    for cell in step.cells:
        if console.is_terminal:
            console.print(Panel(Syntax(cell.code, "python", word_wrap=True), title="code", title_align="left"))
        else:
            console.print(Text(cell.code))
        for text, style in ((cell.result.stdout, ""), (cell.result.stderr, "red")):
            if text:
                console.print(Text(cut(text.rstrip("\n"), _SHOWN_CHARACTERS), style=style))
        console.print(Text(_cost(cell.result.execution_seconds, len(cell.result.calls), cell.io), style="dim"))
    if step.notice:
        console.print(Text(step.notice, style="yellow"))


def print_summary(completion: Completion) -> None:
    """One line of costs; a second one when the answer was forced."""
    console = Console(stderr=True)
    usage = completion.usage
    line = (
        f"{completion.iterations} turns, {usage.calls} calls, {usage.input_tokens:,} tokens in, "
        f"{usage.output_tokens:,} out, {completion.seconds:.1f} s{_storage(completion.io)}"
    )
    console.print(Text(line, style="dim"))
    if not completion.finished:
        console.print(Text("The model did not finish: this answer was forced after its last turn.", style="yellow"))


def _cost(seconds: float, calls: int, io: dict[str, float] | None) -> str:
    sub_calls = f", {calls} sub-calls" if calls else ""
    return f"ran {seconds:.2f} s{sub_calls}{_storage(io)}"


def _storage(io: dict[str, float] | None) -> str:
    if not io:
        return ""
    return (
        f", storage: {io.get('gets', 0):,.0f} GETs, {io.get('bytes', 0):,.0f} bytes, {io.get('hits', 0):,.0f} hits, "
        f"{io.get('ms', 0) / 1000:.2f} s waited"
    )
