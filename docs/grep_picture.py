"""Draw the chart of docs/comparison.md from its table: `python docs/grep_picture.py` writes docs/plots/agents-grep.svg.

The bars are seconds on a logarithmic scale. The chart follows the light or dark theme of its reader.
"""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
PICTURE = DOCS / "plots" / "agents-grep.svg"
WAYS = ("the tool bash", "download, then ripgrep", "mountpoint, every file")
COLUMNS = (3, 5, 4)
"""The columns of the table with the seconds of these ways."""
LEFT, UNIT, ROW = 150, 110, 15
"""Pixels: where bars begin, of a factor of ten, and of a bar."""
LEAST = 0.1
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.b0 { fill: #1a7f37 } .b1 { fill: #9a6700 } .b2 { fill: #57606a }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .b0 { fill: #3fb950 } .b1 { fill: #d29922 } .b2 { fill: #9ea7b3 } }
"""


def rows() -> list[tuple[str, list[float]]]:
    """The commands of the first table, and the seconds of each way."""
    table = (DOCS / "comparison.md").read_text("utf-8").split("\n## ")[1]
    results = []
    for line in re.findall(r"^\| (`.*) \|$", table, re.M)[:4]:
        cells = [cell.strip() for cell in line.split(" | ")]
        results.append((cells[0].strip("`"), [float(cells[column].strip("*")) for column in COLUMNS]))
    return results


def drawing() -> str:
    """The picture."""
    parts, top = [], 16
    for number, way in enumerate(WAYS):
        parts.append(f'<rect class="b{number}" x="{LEFT + number * 165}" y="4" width="10" height="10"/>')
        parts.append(f'<text x="{LEFT + 14 + number * 165}" y="13">{way}</text>')
    for command, seconds in rows():
        top += 14
        parts.append(f'<text x="0" y="{top + ROW + 11}">{escape(command)}</text>')
        for number, value in enumerate(seconds):
            width = UNIT * math.log10(value / LEAST)
            parts.append(f'<rect class="b{number}" x="{LEFT}" y="{top}" width="{width:.0f}" height="{ROW - 2}"/>')
            parts.append(f'<text x="{LEFT + width + 5:.0f}" y="{top + 11}">{value:g} s</text>')
            top += ROW
    size = f'viewBox="0 0 {LEFT + 3 * 165} {top + 6}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    PICTURE.write_text(drawing(), "utf-8")
