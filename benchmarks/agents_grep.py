"""Measure ten greps of agents over files in a bucket: requests, bytes and seconds, here and with other tools.

The files are kernel source (with `--quick`, Python's standard library): objects of a stand-in server, and documents of
a context there. Each way runs in a process of its own with 64 requests at once; ours opens the text anew for each grep.
The others read every file once, which counts for each grep of the tree. All outputs are compared with the right one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import string
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from zlib import crc32

from benchmarks import agents_grep_client as client
from benchmarks.agents_grep_client import Grep
from benchmarks.corpora import code_files
from benchmarks.options import Commands, head_line, machine_line, row_line
from benchmarks.processes import peers_folder, run_client
from benchmarks.quality.haystack import Sources
from monocontext import documents, publish
from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.testing import S3StandIn
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND, Profile, ProfilePart

_MOST_BYTES = 64 << 10  # the largest file of the tree
_SHOWN_BYTES = 8_000  # the largest file that one reply of the tool shows whole
_SEED = 5  # of the words that are searched for
_WINDOWS, _WINDOW_BYTES = 200, 4096  # the parts of the text from which words are drawn
_MOST_MATCHES = 5  # of a rare word
_TOKEN = re.compile(r"(?<!\w)[A-Za-z0-9_]{8,20}(?!\w)")  # `kmalloc_array`, not `kmalloc`
_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{8,11}(?![A-Za-z])")  # `allocate` in `re_allocate2`, not `reallocations`
_COMMON = re.compile(r"(?<![A-Za-z])[A-Za-z]{5,}(?![A-Za-z])")  # `return`, not `void`
_STORE = "agents-grep"
OURS = "monocontext"


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one grep in one way."""

    seconds: float  # with the opening of the text, or the reading of all files
    search_seconds: float  # without that
    gave_up: bool  # whether a time limit of the way ended the command
    crc: int  # the CRC-32 of the output
    requests: int  # of the process, for all greps that it answered
    bytes: int  # of these requests
    version: str  # of the library


def add(commands: Commands) -> None:
    command = commands.add_parser("agents_grep", help="ten greps over files in a bucket, against reading every file")
    command.add_argument("--quick", action="store_true", help="200 files of this Python, 1 ms")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    print(f"({machine_line()})")
    if arguments.quick:
        sources = Sources()
        paths = [path for path in sources.paths if 0 < len(sources.read(path)) < _MOST_BYTES][:200]
        run({path: sources.read(path).encode() for path in paths}, (1.0,))
        return 0
    for count in (2_000, 30_000):
        run(code_files(count, _MOST_BYTES), (30.0, 63.0))
    return 0


def run(files: Mapping[str, bytes], latencies_ms: Iterable[float]) -> None:
    """Print the tables over `files`, by path, for each latency. Raises `AssertionError` for a wrong output."""
    greps = make_greps(files)
    expected = [crc32("\n".join(_output(files, grep)).encode()) for grep in greps]
    store = open_store(f"memory://{_STORE}")
    try:
        for path, data in files.items():
            store.put(client.TREE + path, data)
        publish(documents((path, data.decode()) for path, data in files.items()), f"memory://{_STORE}/{client.TEXT}")
        for milliseconds in latencies_ms:
            print(f"\n## {len(files):,} files, {sum(map(len, files.values())) / 1e6:.0f} MB, {milliseconds:g} ms\n")
            latency = Profile("constant", (ProfilePart(1, milliseconds / 1000, 0),))
            with S3StandIn(store, latency=latency, connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND) as server:
                measured = {way: _measure(way, greps, server) for way in client.WAYS}
            results = {way: rows for way, rows in measured.items() if rows}
            print(f"Not installed here: {'; '.join(sorted(measured.keys() - results.keys())) or 'none'}\n")
            if OURS not in results:
                raise AssertionError(f"{OURS} was not measured: it needs {', '.join(client.Ours.packages)}")
            _check_outputs(greps, results, expected)
            _print_seconds(greps, results)
            _print_costs(results)
    finally:
        forget(_STORE)


def _check_outputs(greps: list[Grep], results: Mapping[str, list[Row]], expected: list[int]) -> None:
    """Raise `AssertionError` for an output whose CRC-32 is not the expected one."""
    for way, rows in results.items():
        for grep, row, crc in zip(greps, rows, expected, strict=True):
            if row.crc != crc and not row.gave_up:
                raise AssertionError(f"{way}, `{grep.command}`: expected output with CRC-32 {crc}, found {row.crc}")


def make_greps(files: Mapping[str, bytes]) -> list[Grep]:
    """Ten command lines for these files."""
    words = _Words(b"\n".join(files.values()))
    rare, absent, word, common = words.rare(), words.absent(), words.usual(), words.common()
    regex = f"{rare[: 2 * len(rare) // 3]}\\w+{rare[-1]}"
    small = _small_file(files)
    name = small.rpartition("/")[2]
    return [
        Grep(f"grep -rn {rare} .", "lines", rare),
        Grep(f"grep -rn {absent} .", "lines", absent),
        Grep(f"grep -rnE '{regex}' .", "lines", regex),
        Grep(f"grep -rni {rare.swapcase()} .", "lines", rare, ignore_case=True),
        Grep(f"grep -rl {word} . | wc -l", "files", word),
        Grep(f"grep -rc {word} . | grep -v ':0$' | tail -{client.TAIL_LINES}", "count", word),
        Grep(f"grep -rn {common} . | head -{client.HEAD_LINES}", "head", common),
        Grep(f"grep -rc {common} . | awk -F: '{{n += $2}} END {{print n}}'", "sum", common),
        Grep(f"cat $(find . -name {name})", "find", path=name),
        Grep(f"tail -n {client.TAIL_LINES} {small}", "tail", path=small),
    ]


def _small_file(files: Mapping[str, bytes]) -> str:
    """The path of a file with a unique name that fits into one reply of the tool."""
    names = Counter(path.rpartition("/")[2] for path in files)
    later = sorted(files)[len(files) // 2 :]
    return next(path for path in later if names[path.rpartition("/")[2]] == 1 and len(files[path]) < _SHOWN_BYTES)


class _Words:
    """Draws words of a text by the seed, from small windows of it."""

    def __init__(self, data: bytes) -> None:
        self._data, self._dice = data, Random(_SEED)
        self._windows = [self._window() for _ in range(_WINDOWS)]

    def _window(self) -> str:
        offset = self._dice.randrange(max(len(self._data) - _WINDOW_BYTES, 1))
        return self._data[offset : offset + _WINDOW_BYTES].decode(errors="ignore")

    def rare(self) -> str:
        """A random identifier that occurs 1 to 5 times."""
        while True:
            tokens: list[str] = _TOKEN.findall(self._window())
            token = self._dice.choice(tokens) if tokens else ""
            if token and self._data.count(token.encode()) <= _MOST_MATCHES:
                return token

    def absent(self) -> str:
        """A random string, which the text almost certainly lacks."""
        return "".join(self._dice.choices(string.ascii_letters + string.digits, k=self._dice.randint(8, 20)))

    def usual(self) -> str:
        """A random word of the windows; each is equally likely, however often it occurs."""
        return self._dice.choice(sorted(set(self._matches(_WORD))))

    def common(self) -> str:
        """The word that is most frequent in the windows."""
        return Counter(self._matches(_COMMON)).most_common(1)[0][0]

    def _matches(self, pattern: re.Pattern[str]) -> list[str]:
        return [word for window in self._windows for word in pattern.findall(window)]


def _output(files: Mapping[str, bytes], grep: Grep) -> list[str]:
    """The lines that a command must print."""
    match grep.kind:
        case "find":
            named = (data for path, data in files.items() if f"/{path}".endswith(f"/{grep.path}"))
            return b"".join(named).decode().split("\n")[:-1]
        case "tail":
            return files[grep.path].decode().split("\n")[:-1][-client.TAIL_LINES :]
    return client.answer(grep.kind, client.search(files.items(), grep))


def _measure(way: str, greps: list[Grep], server: S3StandIn) -> list[Row] | None:
    """The rows of one way, in the order of the greps; None if the way is not installed."""
    ripgrep = shutil.which("rg", path=f"{peers_folder() / 'bin'}:{os.environ['PATH']}")
    if way == client.RIPGREP and ripgrep is None:
        return None
    groups = [[grep] for grep in greps]
    if way != OURS:  # one process answers all greps of the tree, so that it reads the files once
        groups = [[grep for grep in greps if grep.pattern], *([grep] for grep in greps if not grep.pattern)]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "greps.json")
        for group in groups:
            path.write_text(json.dumps([asdict(grep) for grep in group]))
            server.reset_counts()
            outcome = run_client(client.__file__, way, path, endpoint=server.endpoint, RG=ripgrep or "")
            if outcome is None:
                return None
            shared = {"requests": server.requests, "bytes": server.bytes_sent, "version": outcome["version"]}
            rows += [Row(**figures, **shared) for figures in outcome["rows"]]
    return rows


def _print_seconds(greps: list[Grep], results: Mapping[str, list[Row]]) -> None:
    """Print the table of all greps: our requests and bytes, and the seconds of each way."""
    others = {way: rows for way, rows in results.items() if way != OURS}
    print(head_line("seconds of", "requests, ours", "KB, ours", "ours", *others, "ripgrep over the copy"))
    for number, (grep, row) in enumerate(zip(greps, results[OURS], strict=True)):
        has_copy = grep.pattern and client.RIPGREP in results
        local = f"{results[client.RIPGREP][number].search_seconds:.2f}" if has_copy else ""
        seconds = f"gave up at {row.seconds:.0f}" if row.gave_up else f"{row.seconds:.2f}"
        cells = f"{row.requests:,}", f"{row.bytes / 1e3:,.0f}", seconds
        command = grep.command.replace("|", "\\|")
        print(row_line(f"`{command}`", *cells, *(f"{rows[number].seconds:.2f}" for rows in others.values()), local))


def _print_costs(results: Mapping[str, list[Row]]) -> None:
    """Print how many requests and bytes the other ways need to read every file."""
    print(f"\n{head_line('one grep of the tree', 'requests', 'MB')}")
    for way, (first, *_) in results.items():
        if way != OURS:
            print(row_line(f"{way}, {first.version}", f"{first.requests:,}", f"{first.bytes / 1e6:,.1f}"))
