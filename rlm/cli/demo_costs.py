"""Print the cost of reading for a question, in a table with other ways to read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Cost:
    """One row of the table."""

    way: str
    gets: int
    bytes_read: int
    seconds: float


def print_costs(console: Console, costs: Iterable[Cost]) -> None:
    """A table of the costs."""
    table = Table()
    for column in ("", "requests", "MB read", "seconds waited"):
        table.add_column(column, justify="right" if column else "left")
    for cost in costs:
        table.add_row(cost.way, f"{cost.gets:,}", f"{cost.bytes_read / 1e6:,.1f}", f"{cost.seconds:,.2f}")
    console.print(table)
