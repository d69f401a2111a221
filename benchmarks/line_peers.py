"""Find lines by Lance's n-gram index and frames by RE2, beside ours.

`python -m benchmarks.line_peers PYTHON [megabytes]`

PYTHON is an interpreter with pylance, pyarrow and google-re2. The text is Python files of this interpreter's libraries,
made ASCII. Figures are processor time of all threads, the least of three, since the machine may be busy. Lance gives
rows, we give offset, number and line; RE2 tells of each frame of 256 KiB whether a pattern matches in it.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.machine import cpu_seconds, describe_machine
from monocontext import Monocontext, publish, regex

FRAME = 256 << 10
QUERIES = {
    "a rare word": r"test_internal_sizes",
    "an absent word": r"zqxjkvbp",
    "a common word": r"import",
    "a literal in a class": r"test_internal_[a-z]+s",
    "common words": r"raise \w+Warning\(",
    "no literal": r"[0-9]{3}-[0-9]{4}",
    "an ending": r"\b[A-Z]\w+Error\b",
    "letters and digits": r"[a-z]{3}\d{5}",
}
_THEIRS = """
import json, os, resource, sys
import lance, pyarrow, re2
path, queries, frame = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])

def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

def least(work):
    best = None
    for _ in range(3):
        began = seconds()
        gave = work()
        best = min(best or 9e9, seconds() - began)
    return best, gave

def size(place):
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(place) for name in names)

data = open(path, "rb").read()
began = seconds()
rows = lance.write_dataset(pyarrow.table({"text": data.decode().split("\\n")}), path + ".lance")
wrote, stored = seconds() - began, size(path + ".lance")
began = seconds()
rows.create_scalar_index("text", "NGRAM")
found = {"write": [wrote, stored], "index": [seconds() - began, size(path + ".lance") - stored]}
frames = [data[at : at + frame] for at in range(0, len(data), frame)]
options = re2.Options()
options.encoding, options.never_capture = re2.Options.Encoding.LATIN1, True
for name, pattern in queries.items():
    contains = pattern.isidentifier()
    asked = f"contains(text, '{pattern}')" if contains else f"regexp_match(text, '{pattern}')"
    one = lambda: lance.dataset(path + ".lance").scanner(filter=asked, columns=["text"]).to_table().num_rows
    compiled = re2.compile(pattern.encode(), options)
    found[name] = [*least(one), *least(lambda: sum(compiled.search(each) is not None for each in frames))]
print(json.dumps(found))
"""


def main(python: str, megabytes: int) -> None:
    """Print both tables."""
    text = make_text(megabytes * 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        path, place = Path(folder) / "text", Path(folder) / "context"
        path.write_text(text)
        command = [python, "-c", _THEIRS, str(path), json.dumps(QUERIES), str(FRAME)]
        theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        began = cpu_seconds()
        publish([path], place)
        seconds = cpu_seconds() - began
        filters = sum(each.stat().st_size for each in (place / "filters").iterdir())
        stored = sum(each.stat().st_size for each in place.rglob("*") if each.is_file()) - filters
        print(f"{len(text) / 1e6:.0f} MB, {text.count(chr(10)):,} lines; {describe_machine()}\n")
        print("| what | lines | Lance | ours | ours read |\n|---|---:|---:|---:|---:|")
        (wrote, rows_bytes), (indexed, index_bytes) = theirs["write"], theirs["index"]
        print(f"| write, and index | | {wrote:.1f} and {indexed:.1f} s | {seconds:.1f} s | |")
        sizes = f"{rows_bytes / 1e6:.1f}, {index_bytes / 1e6:.1f} MB | {stored / 1e6:.1f}, {filters / 1e6:.1f} MB"
        print(f"| stored: text, index | | {sizes} | |")
        for name, pattern in QUERIES.items():
            taken, lines, read = grep(place, pattern)
            if lines != theirs[name][1]:
                raise RuntimeError(f"{pattern}: {lines} lines here, {theirs[name][1]} of Lance")
            row = f"{theirs[name][0] * 1e3:.0f} ms | {taken * 1e3:.0f} ms | {read / 1e6:.1f} MB"
            print(f"| `{pattern}`, {name} | {lines:,} | {row} |")
        print("\n| pattern, MB/s | `re` | `finditer` | `grep` | RE2 | frames with a match |\n|---" + 5 * "|---:" + "|")
        with Monocontext.open(place, cache_bytes=4 * len(text)) as context:
            assert context.count(QUERIES["an absent word"]) == 0  # all of it is in memory now
            for name, pattern in QUERIES.items():
                ways = (
                    partial(re.finditer, pattern, text),
                    partial(regex.finditer, pattern, context),
                    partial(context.grep, pattern),
                )
                times = [*(least(partial(count, way))[0] for way in ways), theirs[name][2]]
                speeds = " | ".join(f"{len(text) / each / 1e6:,.0f}" for each in times)
                print(f"| `{pattern}` | {speeds} | {theirs[name][3]} of {-(-len(text) // FRAME)} |")


def count(find: Callable[[], Iterable[object]]) -> int:
    return sum(1 for _ in find())


def make_text(size: int) -> str:
    """Python files in the order of a seed."""
    files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    random.Random(1).shuffle(files)
    parts, total = [], 0
    for file in files:
        part = file.read_bytes().decode("ascii", "replace").replace("\ufffd", "?").replace("\r", "").replace("\0", "")
        parts.append(part)
        total += len(part)
        if total >= size:
            break
    return "".join(parts)


def grep(place: Path, pattern: str) -> tuple[float, int, int]:
    """Seconds, lines and bytes read, in a context that was just opened."""
    read = 0

    def once() -> int:
        nonlocal read
        with Monocontext.open(place) as context:
            lines = sum(1 for _ in context.grep(pattern))
            read = context.stats.bytes_fetched
        return lines

    return (*least(once), read)


def least(work: Callable[[], Any]) -> tuple[float, Any]:
    best, gave = float("inf"), None
    for _ in range(3):
        began = cpu_seconds()
        gave = work()
        best = min(best, cpu_seconds() - began)
    return best, gave


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 64)
