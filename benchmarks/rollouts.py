"""Measure rollouts side by side: many sandboxes over one lazy text with one cache, against a copy of the text in each.

Each rollout searches the text for a needle of its own and answers with what stands there, in a confined process. All
are alive when memory is counted: Pss of this process and of all that came from it, so that shared pages count once.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.logs import Logs
from monocontext import Monocontext, publish
from rlm import RLM, ScriptedLM
from rlm.prompts.examples import conversation
from rlm.runners.template import warm_workers

_WORDS = re.compile(r"needle (\d+)")


def main(count: int, size_bytes: int) -> None:
    """Print both ways."""
    text = make_text(count, size_bytes)
    with tempfile.TemporaryDirectory() as folder, warm_workers():
        measure(1, "needle 0 is 0\n")  # what all rollouts share is there before memory is counted
        publish(text, Path(folder) / "text")
        with Monocontext.open(Path(folder) / "text") as context:
            one = measure(count, context)
            one["bytes"] = context.stats.bytes_fetched
        copies = measure(count, text)
        copies["bytes"] = count * len(text)
    for name, found in (("one lazy text", one), ("a copy in each", copies)):
        print(
            f"{count} rollouts, {size_bytes / 1e6:g} MB, {name}: {found['memory_bytes'] / 1e6:,.0f} MB more memory, "
            f"{found['bytes'] / 1e6:,.1f} MB read or copied, {found['seconds']:.1f} s, load {os.getloadavg()[0]:.1f}"
        )


def make_text(count: int, size_bytes: int) -> str:
    """Logs with a needle for each rollout, evenly spaced."""
    lines = [f"needle {number} is {7919 * number}\n" for number in range(count)]
    logs = b"".join(Logs(size_bytes, 64)).decode()
    parts, each = [], len(logs) // count
    for number, line in enumerate(lines):
        at = logs.find("\n", number * each) + 1
        parts.append(logs[(logs.find("\n", (number - 1) * each) + 1 if number else 0) : at] + line)
    return "".join(parts)


def measure(count: int, context: object) -> dict[str, Any]:
    """Memory above that of before, in bytes, and seconds, of rollouts over a context."""
    before = memory_bytes()
    began = time.monotonic()
    with ExitStack() as alive, ThreadPoolExecutor(16) as pool:
        rlm = alive.enter_context(RLM(lm=ScriptedLM(_reply)))

        def roll(number: int) -> str:
            session = alive.enter_context(rlm.session(context))
            return session.ask(f"What is needle {number}?").answer

        answers = list(pool.map(roll, range(count)))
        used = memory_bytes() - before
    if answers != [str(7919 * number) for number in range(count)]:
        raise RuntimeError(f"a rollout found something else: {answers}")
    return {"memory_bytes": used, "seconds": time.monotonic() - began}


def memory_bytes() -> int:
    """Pss of this process and of those that it started, all the way down."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _read(entry / "stat")):
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        waiting += parents.get(pid, [])
        found = re.search(r"^Pss:\s+(\d+) kB", _read(Path(f"/proc/{pid}/smaps_rollup")), re.MULTILINE)
        total += 1024 * int(found[1]) if found else 0
    return total


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""


def _reply(messages: Any) -> str:
    found = _WORDS.search(conversation(messages)[0]["content"])
    assert found
    if len(conversation(messages)) > 1:
        return "```repl\nFINAL(line.split()[-1])\n```"
    return (
        f"```repl\nat = context.find('{found[0]} is')\nline = context[at : at + 40].splitlines()[0]\nprint(line)\n```"
    )
