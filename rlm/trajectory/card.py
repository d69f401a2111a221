"""Draw the result of a run for a notebook: HTML that needs no network, in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from rlm.trajectory.source import NONE_RECORDED, Source

_ANSWER_CHARACTERS = 4_000
"""The longest answer that is shown whole."""
_SOURCES = 20
"""The most sources that are shown."""
_SOURCE_CHARACTERS = 200
"""The most text of a source that is shown."""


def draw(answer: str, sources: Sequence[Source], notes: Iterable[str]) -> str:
    """An answer, its sources, and notes under them. What is left out of a long one is counted."""
    shown = escape(answer[:_ANSWER_CHARACTERS])
    if (more := len(answer) - _ANSWER_CHARACTERS) > 0:
        shown += f" ... {more:,} more characters"
    parts = [f'<div style="white-space:pre-wrap">{shown}</div>', _table(sources), *map(_faint, notes)]
    return f'<div style="max-width:60em">{"".join(parts)}</div>'


def _table(sources: Sequence[Source]) -> str:
    rows = (
        f'<tr style="text-align:left"><td>{_link(source)}</td><td>{escape(source.how)}</td>'
        f'<td style="text-align:left">{escape(" ".join(source.text.split())[:_SOURCE_CHARACTERS])}</td></tr>'
        for source in sources[:_SOURCES]
    )
    left = len(sources) - _SOURCES
    more = _faint(f"{left:,} more sources") if left > 0 else ""
    return f"<table>{''.join(rows)}</table>{more}" if sources else _faint(NONE_RECORDED)


def _link(source: Source) -> str:
    place = escape(source.place)
    return f'<a href="{escape(source.url)}" rel="noopener noreferrer">{place}</a>' if source.url else place


def _faint(text: str) -> str:
    return f'<div style="opacity:0.7">{escape(text)}</div>'
