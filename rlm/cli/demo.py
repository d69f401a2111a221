"""The command `rlm demo`: questions about a log of 10 GB, a text of 30 MB in an S3 server, and a plain folder.

The text of 30 MB is the source code of Python's standard library. If the environment holds a key, a model answers the
question about it. Scripted replies take the place of a model in the other acts, and in this one without a key.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from monocontext import Monocontext, publish
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, SeaweedServer, SlowStore, find_weed
from rlm.cli import demo_large
from rlm.cli.demo_large import Cost, print_costs
from rlm.context.excerpt import make_printable
from rlm.errors import RunnerUnavailable
from rlm.models.lm import LM, Message, Reply
from rlm.models.scripted import ScriptedLM
from rlm.rlm import RLM
from rlm.runners.runner import DEFAULT_RUNNER
from rlm.trajectory.completion import Completion
from rlm.trajectory.display import print_step, print_summary
from rlm.trajectory.step import Step

BYTES_PER_SECOND = 90e6
"""Bytes per second of one connection to S3."""
TURN_SECONDS = 0.6
LINES = 8
"""The approximate number of lines in a scripted reply."""
OnStep = Callable[[Step], object] | None
SCRIPTED = "scripted"
"""The model name of the script, which costs nothing."""


def main(
    *,
    latency_seconds: float = 0.03,
    model: str | None = None,
    base_url: str | None = None,
    quiet: bool = False,
    runner: str = DEFAULT_RUNNER,
) -> bool:
    """Run the three acts of the demo on the terminal. Returns whether all answers were right."""
    console = Console(stderr=True)
    on_step = None if quiet else print_step
    console.print(
        f"Each GET takes {1000 * latency_seconds:.0f} ms and its bytes come at {BYTES_PER_SECOND / 1e6:.0f} MB/s here, "
        "as in a bucket of your region.\n"
    )
    right = [
        _ask_the_log(console, latency_seconds, runner, on_step),
        _ask_the_library(console, latency_seconds, runner, on_step, model, base_url),
        _ask_the_folder(console, runner, on_step),
    ]
    console.print(
        "[bold]Next: your own text[/bold]\n"
        "  monocontext upload FILES... mytext      # mytext is a directory, or s3://bucket/prefix\n"
        '  rlm run mytext "What changed in March?" # with OPENAI_API_KEY, or --base-url of any endpoint'
    )
    return all(right)


def try_runner(runner: str) -> None:
    """Start the runner once, so that the demo fails before it stores anything.

    Raises RunnerUnavailable, whose message also names the command for `make`.
    """
    try:
        RLM(lm=ScriptedLM([]), runner=runner).session().close()
    except RunnerUnavailable as exc:
        raise RunnerUnavailable(f"{exc} (with make: `make demo RUNNER=local`)") from exc


def _begin(console: Console, number: int, what: str, question: str) -> None:
    console.rule(f"{number}. {what}", align="left")
    console.print(Text(f"Question: {question}"))


def _print_answer(console: Console, completion: Completion, right: bool) -> None:
    print(make_printable(completion.answer, terminal=sys.stdout.isatty()))
    console.print("The answer is right." if right else "The answer is WRONG.")


class SlowScriptedLM(ScriptedLM):
    """Scripted replies that take as long as those of a model, so that text is read ahead meanwhile."""

    def complete(
        self, messages: Sequence[Message], *, model: str | None = None, on_delta: Callable[[str], object] | None = None
    ) -> Reply:
        """Wait half of `TURN_SECONDS`, then write the lines of the next reply during the other half."""

        def write(line: str) -> None:
            time.sleep(TURN_SECONDS / 2 / LINES)
            if on_delta:
                on_delta(line)

        time.sleep(TURN_SECONDS / 2)
        return super().complete(messages, model=model, on_delta=write if on_delta else None)


def _scripted_rlm(turns: Sequence[str], runner: str, on_step: OnStep) -> RLM:
    lm = SlowScriptedLM(turns, model=SCRIPTED)
    return RLM(lm=lm, runner=runner, prices={SCRIPTED: (0, 0)}, on_step=on_step)


# -- the log -----------------------------------------------------------------------------------------------------------


def _ask_the_log(console: Console, latency_seconds: float, runner: str, on_step: OnStep) -> bool:
    """Ask the script about a text too large to download. Returns whether the answer was right."""
    store = demo_large.large_log(_log_bytes(runner))
    slow = SlowStore(store, latency_seconds, bytes_per_second=BYTES_PER_SECOND)
    with _scripted_rlm(demo_large.TURNS, runner, on_step) as rlm:
        size = f"{sum(info.size_bytes for info in store.list('segments/')) / 1e9:.0f} GB"
        _begin(console, 1, f"a log of {size}", demo_large.QUESTION)
        console.print("The log is computed as it is read, and a script plays the model. Its code really runs.\n")
        completion, [lazy, whole] = demo_large.ask(rlm, store, slow, BYTES_PER_SECOND)
    right = completion.answer == demo_large.DISK
    _print_answer(console, completion, right)
    print_costs(console, [lazy, whole])
    share = 100 * lazy.bytes_read / whole.bytes_read
    console.print(
        f"Only {share:.2f} % of the log was read. Search filters say where a word may stand, a slice fetches what it "
        f"shows, and what the code will read is fetched while the model still writes.\n"
    )
    return right


def _log_bytes(runner: str) -> int:
    """The size of the log: 10 GB, or less for a 32-bit Python, whose `len()` is limited."""
    with RLM(lm=ScriptedLM(["```repl\nFINAL(1)\n```"]), runner=runner) as rlm:
        recorded = rlm.completion("Which runner is this?").trajectory[0].get("environment_kwargs", {})
    return demo_large.SIZE_BYTES_OF_32_BITS if recorded.get("confinement") == "wasm" else demo_large.SIZE_BYTES


# -- the library -------------------------------------------------------------------------------------------------------

QUESTION = "Which file defines the class TarFile, and how many bytes is a record of an archive (RECORDSIZE) by default?"
_LOOK = """I look at what I hold before I do anything with it.
```repl
print(f"{len(context):,} characters, {len(context.lines):,} lines")
print(context[:400])
print("...")
print(context[-200:])
```"""

_OUTLINE = """Each file follows a header line. An outline of the beginning shows their order.
```repl
import re
headers = re.findall(r"^=== FILE: (.+) ===$", context[:1_000_000], re.M)
print(len(headers), "files in the first million characters:", headers[:6], "...", headers[-3:])
```"""

_ZOOM = """Now the class, the file that holds it, and the constant.
```repl
at = context.find("\\nclass TarFile(")
start = context.rfind("=== FILE: ", 0, at)
path = context[start:start + 200].split("=== FILE: ")[1].split(" ===")[0]
constant = context.find("RECORDSIZE =", start)
print(path, "at character", at)
print(context[constant - 200:constant + 120])
```"""

_ANSWER = """I let a sub-model read the passage and check its arithmetic against the source.
```repl
passage = context[constant - 200:constant + 120]
size = llm_query(f"How many bytes is RECORDSIZE? Answer with the number alone.\\n\\n{passage}")
answer["content"] = f"{path} defines TarFile; RECORDSIZE is {size} bytes."
answer["ready"] = True
```"""


def _ask_the_library(
    console: Console, latency_seconds: float, runner: str, on_step: OnStep, model: str | None, base_url: str | None
) -> bool:
    """Ask about the standard library's source in a local S3 server. Returns whether the answer was right."""
    library = Path(sysconfig.get_path("stdlib"))
    with ExitStack() as stack:
        url, options, remark = stack.enter_context(_server())
        _begin(console, 2, "the standard library's source in S3", QUESTION)
        console.print(remark)
        began = time.perf_counter()
        manifest = _publish_library(library, url, options)
        console.print(
            f"Uploaded {library}: {manifest.characters:,} characters, {manifest.stored_bytes:,} bytes stored, in "
            f"{time.perf_counter() - began:.1f} s."
        )
        slow = SlowStore(
            stack.enter_context(closing(open_store(url, **options))), latency_seconds, bytes_per_second=BYTES_PER_SECOND
        )
        counted = CountingStore(slow)
        root, reader, remark = _models(model, base_url)
        console.print(Text(f"{make_printable(remark, terminal=True)}\n"))
        with (
            Monocontext.open(counted) as context,
            RLM(lm=root, sub_lm=reader, on_step=on_step, runner=runner, prices={SCRIPTED: (0, 0)}) as rlm,
        ):
            completion = rlm.completion(QUESTION, context)
            lazy = Cost("monocontext", counted.gets, counted.bytes_read, context.stats.wait_seconds)
        ranges = [(each.key, each.start or 0, each.length or 0) for each in counted.log if each.verb == "get_range"]
        whole = _download_everything(slow)
        print_summary(completion)
        right = _is_right(completion, library)
        _print_answer(console, completion, right)
        print_costs(console, [lazy, _read_one_by_one(slow, ranges, manifest), whole])
        if lazy.seconds > whole.seconds / 2:
            console.print("At this size a download takes no longer. The gap grows with the text: see the log above.\n")
        else:
            console.print(f"The whole text would have taken {whole.seconds / lazy.seconds:.1f} times as long.\n")
        return right


@contextmanager
def _server() -> Iterator[tuple[str, StoreOptions, str]]:
    """Start an S3 server, or use a directory if this platform has none. Yields the URL, its options and a remark."""
    if find_weed() is None:
        with tempfile.TemporaryDirectory(prefix="monocontext-demo-") as folder:
            yield f"{folder}/context", {}, f"No SeaweedFS for this platform: a directory replaces S3 ({folder})."
        return
    with SeaweedServer() as server:
        remark = f"Started SeaweedFS, an S3 server, at {server.endpoint}."
        yield server.url("stdlib"), {"client": server.client()}, remark


def _publish_library(library: Path, url: str, options: StoreOptions) -> Manifest:
    return publish(
        [library],
        url,
        store_options=options,
        include=("*.py",),
        exclude=("site-packages/*", "lib2to3/*"),
        errors="replace",  # a few test files are in other encodings on purpose, and one has a byte order mark
        note=lambda _: None,
    )


def _models(model: str | None, base_url: str | None) -> tuple[LM, LM, str]:
    """The root model, the sub-model, and a line about them."""
    key = os.environ.get("OPENAI_API_KEY")
    if base_url is None:
        base_url = os.environ.get("OPENAI_BASE_URL") or None
    if key or base_url is not None:
        from rlm.models.openai import OpenAILM

        name = model or os.environ.get("OPENAI_MODEL", "gpt-5")
        lm = OpenAILM(name, base_url=base_url, api_key=key)
        return lm, lm, f"{name} answers."
    remark = (
        "No OPENAI_API_KEY: a SCRIPTED root plays the model. Its code really runs, against the real context. It takes "
        f"{TURN_SECONDS} s a turn; models take 1 to 9."
    )
    # The root explores as a real one would: head, outline, zoom, answer.
    root = SlowScriptedLM([_LOOK, _OUTLINE, _ZOOM, _ANSWER], model=SCRIPTED)
    return root, ScriptedLM(scripted_reader, model=SCRIPTED), remark


def scripted_reader(prompt: object) -> str:
    """The sub-model of the script, which evaluates the two assignments in the passage."""
    block = re.search(r"^BLOCKSIZE = (\d+)", str(prompt), re.M)
    record = re.search(r"^RECORDSIZE = BLOCKSIZE \* (\d+)", str(prompt), re.M)
    return str(int(block[1]) * int(record[1])) if block and record else "not in the passage"


def _read_one_by_one(store: Store, ranges: list[tuple[str, int, int]], manifest: Manifest) -> Cost:
    """Measure how a simple reader fetches the same ranges: one frame after another."""
    frame_bytes = max(manifest.stored_bytes // manifest.frames, 1)
    began, gets, read = time.perf_counter(), 1, 0
    for key, first, size in ranges:
        for start in range(first, first + size, frame_bytes):
            length = min(frame_bytes, first + size - start)
            read += len(store.get_range(key, start, length).data)
            gets += 1
    return Cost("the same bytes, one GET after another", gets, read, time.perf_counter() - began)


def _download_everything(store: Store) -> Cost:
    began = time.perf_counter()
    sizes = [len(store.get(info.key).data) for info in store.list("segments/")]
    return Cost("a download of everything", len(sizes), sum(sizes), time.perf_counter() - began)


def _is_right(completion: Completion, library: Path) -> bool:
    """Compare the answer with the files."""
    files = sorted(library.glob("*.py"))
    path = next(file for file in files if re.search(r"^class TarFile\(", file.read_text("utf-8"), re.M))
    return path.name in completion.answer and str(tarfile.RECORDSIZE) in completion.answer.replace(",", "")


# -- the folder --------------------------------------------------------------------------------------------------------

FOLDER_QUESTION = "Which function of the package json reads a JSON document from a file?"
_FOLDER_TURNS = (
    """The folder is one text. I search it for the words of the question.
```repl
for passage in context.search("deserialize file-like object containing a JSON document", k=2):
    print(passage.document, passage.document_line, passage.text[:120])
```""",
    "FINAL(json.load, as __init__.py says)",
)


def _ask_the_folder(console: Console, runner: str, on_step: OnStep) -> bool:
    """Ask about a plain folder, without a server or an upload. Returns whether the answer was right."""
    folder = Path(sysconfig.get_path("stdlib")) / "json"
    _begin(console, 3, f"a plain folder, {folder}", FOLDER_QUESTION)
    console.print(f"Nothing is stored for this: `rlm run {folder} QUESTION` reads the files as they are.\n")
    with (
        warnings.catch_warnings(action="ignore"),  # compiled files in the folder are left out
        Monocontext.open(folder) as context,
        _scripted_rlm(_FOLDER_TURNS, runner, on_step) as rlm,
    ):
        completion = rlm.completion(FOLDER_QUESTION, context)
    right = completion.answer.startswith("json.load,")
    _print_answer(console, completion, right)
    console.print()
    return right
