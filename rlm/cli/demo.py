"""The command `rlm demo`: answer questions about a log of 10 GB, a text in a local S3 server, and a plain folder."""

from __future__ import annotations

import sys
import sysconfig
import tempfile
import time
import uuid
import warnings
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import click
from rich.console import Console
from rich.text import Text

from monocontext import Monocontext, publish
from monocontext.cli.parameters import NOT_NEGATIVE, Option
from monocontext.cli.printing import is_quiet, print_remark
from monocontext.format.index import Page
from monocontext.format.manifest import ROOT_KEY, generation_key
from monocontext.format.refs import FilterRef, FilterRun
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore, forget
from monocontext.stores.protocol import Store
from monocontext.testing import SeaweedServer, SlowStore, find_weed
from monocontext.writing.pages import IndexWriter, row_of
from rlm.cli.options import Runner, describe_rights, one_line_errors
from rlm.context.excerpt import make_printable
from rlm.errors import RunnerUnavailable
from rlm.models.lm import Reply, ScriptedLM
from rlm.rlm import RLM
from rlm.runners.runner import DEFAULT_RUNNER
from rlm.trajectory.display import print_step

BYTES_PER_SECOND = 90e6  # the speed of one connection to S3
TURN_SECONDS = 0.6  # the time in which a model replies
SIZE_BYTES = 10 * 10**9  # of the log
_FRAME_BYTES, _LINE_BYTES = 256 << 10, 128
_BLOCK_FRAMES = 256  # frames that are stored once, and that the index repeats


class Act(NamedTuple):
    """A question, and the two replies of the script that plays the model. Their code really runs."""

    question: str
    first_reply: str
    last_reply: str
    expected: tuple[str, ...]  # what the right answer contains, apart from commas


LOG_ACT = Act(
    "The log ends with a FATAL error of a transaction. Which disk had failed in that transaction before?",
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
    ("sdq7",),
)
_LIBRARY_ACT = Act(
    "Which file defines the class TarFile, and how many bytes is a record of an archive (RECORDSIZE) by default?",
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
    ("tarfile.py", "10240"),
)
_FOLDER_ACT = Act(
    "Which function of the package json reads a JSON document from a file?",
    '```repl\nprint(context.search("deserialize file-like object containing a JSON document", k=2))\n```',
    '```repl\nFINAL("json.load, as __init__.py says")\n```',
    ("json.load",),
)


class SlowScriptedLM(ScriptedLM):
    """Gives each scripted reply after `TURN_SECONDS`, as a model would, so that text is read ahead meanwhile."""

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
    try:  # find out whether the runner works, before anything is stored
        with RLM(lm=ScriptedLM(["```repl\nFINAL(1)\n```"]), runner=runner) as rlm:
            confinement = rlm.completion("Which runner is this?").trajectory[0]["environment_kwargs"].get("confinement")
    except RunnerUnavailable as exc:
        raise RunnerUnavailable(f"{exc} (with make: `make demo RUNNER=local`)") from exc
    print_remark(describe_rights(runner))
    console = Console(stderr=True)
    console.print(f"A script plays the model; its code really runs. A GET takes {latency_ms:.0f} ms here.\n")
    play = partial(_play, console, runner)
    slow = partial(SlowStore, seconds=latency_ms / 1000, bytes_per_second=BYTES_PER_SECOND)
    with ExitStack() as stack:
        log = slow(large_log(SIZE_BYTES if confinement != "wasm" else 2 * 10**9))  # where `len()` is at most 2 Gi
        are_right = [play(LOG_ACT, title="1. a log of 10 GB, of repeated lines", source=log)]
        library = slow(_publish_library(stack))
        are_right.append(play(_LIBRARY_ACT, title=f"2. the standard library's source at {library.url}", source=library))
        folder = Path(sysconfig.get_path("stdlib")) / "json"
        stack.enter_context(warnings.catch_warnings(action="ignore"))  # compiled files in the folder are left out
        are_right.append(play(_FOLDER_ACT, title=f"3. a plain folder, {folder}: nothing is stored", source=folder))
    console.print(
        "[bold]Next: your own text[/bold]\n"
        "  monocontext upload FILES... mytext      # mytext is a directory, or s3://bucket/prefix\n"
        '  rlm run mytext "What changed in March?" # with OPENAI_API_KEY, or --base-url of any endpoint'
    )
    if not all(are_right):
        raise click.exceptions.Exit(1)


def _play(console: Console, runner: str, act: Act, *, title: str, source: Store | Path) -> bool:
    """Play an act: ask its question, print the steps and the answer. Returns whether the answer is right."""
    console.rule(Text(title), align="left")
    console.print(Text(f"Question: {act.question}\n"))
    lm = SlowScriptedLM([act.first_reply, act.last_reply])
    rlm = RLM(lm=lm, runner=runner, on_step=None if is_quiet() else print_step, prices={"scripted": (0, 0)})
    with Monocontext.open(source) as context, rlm:
        answer, stats = rlm.completion(act.question, context).answer, context.stats
        read = f"{stats.gets:,} request{'s' * (stats.gets != 1)}, {stats.bytes_fetched / 1e6:,.1f} MB read"
        waited = f"{stats.wait_seconds:,.2f} s waited, of {len(context):,} characters"
        console.print(f"{read}, {waited}; a download takes {len(context) / BYTES_PER_SECOND:,.1f} s.")
    is_right = all(words in answer.replace(",", "") for words in act.expected)
    print(make_printable(answer, terminal=sys.stdout.isatty()))
    console.print("The answer is right.\n" if is_right else "The answer is WRONG.\n")
    return is_right


def large_log(size_bytes: int = SIZE_BYTES) -> MemoryStore:
    """A log of about this size. A block of frames and its search filter are stored once; the index repeats both."""
    name = uuid.uuid4().hex
    store = MemoryStore(name)
    forget(name)  # the objects go with the store
    stored = publish(iter(_log_frames()), store, codec="raw", frame_bytes=_FRAME_BYTES)
    page = Page(store.get(stored.pages[0].key).data, stored.pages[0], None)
    repeats = size_bytes // (_FRAME_BYTES * _BLOCK_FRAMES)
    block, failure = range(_BLOCK_FRAMES), range(_BLOCK_FRAMES, _BLOCK_FRAMES + 1)
    end = range(_BLOCK_FRAMES + 1, len(page))
    index, filters, first_frame = IndexWriter(store.put), list[FilterRef](), 0
    for frames in [*[block] * (repeats // 3), failure, *[block] * (repeats - repeats // 3), end]:
        index.add(row_of(page[number]) for number in frames)
        filters.append(replace(stored.filters[0], runs=(FilterRun(first_frame, frames.start, len(frames)),)))
        first_frame += len(frames)
    index.end_page()
    root = replace(stored, generation=2, pages=tuple(index.pages), last_page=index.last_page, filters=tuple(filters))
    for key in (generation_key(2), ROOT_KEY):
        store.put(key, root.to_bytes())
    return store


def _log_frames() -> list[str]:
    """A block of equal frames, then one in which a disk fails, and the last one, in which its transaction fails."""
    random = Random(4711)
    texts = [
        f"2026-11-22T{random.randrange(24):02}:{random.randrange(60):02}:00 INFO host-{random.randrange(40)} "
        f"txn={random.getrandbits(32):08x} served {random.randrange(10**6)} bytes in {random.randrange(900)} ms"
        for _ in range(_FRAME_BYTES // _LINE_BYTES)
    ]
    texts.append("2026-11-22T03:14:15 ERROR host-17 disk sdq7 failed txn=ab12cd34 retrying on a mirror")
    texts.append("2026-11-22T09:26:53 FATAL host-17 giving up on txn=ab12cd34")
    *lines, failed, fatal = (text.ljust(_LINE_BYTES - 1) + "\n" for text in texts)
    block = ["".join(lines)] * _BLOCK_FRAMES
    return [*block, "".join([*lines[:999], failed, *lines[1000:]]), "".join([*lines[:-1], fatal])]


def _publish_library(stack: ExitStack) -> Store:
    """The standard library's source in a local S3 server, or in a directory where there is no server."""
    if find_weed() is None:
        url, stored = f"{stack.enter_context(tempfile.TemporaryDirectory())}/context", StoreOptions()
    else:
        server = stack.enter_context(SeaweedServer())
        url, stored = server.url("stdlib"), StoreOptions(client=server.client())
    publish(
        [Path(sysconfig.get_path("stdlib"))], url, store_options=stored, include=("*.py",),
        exclude=("site-packages/*", "lib2to3/*"), errors="replace", note=lambda _: None,
    )  # fmt: skip
    return open_store(url, **stored)
