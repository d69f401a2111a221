"""A question about a virtual text of 4 GiB behind S3, in the host's own environment, where no pytest is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from monocontext import Monocontext
from monocontext.testing import S3StandIn

sys.path.append(str(Path(__file__).parents[2]))  # the last, since its `rlm` is not the host's
from tests.virtual import virtual_context

FRAME_BYTES = 8 << 10
"""Small, so that what is counted is near what the code looked at; a frame of the default size has 256 KiB."""
TEXT_BYTES = 4 << 30
LINE = "the quick brown fox jumps over the lazy dog, and nothing else happens here\n"
SECRET = "the zebra's password is quince-41"
ANSWER = "quince-41"
QUESTION = "What is the zebra's password?"
AT_FRAME = 350_000

LOOK = """\
print(len({name}))
print({name}[:60])
print({name}[-60:])
"""
FIND = """\
at = {name}.find("zebra", 1000)
print(at, {name}[at - 40:at + 60])
"""
GREP = """\
hit = next({name}.grep(r"password is \\S+"))
found = hit.line.split()[-1]
print(hit.line_number, found)
"""
CELLS = (LOOK, FIND, GREP)
"""What the scripted model writes in its first three turns; the fourth gives the answer in the host's own dialect."""


def lines_for(host: str, context: Any = None) -> dict[str, Any]:
    """What the lines for a host in docs/hosts.md define, run with this `context`."""
    page = (Path(__file__).parents[2] / "docs" / "hosts.md").read_text("utf-8")
    names = {"context": context}
    exec(page.partition(f"\n### {host}\n")[2].partition("```python\n")[2].partition("```")[0], names)
    return names


def big_text() -> Any:
    """A store with 4 GiB of one repeated frame, one of which is another."""
    filler = (LINE * (FRAME_BYTES // len(LINE) + 1))[: FRAME_BYTES - 1] + "\n"
    plant = filler[: FRAME_BYTES // 2].rpartition("\n")[0] + "\n" + SECRET + "\n"
    plant += filler[-(FRAME_BYTES - len(plant)) :]
    return virtual_context(TEXT_BYTES // FRAME_BYTES, filler, {AT_FRAME: plant}, filters=True)


SHELL_FRAMES = 16_384
"""Frames of 256 KiB, each a document."""
SHELL_QUESTIONS = (
    ("grep -rh 'password is' . | awk '{print $NF}'", ANSWER),
    ("grep -rl 'password is' .", "./frame 9000"),
    ("ls | wc -l", str(SHELL_FRAMES)),
    ("wc -c 'frame 17' | cut -d' ' -f1", str(256 << 10)),
    ("sed -n 2p 'frame 17' | cut -d' ' -f2-4", "quick brown fox"),
)
"""Command lines of a model that has `bash` alone, and what they print."""


def shell_text() -> Any:
    """A store with 4 GiB in documents, one of which has the secret."""
    filler = (LINE * ((256 << 10) // len(LINE) + 1))[: (256 << 10) - 1] + "\n"
    plant = SECRET + "\n" + filler[len(SECRET) + 1 :]
    return virtual_context(SHELL_FRAMES, filler, {9000: plant}, filters=True, documents=True)


@dataclass
class Seen:
    """What one run of one host showed."""

    host: str
    answer: str = ""
    before: int = 0
    """Characters of the text that were sent before the model was first asked, opening included."""
    read: int = 0
    """Characters of the text that were sent in all."""
    requests: int = 0
    """All requests, those of the index and of search filters too."""


class Turns:
    """The scripted model: gives the replies in turn, and notes what it was asked."""

    def __init__(self, replies: list[str], on_first: Callable[[], None] = lambda: None) -> None:
        self._replies = iter(replies)
        self._on_first = on_first
        self.asked: list[Any] = []

    def __call__(self, prompt: Any = None) -> str:
        if not self.asked:
            self._on_first()
        self.asked.append(prompt)
        return next(self._replies)


class Served:
    """The text, open, and what was sent of it."""

    def __init__(self, server: S3StandIn) -> None:
        self.server = server
        self.context = Monocontext.open(server.url(), endpoint=server.endpoint, anonymous=True)

    def sent(self) -> int:
        """Bytes of text that were asked for since the server started; it is ASCII, so characters."""
        total = 0
        for asked in list(self.server.log):
            if "segments/" in asked.path and (wanted := re.match(r"bytes=(\d+)-(\d+)", asked.headers.get("range", ""))):
                total += int(wanted[2]) - int(wanted[1]) + 1
        return total


@contextmanager
def served() -> Iterator[Served]:
    with S3StandIn(big_text()) as server:
        item = Served(server)
        with item.context:
            yield item


Run = Callable[[Any, Turns], str]
"""Starts the host over a context, with a scripted model, and returns the answer."""


def measure(
    host: str,
    run: Run,
    *,
    cell: Callable[[str], str],
    final: Callable[[str], str],
    given: Callable[[Any], Any] = lambda context: context,
    name: str = "context",
) -> Seen:
    """Run a host over a `str` of a few lines, and over the text of 4 GiB.

    `cell` writes code as a reply of the host's dialect, `final` an expression as its final answer; `given` makes what
    the host takes out of a `Monocontext`.
    """
    short = Turns([cell(LOOK.format(name=name)), final(repr(ANSWER))])
    assert run(LINE * 40 + SECRET + "\n", short) == ANSWER
    seen = Seen(host)
    with served() as text:

        def note() -> None:
            seen.before = text.sent()

        model = Turns([*(cell(code.format(name=name)) for code in CELLS), final("found")], note)
        seen.answer = run(given(text.context), model)
        seen.read, seen.requests = text.sent(), text.server.requests
    return seen


LIST_BYTES = 1 << 30
LIST_FRAME_BYTES = 64 << 10
LIST_AT = 9_999
LOOK_AT_DOCUMENTS = """\
print(len({name}), {name}[3][:19], len({name}[7]))
"""
SEARCH_DOCUMENTS = """\
hit = next({name}.text.grep("password is"))
at = {name}.documents.at(hit.offset).number
found = str({name}[at]).split("password is ")[1].split()[0]
print(at, found)
"""
"""What `describe()` recommends; a loop over the list reads all of it."""


@contextmanager
def served_documents() -> Iterator[tuple[Any, Callable[[], int]]]:
    """1 GiB of documents as a lazy list, and what counts the bytes that were sent, all of them."""
    filler = (LINE * (LIST_FRAME_BYTES // len(LINE) + 1))[: LIST_FRAME_BYTES - 1] + "\n"
    frames = LIST_BYTES // LIST_FRAME_BYTES
    store = virtual_context(frames, filler, {LIST_AT: f"{SECRET}\n"}, filters=True, documents=True)
    with (
        S3StandIn(store) as server,
        Monocontext.open(server.url(), shape="list", endpoint=server.endpoint, anonymous=True) as texts,
    ):
        yield texts, lambda: server.bytes_sent


def measure_documents(
    run: Run,
    *,
    cell: Callable[[str], str],
    final: Callable[[str], str],
    given: Callable[[Any], Any] = lambda context: context,
    name: str = "context",
    search: str = SEARCH_DOCUMENTS,
) -> int:
    """Run a host over a list of 1 GiB; returns the bytes that were sent. `search`: the cell that sets `found`."""
    with served_documents() as (texts, sent):
        cells = (code.format(name=name) for code in (LOOK_AT_DOCUMENTS, search))
        model = Turns([*(cell(code) for code in cells), final("found")])
        assert run(given(texts), model) == ANSWER, str(model.asked[-1])[-2000:]
        assert f"{len(texts)} {LINE[:19]} {LIST_FRAME_BYTES}" in str(model.asked[1]), str(model.asked[1])[-2000:]
        print(f"DOCUMENTS {sent()} bytes sent of a list of {LIST_BYTES:,}")
        return sent()


def tell(seen: Seen) -> None:
    """The run as the last line of output, for whoever started this process."""
    print("SEEN " + json.dumps(asdict(seen)))
