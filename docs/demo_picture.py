"""Draw the first act of `make demo`: the code of the model, its output, and what was read of 10 GB.

    python docs/demo_picture.py    # runs the act as the demo does, and writes docs/plots/demo.svg

The figures are those of this run. The picture fits on a phone, and follows the light or dark theme of its reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from monocontext import Monocontext
from monocontext.testing import CountingStore, SlowStore
from rlm import RLM, Step
from rlm.cli import demo
from rlm.trajectory.completion import Completion

PICTURE = Path(__file__).parent / "plots" / "demo.svg"
WIDTH, MARGIN, LINE = 460, 8, 17
LETTERS = 58
"""The letters that a line has room for."""
STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #24292f; white-space: pre }
.said { font: 13px system-ui, sans-serif; font-weight: 600 }
.seen { fill: #57606a } .bar { fill: #d0d7de } .read { fill: #cf222e } .card { fill: #f6f8fa; stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .seen { fill: #9ea7b3 } .bar { fill: #484f58 } .read { fill: #ff7b72 }
.card { fill: #161b22; stroke: #30363d } }
"""


class Cost(NamedTuple):
    """The cost of one way to read."""

    gets: int
    bytes_read: int
    seconds: float


def run() -> tuple[Completion, list[Step], Cost, Cost]:
    """The answer, its turns, and the costs of reading and of a download."""
    steps, act = list[Step](), demo.LOG_ACT
    with RLM(lm=demo.SlowScriptedLM([act.first_reply, act.last_reply]), on_step=steps.append) as rlm:
        counted = CountingStore(SlowStore(demo.large_log(), 0.03, bytes_per_second=demo.BYTES_PER_SECOND))
        with Monocontext.open(counted) as context:
            completion = rlm.completion(act.question, context)
            lazy = Cost(counted.gets, counted.bytes_read, context.stats.wait_seconds)
            size = len(context)
    whole = Cost(-(-size // (16 << 20)), size, size / demo.BYTES_PER_SECOND)
    return completion, steps, lazy, whole


def lines_of(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Lines of the picture, each with its class."""
    lines = [("said", part) for part in wrap(f"Question: {demo.LOG_ACT.question}", LETTERS)] + [("", "")]
    for step in steps:
        code = step.cells[0].code.strip().splitlines()
        shown = [line for line in re.split(r"\n| {2,}", step.cells[0].result.stdout) if line.strip()]
        lines.append(("said", "The model writes"))
        lines += [("code", part) for line in code for part in wrap(line, LETTERS, subsequent_indent="    ")]
        if shown:
            lines.append(("said", "and sees"))
            lines += [("seen", part) for line in shown for part in wrap(line, LETTERS, subsequent_indent="    ")]
        lines.append(("", ""))
    return lines


def draw() -> str:
    """The picture as SVG."""
    completion, steps, lazy, whole = run()
    size = whole.bytes_read
    drawn, y = [], MARGIN + LINE
    for kind, line in [*lines_of(steps), ("said", f"Answer: {completion.answer}")]:
        drawn.append(f'<text class="{kind}" x="{MARGIN * 2}" y="{y}">{escape(line)}</text>' if line else "")
        y += LINE if line else LINE // 2
    y += LINE // 2
    wide = WIDTH - 4 * MARGIN
    drawn.append(f'<rect class="bar" x="{2 * MARGIN}" y="{y}" width="{wide}" height="14" rx="3"/>')
    ranges = [each for step in steps for each in step.cells[0].ranges or ()]
    for start in sorted({round(2 * MARGIN + start / size * (wide - 3)) for start, _ in ranges}):
        drawn.append(f'<rect class="read" x="{start}" y="{y - 3}" width="3" height="20"/>')
    y += 14 + LINE + 4
    told = (
        f"Read of {size / 1e9:.0f} GB: {lazy.bytes_read / 1e6:.1f} MB in {lazy.gets} requests, at the red marks.",
        f"Waited for: {lazy.seconds:.2f} s. A download takes {whole.seconds:.0f} s.",
    )
    for line in told:
        drawn.append(f'<text class="said" x="{2 * MARGIN}" y="{y}">{line}</text>')
        y += LINE
    high = y + MARGIN
    card = f'<rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{high - 2}" rx="8"/>'
    body = "\n".join([f"<style>{STYLE}</style>", f"<title>{' '.join(told)}</title>", card, *filter(None, drawn)])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}">\n{body}\n</svg>\n'


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
