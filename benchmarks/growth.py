"""Measure what use, size and script cost: the tables of the modules `growth_*`, each with what was asked."""

from __future__ import annotations

import importlib
import pkgutil

import benchmarks

_PREFIX = "growth_"


def main(parts: tuple[str, ...]) -> bool:
    """Print the table of each part (all without `parts`); whether every row holds. Each module has `rows()`."""
    names = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name.startswith(_PREFIX)]
    wanted = [name for name in names if not parts or name.removeprefix(_PREFIX) in parts]
    holds = True
    for name in wanted:
        print(f"\n{name.removeprefix(_PREFIX)}\n| what | asked | measured | holds |\n|---|---|---|---|")
        for what, asked, measured, is_met in importlib.import_module(f"benchmarks.{name}").rows():
            print(f"| {what} | {asked} | {measured} | {'yes' if is_met else 'NO'} |", flush=True)
            holds = holds and is_met
    return holds
