"""Answer a question about a real text behind the S3 protocol, and print the cost of reading it: `rlm demo`.

The text is the source of this Python's standard library, some 30 MB. With a key in the environment a model answers;
without one a scripted root does what a model would. An edge: it reads the environment, and imports `monocontext`.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
import time
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
from rlm.cli.demo_costs import Cost, print_costs
from rlm.context.excerpt import make_printable
from rlm.errors import RunnerUnavailable
from rlm.models.lm import LM, Message, Reply
from rlm.models.scripted import ScriptedLM
from rlm.rlm import RLM
from rlm.runners.runner import DEFAULT_RUNNER
from rlm.trajectory.completion import Completion
from rlm.trajectory.display import print_step, print_summary

BYTES_PER_SECOND = 90e6
"""What one connection to S3 carries."""
QUESTION = "Which file defines the class TarFile, and how many bytes is a record of an archive (RECORDSIZE) by default?"

_LOOK = """I look at what I hold before I do anything with it.
```repl
print(type(context), f"{len(context):,} characters, {len(context.lines):,} lines")
print(context[:400])
print("...")
print(context[-200:])
```"""

_OUTLINE = """The files stand under header lines. An outline of the beginning tells how they are ordered.
```repl
import re
headers = re.findall(r"^=== FILE: (.+) ===$", context[:1_000_000], re.M)
print(len(headers), "files in the first million characters:", headers[:6], "...", headers[-3:])
```"""

_ZOOM = """Now the class, the file that it stands in, and the constant.
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


TURN_SECONDS = 0.6
LINES = 8
"""Of a reply of the script, about."""
SCRIPTED = "scripted"
"""What the script goes by in the place of a model; it costs nothing."""


class UnhurriedLM(ScriptedLM):
    """A script that takes its time, as models do: a reader uses that to read ahead."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """The next reply, after half of `TURN_SECONDS`, its lines in the other half."""
        time.sleep(TURN_SECONDS / 2)
        return super().complete(messages, model=model, on_delta=on_delta and _line_by_line(on_delta))


def _line_by_line(on_delta: Callable[[str], object]) -> Callable[[str], object]:
    def write(line: str) -> None:
        time.sleep(TURN_SECONDS / 2 / LINES)
        on_delta(line)

    return write


def scripted_root() -> ScriptedLM:
    """A root that explores as a model would: head, outline, zoom, answer."""
    return UnhurriedLM([_LOOK, _OUTLINE, _ZOOM, _ANSWER], model=SCRIPTED)


def scripted_reader(prompt: object) -> str:
    """The sub-model of the script: evaluates the two assignments in the passage that it is shown."""
    block = re.search(r"^BLOCKSIZE = (\d+)", str(prompt), re.M)
    record = re.search(r"^RECORDSIZE = BLOCKSIZE \* (\d+)", str(prompt), re.M)
    return str(int(block[1]) * int(record[1])) if block and record else "not in the passage"


def truth(library: Path) -> tuple[str, int]:
    """The right answer, from the files themselves."""
    import tarfile

    path = next(p for p in sorted(library.glob("*.py")) if re.search(r"^class TarFile\(", p.read_text("utf-8"), re.M))
    return path.name, tarfile.RECORDSIZE


def main(
    *,
    latency_seconds: float = 0.03,
    model: str | None = None,
    base_url: str | None = None,
    quiet: bool = False,
    runner: str = DEFAULT_RUNNER,
) -> bool:
    """Run the demo on the terminal; return whether the answer was right."""
    console = Console(stderr=True)
    library = Path(sysconfig.get_path("stdlib"))
    with ExitStack() as stack:
        url, options, place = stack.enter_context(_server())
        console.print(f"1. {place}")
        began = time.perf_counter()
        manifest = _publish_library(library, url, options)
        console.print(
            f"2. Uploaded the standard library's source from {library}: {manifest.characters:,} characters, "
            f"{manifest.stored_bytes:,} bytes stored, in {time.perf_counter() - began:.1f} s."
        )
        store = stack.enter_context(closing(open_store(url, **options)))
        slow = SlowStore(store, latency_seconds, bytes_per_second=BYTES_PER_SECOND)
        counted = CountingStore(slow)
        console.print(
            f"3. From here on each GET takes {1000 * latency_seconds:.0f} ms and its bytes come at "
            f"{BYTES_PER_SECOND / 1e6:.0f} MB/s, as in a bucket of your region."
        )
        root, reader, who = _models(model, base_url)
        console.print(Text(f"4. {make_printable(who, terminal=True)}\n   Question: {QUESTION}"))
        with Monocontext.open(counted) as context:
            rlm = RLM(
                lm=root, sub_lm=reader, on_step=None if quiet else print_step, runner=runner, prices={SCRIPTED: (0, 0)}
            )
            completion = rlm.completion(QUESTION, context)
            waited, hits, looked = context.stats.wait_seconds, context.stats.hits, context.stats.misses
            lazy = Cost("monocontext", counted.gets, counted.bytes_read, waited)
        ranges = [(r.key, r.start or 0, r.length or 0) for r in counted.log if r.verb == "get_range"]
        costs = [lazy, _read_one_by_one(slow, ranges, manifest), _download_everything(slow)]
        print_summary(completion)
        print_costs(console, "What reading cost (measured in this run)", costs)
        console.print(f"Cache: {hits:,} of {hits + looked:,} look-ups answered from memory.")
        right = _is_right(completion, library)
        _print_answer(console, completion, right)
        confinement = completion.trajectory[0].get("environment_kwargs", {}).get("confinement")
        size_bytes = demo_large.SIZE_BYTES_OF_32_BITS if confinement == "wasm" else demo_large.SIZE_BYTES
        return _second_act(console, latency_seconds, runner, size_bytes) and right


def _second_act(console: Console, latency_seconds: float, runner: str, size_bytes: int) -> bool:
    """A text that nobody would download; scripted, whoever answered before. Returns whether the answer was right."""
    size = f"{size_bytes // 10**9} GB"
    console.print(
        f"5. The same with a log of {size}, computed as it is read (scripted).\n   Question: {demo_large.QUESTION}"
    )
    store = demo_large.large_log(size_bytes)
    slow = SlowStore(store, latency_seconds, bytes_per_second=BYTES_PER_SECOND)
    root = UnhurriedLM(demo_large.TURNS, model=SCRIPTED)
    completion, costs = demo_large.ask(
        RLM(lm=root, runner=runner, prices={SCRIPTED: (0, 0)}), store, slow, BYTES_PER_SECOND
    )
    print_costs(console, f"What reading cost of {size}", costs)
    right = completion.answer == demo_large.DISK
    _print_answer(console, completion, right)
    return right


def _print_answer(console: Console, completion: Completion, right: bool) -> None:
    print(make_printable(completion.answer, terminal=sys.stdout.isatty()))
    console.print("The answer is right." if right else "The answer is WRONG.")


def try_runner(runner: str) -> None:
    """Start the runner once, so that a machine that has it not says so before anything is stored.

    Raises RunnerUnavailable, with what to say to `make` as well.
    """
    try:
        RLM(lm=ScriptedLM([]), runner=runner).session().close()
    except RunnerUnavailable as exc:
        raise RunnerUnavailable(f"{exc} (by make: make demo RUNNER=local)") from exc


@contextmanager
def _server() -> Iterator[tuple[str, StoreOptions, str]]:
    """A place for the text: a real S3 server where there is one for this platform, else a directory."""
    if find_weed() is None:
        with tempfile.TemporaryDirectory(prefix="monocontext-demo-") as folder:
            yield f"{folder}/context", {}, f"No SeaweedFS for this platform: a directory stands in for S3 ({folder})."
        return
    with SeaweedServer() as server:
        yield (
            server.url("stdlib"),
            {"client": server.client()},
            f"Started SeaweedFS, an S3 server, at {server.endpoint}.",
        )


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
    key = os.environ.get("OPENAI_API_KEY")
    if base_url is None:
        base_url = os.environ.get("OPENAI_BASE_URL") or None
    if key or base_url is not None:
        from rlm.models.openai import OpenAILM

        name = model or os.environ.get("OPENAI_MODEL", "gpt-5")
        lm = OpenAILM(name, base_url=base_url, api_key=key)
        return lm, lm, f"{name} answers."
    who = (
        "No OPENAI_API_KEY: a SCRIPTED root plays the model. Its code really runs, against the real context. It takes "
        f"{TURN_SECONDS} s a turn; models take 1 to 9."
    )
    return scripted_root(), ScriptedLM(scripted_reader, model=SCRIPTED), who


def _read_one_by_one(store: Store, ranges: list[tuple[str, int, int]], manifest: Manifest) -> Cost:
    """The same bytes as a simple reader fetches them: a frame at a time, each after the one before."""
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
    return Cost("download everything first", len(sizes), sum(sizes), time.perf_counter() - began)


def _is_right(completion: Completion, library: Path) -> bool:
    path, size = truth(library)
    digits = completion.answer.replace(",", "")
    return path in completion.answer and str(size) in digits
