"""The command `rlm demo`: questions about a log of 10 GB, a text of 30 MB in an S3 server, and a plain folder.

A script plays the model; its code really runs. The bytes of the log are computed when they are read: `virtual_context`
repeats one frame of lines, and plants two others. The engine, the filters and the latency of a bucket are real.
"""

from __future__ import annotations

import sys
import sysconfig
import tarfile
import tempfile
import time
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
from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.testing import CountingStore, SeaweedServer, SlowStore, VirtualStore, find_weed, virtual_context
from rlm.cli.options import Runner, describe_rights, one_line_errors
from rlm.context.excerpt import make_printable
from rlm.errors import RunnerUnavailable
from rlm.models.lm import Reply
from rlm.models.scripted import ScriptedLM
from rlm.rlm import RLM
from rlm.runners.runner import DEFAULT_RUNNER
from rlm.trajectory.completion import Completion
from rlm.trajectory.display import print_step

BYTES_PER_SECOND = 90e6  # of one connection to S3
TURN_SECONDS = 0.6
SIZE_BYTES = 10 * 10**9
_SIZE_BYTES_OF_32_BITS = 2 * 10**9  # where `len()` is limited to 2 Gi
_FRAME_BYTES, _LINE_BYTES = 256 << 10, 128
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


def large_log(size_bytes: int = SIZE_BYTES) -> VirtualStore:
    """Make a log of about this size. A disk fails after a third of it, and its transaction fails in the last line."""
    dice = Random(4711)

    def line(text: str) -> str:
        return text.ljust(_LINE_BYTES - 1) + "\n"

    def served() -> str:
        clock = f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"
        level, host = dice.choice(("INFO", "INFO", "DEBUG", "WARN")), f"host-{dice.randrange(40)}"
        what = f"txn={dice.getrandbits(32):08x} served {dice.randrange(10**6)} bytes in {dice.randrange(900)} ms"
        return line(f"2026-11-22T{clock} {level} {host} {what}")

    frames = size_bytes // _FRAME_BYTES
    lines = [served() for _ in range(_FRAME_BYTES // _LINE_BYTES)]
    failed = line("2026-11-22T03:14:15 ERROR host-17 disk sdq7 failed txn=ab12cd34 retrying on a mirror")
    fatal = line("2026-11-22T09:26:53 FATAL host-17 giving up on txn=ab12cd34")
    planted = {frames // 3: "".join([*lines[:999], failed, *lines[1000:]]), frames - 1: "".join([*lines[:-1], fatal])}
    return virtual_context(frames, "".join(lines), planted, filters=True, distinct=True)


def ask_the_log(rlm: RLM, store: VirtualStore, latency_seconds: float) -> tuple[Completion, Cost, Cost]:
    """Answer the question. Returns the cost too, and the computed cost of a full download."""
    counted = CountingStore(SlowStore(store, latency_seconds, bytes_per_second=BYTES_PER_SECOND))
    with Monocontext.open(counted) as context:
        completion = rlm.completion(LOG_QUESTION, context)
        lazy = Cost("monocontext", counted.gets, counted.bytes_read, context.stats.wait_seconds)
    sizes = [info.size_bytes for info in store.list("segments/")]
    seconds = sum(sizes) / BYTES_PER_SECOND
    return completion, lazy, Cost("a download of everything (computed)", len(sizes), sum(sizes), seconds)


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
