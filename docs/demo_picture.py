"""Draw what the second half of `make demo` does: what the model writes, what it sees, and what is read of 10 GB.

    python docs/demo_picture.py    # runs it, without latency, and writes docs/plots/demo.svg

Counts in the picture are those of this run. Colours follow the reader's light or dark theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

from monocontext.testing import SlowStore
from rlm import RLM, ScriptedLM, Step
from rlm.cli import demo_large
from rlm.trajectory.completion import Completion

PICTURE = Path(__file__).parent / "plots" / "demo.svg"
WIDTH, MARGIN, LINE = 760, 16, 17
LETTERS = 92
"""That a line has room for."""
STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #24292f; white-space: pre }
.said { font: 13px system-ui, sans-serif; font-weight: 600 }
.seen { fill: #57606a } .bar { fill: #d0d7de } .read { fill: #cf222e } .card { fill: #f6f8fa; stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .seen { fill: #9ea7b3 } .bar { fill: #484f58 } .read { fill: #ff7b72 }
.card { fill: #161b22; stroke: #30363d } }
"""


def run() -> tuple[Completion, list[Step], int, int, int]:
    """The answer, its turns, characters of the text, GETs and bytes read."""
    store, steps = demo_large.large_log(), list[Step]()
    rlm = RLM(lm=ScriptedLM(demo_large.TURNS), runner="local", on_step=steps.append)
    completion, [lazy, everything] = demo_large.ask(rlm, store, SlowStore(store, 0.0), 90e6)
    return completion, steps, everything.bytes_read, lazy.gets, lazy.bytes_read


def lines_of(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Lines of the picture, each with its class."""
    lines = [("said", f"Question: {demo_large.QUESTION}"), ("", "")]
    for step in steps:
        code = step.cells[0].code.strip().splitlines()
        shown = [line for line in re.split(r"\n| {2,}", step.cells[0].result.stdout) if line.strip()]
        lines.append(("said", "The model writes"))
        lines += [("code", line) for line in code]
        if shown:
            lines.append(("said", "and sees"))
            lines += [("seen", line) for line in shown]
        lines.append(("", ""))
    return lines


def draw() -> str:
    """The picture as SVG."""
    completion, steps, size, gets, read = run()
    drawn, y = [], MARGIN + LINE
    for kind, line in [*lines_of(steps), ("said", f"Answer: {completion.answer}")]:
        cut = line if len(line) <= LETTERS or kind == "said" else f"{line[: LETTERS - 1]}…"
        drawn.append(f'<text class="{kind}" x="{MARGIN * 2}" y="{y}">{escape(cut)}</text>' if cut else "")
        y += LINE if cut else LINE // 2
    y += LINE // 2
    wide = WIDTH - 4 * MARGIN
    drawn.append(f'<rect class="bar" x="{2 * MARGIN}" y="{y}" width="{wide}" height="14" rx="3"/>')
    ranges = [each for step in steps for each in step.cells[0].ranges or ()]
    for start in sorted({round(2 * MARGIN + start / size * (wide - 3)) for start, _ in ranges}):
        drawn.append(f'<rect class="read" x="{start}" y="{y - 3}" width="3" height="20"/>')
    y += 14 + LINE + 4
    told = f"A log of {size / 1e9:.0f} GB in a bucket: {gets} GETs, {read / 1e6:.1f} MB read, at the red marks"
    drawn.append(f'<text class="said" x="{2 * MARGIN}" y="{y}">{told}</text>')
    high = y + MARGIN
    card = f'<rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{high - 2}" rx="8"/>'
    body = "\n".join([f"<style>{STYLE}</style>", f"<title>{told}</title>", card, *filter(None, drawn)])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}">\n{body}\n</svg>\n'


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
