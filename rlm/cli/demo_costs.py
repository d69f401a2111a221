"""Print what a question cost, in rows beside other ways to read."""

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


def print_costs(console: Console, title: str, costs: Iterable[Cost]) -> None:
    """A table of them."""
    table = Table(title=title)
    for column in ("way", "GETs", "bytes read", "seconds waited"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for cost in costs:
        table.add_row(cost.way, f"{cost.gets:,}", f"{cost.bytes_read:,}", f"{cost.seconds:,.2f}")
    console.print(table)
