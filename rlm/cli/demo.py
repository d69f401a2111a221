"""The command `rlm demo`: questions about a log of 10 GB, a text of 30 MB in an S3 server, and a plain folder.

A script plays the model; its code really runs. The index of the log repeats one block of frames and its filter.
The engine and the latency of a bucket are real.
"""

from __future__ import annotations

import sys
import sysconfig
import tarfile
import tempfile
import time
import uuid
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import click
from rich.console import Console
from rich.text import Text

from monocontext import Monocontext, publish
from monocontext.cli.parameters import NOT_NEGATIVE, Option
from monocontext.cli.printing import is_quiet, remark
from monocontext.format.index import Page
from monocontext.format.manifest import ROOT_KEY, generation_key
from monocontext.format.refs import FilterRef
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore, SeaweedServer, SlowStore, find_weed
from monocontext.writing.pages import IndexWriter, row_of
from rlm.cli.options import Runner, describe_rights, one_line_errors
from rlm.context.excerpt import make_printable
from rlm.errors import RunnerUnavailable
from rlm.models.lm import Reply, ScriptedLM
from rlm.rlm import RLM
from rlm.runners.runner import DEFAULT_RUNNER
from rlm.trajectory.completion import Completion
from rlm.trajectory.display import print_step

BYTES_PER_SECOND = 90e6  # of one connection to S3
TURN_SECONDS = 0.6
SIZE_BYTES = 10 * 10**9
_SIZE_BYTES_OF_32_BITS = 2 * 10**9  # where `len()` is limited to 2 Gi
_FRAME_BYTES, _LINE_BYTES, _BLOCK_FRAMES = 256 << 10, 128, 256
LOG_QUESTION = "The log ends with a FATAL error of a transaction. Which disk had failed in that transaction before?"
DISK = "sdq7"
LOG_TURNS = (
    """The last lines say what the transaction is.
```repl
print(f"{len(context):,} characters")
print(context[-300:])
```""",
    """I look for where that transaction stands first.
```repl
at = context.find("txn=ab12cd34")
print(at, context[at - 60:at + 200])
answer["content"] = context[at - 60:at + 200].split("disk ")[1].split()[0]
answer["ready"] = True
```""",
)
_QUESTION = (
    "Which file defines the class TarFile, and how many bytes is a record of an archive (RECORDSIZE) by default?"
)
_TURNS = (
    """```repl
at = context.find("\\nclass TarFile(")
start = context.rfind("=== FILE: ", 0, at)
path = context[start:start + 200].split("=== FILE: ")[1].split(" ===")[0]
constant = context.find("RECORDSIZE =", start)
print(path, context[constant - 200:constant + 120])
```""",
    """BLOCKSIZE is 512, and a record has 20 blocks.
```repl
FINAL(f"{path} defines TarFile; RECORDSIZE is {512 * 20} bytes.", sources=[(constant - 200, constant + 120)])
```""",
)
_FOLDER_QUESTION = "Which function of the package json reads a JSON document from a file?"
_FOLDER_TURNS = (
    '```repl\nprint(context.search("deserialize file-like object containing a JSON document", k=2))\n```',
    '```repl\nFINAL("json.load, as __init__.py says")\n```',
)


class Cost(NamedTuple):
    """The cost of one way to read."""

    way: str
    gets: int
    bytes_read: int
    seconds: float


class SlowScriptedLM(ScriptedLM):
    """Scripted replies that take as long as those of a model, `TURN_SECONDS`: text is read ahead meanwhile."""

    def complete(self, *arguments: Any, **keywords: Any) -> Reply:
        time.sleep(TURN_SECONDS / 2)
        reply = super().complete(*arguments, **keywords)
        time.sleep(TURN_SECONDS / 2)
        return reply


@one_line_errors()
def demo(
    latency_ms: Annotated[float, Option(type=NOT_NEGATIVE, help="Milliseconds to add to each GET.")] = 30,
    runner: Runner = DEFAULT_RUNNER,
) -> None:
    """Answer questions about a log of 10 GB, a text in a local S3 server, and a plain folder."""
    try:  # before anything is stored
        with RLM(lm=ScriptedLM(["```repl\nFINAL(1)\n```"]), runner=runner) as rlm:
            where = rlm.completion("Which runner is this?").trajectory[0]["environment_kwargs"].get("confinement")
    except RunnerUnavailable as exc:
        raise RunnerUnavailable(f"{exc} (with make: `make demo RUNNER=local`)") from exc
    remark(describe_rights(runner))
    console = Console(stderr=True)
    options = {"runner": runner, "on_step": None if is_quiet() else print_step, "prices": {"scripted": (0, 0)}}
    console.print(
        f"Each GET takes {latency_ms:.0f} ms and its bytes come at {BYTES_PER_SECOND / 1e6:.0f} MB/s here, "
        "as in a bucket of your region.\n"
    )
    size_bytes = _SIZE_BYTES_OF_32_BITS if where == "wasm" else SIZE_BYTES
    right = [
        _show_the_log(console, latency_ms / 1000, size_bytes, options),
        _show_the_library(console, latency_ms / 1000, options),
        _show_the_folder(console, options),
    ]
    console.print(
        "[bold]Next: your own text[/bold]\n"
        "  monocontext upload FILES... mytext      # mytext is a directory, or s3://bucket/prefix\n"
        '  rlm run mytext "What changed in March?" # with OPENAI_API_KEY, or --base-url of any endpoint'
    )
    if not all(right):
        raise click.exceptions.Exit(1)


def large_log(size_bytes: int = SIZE_BYTES) -> MemoryStore:
    """Make a log of about this size. A disk fails after a third of it, and its transaction fails in the last line.

    A block of frames is published with its search filter, then an index that repeats both.
    """
    dice = Random(4711)

    def line(text: str) -> str:
        return text.ljust(_LINE_BYTES - 1) + "\n"

    def served() -> str:
        clock = f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"
        level, host = dice.choice(("INFO", "INFO", "DEBUG", "WARN")), f"host-{dice.randrange(40)}"
        what = f"txn={dice.getrandbits(32):08x} served {dice.randrange(10**6)} bytes in {dice.randrange(900)} ms"
        return line(f"2026-11-22T{clock} {level} {host} {what}")

    lines = [served() for _ in range(_FRAME_BYTES // _LINE_BYTES)]
    failed = line("2026-11-22T03:14:15 ERROR host-17 disk sdq7 failed txn=ab12cd34 retrying on a mirror")
    fatal = line("2026-11-22T09:26:53 FATAL host-17 giving up on txn=ab12cd34")
    store = MemoryStore(name := uuid.uuid4().hex)
    forget(name)  # the objects go with the store
    frames = ["".join(lines)] * _BLOCK_FRAMES
    frames += ["".join([*lines[:999], failed, *lines[1000:]]), "".join([*lines[:-1], fatal])]
    base = publish(iter(frames), store, codec="raw", frame_bytes=_FRAME_BYTES)
    page = Page(store.get(base.pages[0].key).data, base.pages[0], None)
    index, filters, first = IndexWriter(store.put), list[FilterRef](), 0
    blocks = size_bytes // _FRAME_BYTES // _BLOCK_FRAMES
    block, *single = range(_BLOCK_FRAMES), range(_BLOCK_FRAMES, _BLOCK_FRAMES + 1), range(_BLOCK_FRAMES + 1, len(page))
    for numbers in [*[block] * (blocks // 3), single[0], *[block] * (blocks - blocks // 3), single[1]]:
        index.add(row_of(page[number]) for number in numbers)
        filters.append(replace(base.filters[0], runs=((first, numbers.start, len(numbers)),)))
        first += len(numbers)
    index.end_page()
    pages = tuple(index.pages)
    root = replace(base, generation=2, pages=pages, last_page=index.last_page, filters=tuple(filters)).to_bytes()
    for key in (generation_key(2), ROOT_KEY):
        store.put(key, root)
    return store


def ask_the_log(rlm: RLM, store: MemoryStore, latency_seconds: float) -> tuple[Completion, Cost, Cost]:
    """Answer the question. Returns the cost too, and the computed cost of a full download in segments of 16 MiB."""
    counted = CountingStore(SlowStore(store, latency_seconds, bytes_per_second=BYTES_PER_SECOND))
    with Monocontext.open(counted) as context:
        completion = rlm.completion(LOG_QUESTION, context)
        lazy = Cost("monocontext", counted.gets, counted.bytes_read, context.stats.wait_seconds)
        size = len(context)
    whole = Cost("a download of everything (computed)", -(-size // (16 << 20)), size, size / BYTES_PER_SECOND)
    return completion, lazy, whole


def _show_the_log(console: Console, latency_seconds: float, size_bytes: int, options: dict[str, Any]) -> bool:
    console.rule("1. a log of 10 GB, computed as it is read", align="left")
    console.print(f"Question: {LOG_QUESTION}\nA script plays the model. Its code really runs.\n")
    with RLM(lm=SlowScriptedLM(LOG_TURNS), **options) as rlm:
        completion, *costs = ask_the_log(rlm, large_log(size_bytes), latency_seconds)
    right = _print_answer(console, completion.answer, DISK)
    for way, gets, size, seconds in costs:
        console.print(f"{way}: {gets:,} requests, {size / 1e6:,.1f} MB read, {seconds:,.2f} s waited")
    return right


def _show_the_library(console: Console, latency_seconds: float, options: dict[str, Any]) -> bool:
    """Ask about the standard library's source in a local S3 server, or in a directory where there is no server."""
    library = Path(sysconfig.get_path("stdlib"))
    console.rule("2. the standard library's source in S3", align="left")
    with ExitStack() as stack:
        if find_weed() is None:
            url, stored = f"{stack.enter_context(tempfile.TemporaryDirectory())}/context", StoreOptions()
        else:
            server = stack.enter_context(SeaweedServer())
            url, stored = server.url("stdlib"), StoreOptions(client=server.client())
        manifest = publish(
            [library], url, store_options=stored, include=("*.py",), exclude=("site-packages/*", "lib2to3/*"),
            errors="replace", note=lambda _: None,
        )  # fmt: skip
        console.print(Text(f"Question: {_QUESTION}\nUploaded {manifest.characters:,} characters to {url}.\n"))
        store = SlowStore(open_store(url, **stored), latency_seconds, bytes_per_second=BYTES_PER_SECOND)
        return _ask(console, _QUESTION, _TURNS, store, options, "tarfile.py", str(tarfile.RECORDSIZE))


def _show_the_folder(console: Console, options: dict[str, Any]) -> bool:
    """Ask about a plain folder, without a server or an upload."""
    folder = Path(sysconfig.get_path("stdlib")) / "json"
    console.rule(f"3. a plain folder, {folder}", align="left")
    console.print(f"Question: {_FOLDER_QUESTION}\nNothing is stored: the files are read as they are.\n")
    with warnings.catch_warnings(action="ignore"):  # compiled files in the folder are left out
        return _ask(console, _FOLDER_QUESTION, _FOLDER_TURNS, folder, options, "json.load")


def _ask(
    console: Console, question: str, turns: Sequence[str], place: Any, options: dict[str, Any], *expected: str
) -> bool:
    with Monocontext.open(place) as context, RLM(lm=SlowScriptedLM(turns), **options) as rlm:
        answer = rlm.completion(question, context).answer
        console.print(f"{context.stats.gets:,} requests, {context.stats.bytes_fetched / 1e6:.1f} MB read.")
    return _print_answer(console, answer, *expected)


def _print_answer(console: Console, answer: str, *expected: str) -> bool:
    right = all(words in answer.replace(",", "") for words in expected)
    print(make_printable(answer, terminal=sys.stdout.isatty()))
    console.print("The answer is right.\n" if right else "The answer is WRONG.\n")
    return right
