"""A long run of comparisons with `re`: `python tests/regex/regex_campaign.py [seconds] [seed]`, on any Python."""

from __future__ import annotations

import random
import re
import sys
import time
import warnings
from collections import Counter
from contextlib import nullcontext

import regex_cases
import regex_grammar
from regex_equality import Slow, alarm, context_of, differences, forced_marks, windows

from monocontext import regex


def route(pattern: str, flags: int) -> str:
    plan = regex.compile(pattern, flags)._plan
    if plan.reach is not None:
        return "bounded"
    ways = [name for name, way in (("stops", plan.stops), ("marked", plan.marked)) if way]
    return "+".join(ways) or "whole"


def main(seconds: float, seed: int) -> int:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    began = time.monotonic()
    compared = runs = refused = slow = much_slower = 0
    patterns: set[str] = set()
    routes: Counter[str] = Counter()
    while time.monotonic() - began < seconds:
        text = regex_cases.text(rng.randrange(1 << 30), rng.choice([0, 1, 3, 10, 30, 60]))
        limit = rng.choice([1 << 20, 1 << 20, 40])
        with context_of(text, rng.choice([1, 2, 5, 13, 64, 1000]), limit) as context:
            for _ in range(12):
                made = rng.random() < 0.5
                pattern = regex_grammar.pattern(rng) if made else rng.choice(regex_cases.PATTERNS)
                flags = rng.choice(regex_cases.FLAGS)
                try:
                    re.compile(pattern, flags)
                except (re.error, OverflowError, RuntimeError):
                    continue
                size = rng.choice([1, 2, 3, 4, 5, 7, 10, 16, 33, 100, 1000])
                pos, endpos = rng.randrange(-2, len(text) + 3), rng.randrange(-2, len(text) + 3)
                maximum, first = rng.randrange(-1, 4), rng.choice([None, 1, 2])
                try:
                    with alarm(0.3):  # patterns on which `re` itself takes for ever say nothing
                        differences(pattern, flags, text, text, pos, endpos, maximum)
                except Slow:
                    slow += 1
                    continue
                try:
                    marks = forced_marks(rng.choice([2, 3, 5, 1000])) if rng.random() < 0.5 else nullcontext()
                    with alarm(20), windows(size, first), marks:
                        way = route(pattern, flags)
                        count, refusals, wrong = differences(pattern, flags, text, context, pos, endpos, maximum)
                except Slow:
                    print(f"SLOW window={size} {pattern!r} {flags} {pos}:{endpos} {text!r}", flush=True)
                    much_slower += 1
                    continue
                patterns.add(pattern)
                compared += count
                refused += refusals
                routes[way] += 1
                runs += 1
                for one in wrong:
                    print(f"DIFFERENT window={size} limit={limit} {one}", flush=True)
                if wrong:
                    return 1
    print(
        f"{sys.version.split()[0]}: {compared:,} comparisons, {runs:,} runs, {len(patterns):,} patterns, 0 differences"
    )
    print(f"{refused:,} refused as too large; runs by way: {dict(routes)}")
    print(f"left out: {slow} on which re is slow, {much_slower} on which only we are")
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
