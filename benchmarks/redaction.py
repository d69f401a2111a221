"""Measure redaction against `json.loads`, over the same records: `python -m benchmarks.redaction [megabytes]`.

The records are those of a coding agent that reads the standard library: a file in a tool's result, as the transcript
holds it. Both are timed in turns in one process, and the best of the rounds counts; compare the ratio, not the rate.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import describe_machine
from monocontext.sessions.redaction import Redactor

ROUNDS = 3


def records(size: int) -> list[str]:
    """Lines of a transcript, of about `size` characters."""
    lines, length = list[str](), 0
    for path in sorted(Path(json.__file__).parents[1].rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        listing = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(path.read_text(errors="replace").split("\n"), 1))
        block = {"type": "tool_result", "tool_use_id": "t", "content": listing}
        lines.append(json.dumps({"type": "user", "uuid": str(path), "message": {"role": "user", "content": [block]}}))
        length += len(lines[-1])
        if length >= size:
            break
    return lines


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some rounds."""
    seconds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def main(size: int) -> dict[str, object]:
    lines = records(size)
    parsed = [json.loads(line) for line in lines]
    redactor = Redactor()
    plain = best(lambda: [json.loads(line) for line in lines])
    redacting = best(lambda: [redactor.record(record) for record in parsed])
    length = sum(map(len, lines))
    return {
        "machine": describe_machine(),
        "megabytes": round(length / 1e6, 1),
        "json_loads_seconds": round(plain, 3),
        "redaction_seconds": round(redacting, 3),
        "redaction_mb_per_second": round(length / 1e6 / redacting, 2),
        "times_json_loads": round(redacting / plain, 1),
        "findings_per_mb": round(len(redactor.findings) / ROUNDS / (length / 1e6), 2),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(float(sys.argv[1] if len(sys.argv) > 1 else "8") * 1e6)), indent=2))
