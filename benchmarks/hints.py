"""Measure what hints cost while a reply streams in: `python -m benchmarks hints`.

Replies are fed in tokens of four characters, each call timed. Beside it stands what parsing the same code once with
`ast` takes in the same run: the least that an exact reading of the finished code could cost.
"""

from __future__ import annotations

import ast
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.machine import describe_machine
from monocontext.hints import CodeHints

TOKEN_CHARACTERS = 4
CHARACTERS = 10**12
LONG = 100_000
"""Characters of the long replies."""

BLOCKS = [
    "print(type(context), len(context))\nprint(context[:2000])\nprint('...')\nprint(context[-1000:])\n",
    """import re
keywords = ["error", "timeout", "refused", "quota exceeded"]
for kw in keywords:
    at = context.lower().find(kw)
    print(kw, at)
    if at != -1:
        print(context[max(0, at - 300):at + 900])
""",
    """CHUNK = 100_000
chunks = [context[i:i + CHUNK] for i in range(0, len(context), CHUNK)]
print(len(chunks))
answers = llm_query_batched([f"List every outage in this part of the log:\\n\\n{c}" for c in chunks[:20]])
for n, answer in enumerate(answers):
    print(n, answer)
""",
    """found = []
for m in re.finditer(r"Incident (\\d+): (.{0,300})", context, re.IGNORECASE):
    found.append((m.start(), m.group(1), m.group(2)))
    if len(found) > 50:
        break
print(found[:10])
print(context[9200:9900])
""",
    """def window(start, width=1500):
    return context[max(0, start - width):start + width]

for spot in [120_000, 450_000, 9_000_000]:
    print(window(spot))
start = 0
while start < len(context):
    end = min(start + 500_000, len(context))
    if "root cause" in context[start:end]:
        print(start, llm_query("What was the root cause?\\n" + context[start:end]))
        break
    start = end
""",
]


@dataclass(frozen=True, slots=True)
class Row:
    """One reply."""

    reply: str
    characters: int
    hints: int
    us_median: float
    us_p99: float
    us_worst: float
    us_mean: float
    """Of a call with one token."""
    times_parse: float | None
    """All calls together, in parses of the code by `ast`; None for a reply without code."""


def main(rounds: int, to: Path | None) -> list[Row]:
    """Measure and print; of each call the best of the rounds counts."""
    rows = [measure(name, reply, rounds) for name, reply in replies().items()]
    machine = describe_machine()
    print(machine)
    print(f"tokens of {TOKEN_CHARACTERS} characters, best of {rounds} rounds; us of one call\n")
    print(
        f"{'reply':34} {'characters':>10} {'hints':>6} {'median':>7} {'p99':>7} {'worst':>8} {'mean':>6} {'x parse':>8}"
    )
    for row in rows:
        times = "-" if row.times_parse is None else f"{row.times_parse:.1f}"
        print(
            f"{row.reply:34} {row.characters:10,} {row.hints:6} {row.us_median:7.2f} {row.us_p99:7.1f} "
            f"{row.us_worst:8.1f} {row.us_mean:6.2f} {times:>8}"
        )
    if to is not None:
        result = {"version": 1, "machine": machine, "rounds": rounds, "rows": [asdict(row) for row in rows]}
        to.write_text(json.dumps(result, indent=1) + "\n")
    return rows


def measure(name: str, reply: str, rounds: int) -> Row:
    """One reply, by tokens."""
    tokens = [reply[i : i + TOKEN_CHARACTERS] for i in range(0, len(reply), TOKEN_CHARACTERS)]
    best = [float("inf")] * len(tokens)
    found = 0
    for _ in range(rounds):
        stream = CodeHints(CHARACTERS, lines=10**10)
        found = 0
        for k, token in enumerate(tokens):
            began = time.perf_counter()
            hints = stream.feed(token)
            best[k] = min(best[k], time.perf_counter() - began)
            found += len(hints)
    us = sorted(seconds * 1e6 for seconds in best)
    total = sum(us)
    return Row(
        reply=name,
        characters=len(reply),
        hints=found,
        us_median=statistics.median(us),
        us_p99=us[int(len(us) * 0.99)],
        us_worst=us[-1],
        us_mean=total / len(us),
        times_parse=total / seconds / 1e6 if (seconds := parse_seconds(reply, rounds)) else None,
    )


def parse_seconds(reply: str, rounds: int) -> float:
    """One parse of the code of a reply; 0 where it has none."""
    if "```" not in reply:
        return 0
    code = "\n".join(reply.split("```")[1::2]).replace("repl\n", "\n")
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        ast.parse(code)
        best = min(best, time.perf_counter() - began)
    return best


def replies() -> dict[str, str]:
    """A reply as models write them, and long ones of each shape that could cost more than its share."""
    usual = "".join(f"Next I look at part {n} of it.\n\n```repl\n{code}```\n\n" for n, code in enumerate(BLOCKS))
    prose = "A sentence about `context[1:2]` that says nothing about what is read, and goes on for a while. "
    return {
        "five blocks": usual,
        "blocks to 100 KB": usual * (LONG // len(usual)),
        "prose, 100 KB": prose * (LONG // len(prose)),
        "one loop, 100 KB": fence("for i in range(9):\n" + "    print(context[i:i + 5])\n" * (LONG // 28)),
        "one list, 100 KB": fence("x = [" + "context[5:10], " * (LONG // 15) + "]\n"),
        "one string, 100 KB": fence('x = """' + "context[5:10] and so on\n" * (LONG // 24) + '"""\n'),
        "one line of items, 100 KB": fence("x = f(" + "context[a], " * (LONG // 12) + ")\n"),
        "loops in loops": fence("for a in range(10**6):\n  for b in range(10**6):\n    print(context[a * b:][:9])\n"),
    }


def fence(code: str) -> str:
    return f"```repl\n{code}```\n"
