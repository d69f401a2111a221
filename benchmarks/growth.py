"""Measure what use, size and script cost: the tables of the modules `growth_*`, each with what was asked."""

from __future__ import annotations

import argparse

from benchmarks import growth_appends, growth_scale
from benchmarks.options import Commands, head_line, row_line

PARTS = {"appends": growth_appends.rows, "scale": growth_scale.rows}


def add(commands: Commands) -> None:
    """Add the sub-command."""
    command = commands.add_parser("growth", help="what use and size cost: appends, scale")
    command.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; without any, all")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Print the table of each part; 1 where a row does not hold."""
    holds = True
    for name in arguments.parts or PARTS:
        print(f"\n{name}\n{head_line('what', 'asked', 'measured', 'holds')}")
        for what, asked, measured, is_met in PARTS[name]():
            print(row_line(what, asked, measured, "yes" if is_met else "NO"), flush=True)
            holds = holds and is_met
    return 0 if holds else 1
