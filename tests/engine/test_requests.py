"""What each public operation costs, in GETs: exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge, Unhashable
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.writing.publish import append
from tests.simulated import SimulatedWorkers

from .counted import Counted, counted, stored, wait_until_idle

LINES = "".join(f"line {i:04d}\n" for i in range(100))  # 10 characters each
FRAME = 100  # characters, and 10 lines


def ten(**more: Any) -> Counted:
    """1000 characters in 10 frames, each in a segment of its own."""
    return counted(LINES, frame_bytes=FRAME, **more)


def test_opening_reads_the_root_alone() -> None:
    assert ten().opening == ["root"]
    assert ten(pages=True).opening == ["root"]
    assert counted("").opening == ["root"]


FREE: dict[str, Callable[[Monocontext], object]] = {
    "len": len, "bool": bool, "repr": repr, "iter": iter, "empty slice": lambda c: c[0:0],
    "slice with its ends crossed": lambda c: c[700:300], "slice behind the end": lambda c: c[5000:],
    "view": lambda c: len(c.view(10, 500)), "equal to a text of another length": lambda c: c == LINES[1:],
    "equal to a number": lambda c: c == 3, "equal to itself": lambda c: c == c,
    "equal to a view of itself": lambda c: c.view(10, 20) == c.view(10, 20),
    "find nothing": lambda c: (c.find(""), c.rfind(""), c.count(""), "" in c),
    "find behind the end": lambda c: (c.find("x", 2000), c.count("x", 2000), c.startswith("x", 2000)),
    "find what is longer": lambda c: (c.find(LINES + "x"), c.count(LINES + "x"), c.endswith(LINES + "x")),
    "starts with nothing": lambda c: (c.startswith(""), c.endswith(""), c.startswith(())),
    "count newlines": lambda c: c.count("\n"), "the view in lines": lambda c: c.lines,
    "chunks before the first": lambda c: c.chunks(10), "facts": lambda c: (c.url, c.generation, str(c.stats)),
}  # fmt: skip


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("name", FREE)
def test_free_of_requests(name: str, pages: bool) -> None:
    context = ten(pages=pages)
    FREE[name](context.context)
    assert context.asked() == []


def test_slice_over_several_frames_of_one_segment() -> None:
    context = counted(LINES, frame_bytes=FRAME, frames_per_segment=10)
    assert context.context[150:750] == LINES[150:750]
    assert context.asked() == ["segment"]
    assert context.context[50:850] == LINES[50:850]
    # Frame 0 and frame 8 are missing: one request for both, since what lies between is less than a gap worth a request.
    assert context.asked() == ["segment"]


@pytest.mark.parametrize("read", [lambda c: c[150:750], lambda c: str(c), lambda c: "".join(c), lambda c: c == LINES])
def test_a_cold_read_of_several_segments_takes_one_round_trip(read: Callable[[Monocontext], object]) -> None:
    store = stored(LINES, frame_bytes=FRAME)
    workers = SimulatedWorkers(lambda request: 1.0)
    read(Monocontext.open(store, workers=workers))
    assert workers.now() == 1.0


EVERYTHING: dict[str, Callable[[Monocontext], object]] = {
    "str": str, "hash": hash, "format": lambda c: f"{c}", "slice": lambda c: c[:], "backwards": lambda c: c[::-1],
    "stepped": lambda c: c[::3], "iteration": list, "reversed": lambda c: list(reversed(c)),
    "equal": lambda c: c == LINES, "not in": lambda c: "missing" in c, "find": lambda c: c.find("missing"),
    "rfind": lambda c: c.rfind("missing"), "count": lambda c: c.count("line"), "split": lambda c: c.split("\n"),
    "splitlines": lambda c: c.splitlines(), "lines": lambda c: list(c.lines), "chunks": lambda c: list(c.chunks(70)),
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYTHING)
@pytest.mark.parametrize("limit", [None, 3])
def test_what_reads_everything_reads_it_once(name: str, limit: int | None) -> None:
    options = {"materialize_limit": limit} if limit else {}
    if limit and name in ("str", "hash", "format", "backwards", "stepped"):
        pytest.skip("too large, says ContextTooLarge")
    context = ten(pages=True, options=options)
    result = EVERYTHING[name](context.context)
    if limit and name in ("split", "splitlines", "slice"):
        assert context.asked() == []  # lazy
        list(result)  # type: ignore[call-overload]
    assert context.asked() == ["page"] + ["segment"] * 10
    for again in EVERYTHING.values():
        if not limit:
            again(context.context)
    assert context.asked() == []


def test_too_large_results_cost_nothing() -> None:
    context = ten(options={"materialize_limit": 3})
    for ask in (str, hash, "{}".format, lambda c: c[::-1], lambda c: c[::3], lambda c: c * 2, lambda c: c.encode()):
        with pytest.raises((ContextTooLarge, Unhashable), match="characters, more than the limit of 3"):
            ask(context.context)
    assert context.asked() == []


@pytest.mark.parametrize(
    ("ask", "frames"),
    [
        (lambda c: c.startswith("line"), 1),
        (lambda c: c.startswith(LINES[:101]), 2),
        (lambda c: c.endswith("\n"), 1),
        (lambda c: c.endswith(LINES[-101:]), 2),
        (lambda c: c.startswith(("x", "y", "line")), 1),
        (lambda c: c.startswith("x", 500), 1),
        (lambda c: c.find("5", 500, 600), 1),
        (lambda c: c.count("\n", 0, 550), 1),
        (lambda c: c.count("\n", 50, 950), 2),
        (lambda c: c.count("\n", 50), 1),
        (lambda c: c.count("5", 500, 600), 1),
        (lambda c: c[555], 1),
        (lambda c: c[-1], 1),
        (lambda c: c[950:150:-30], 9),
        (lambda c: list(c.view(100, 200)), 1),
        (lambda c: c.view(150, 250) == LINES[150:250], 2),
    ],
    ids=range(16),
)
def test_only_the_frames_that_it_takes(ask: Callable[[Monocontext], object], frames: int) -> None:
    context = ten(pages=True)
    ask(context.context)
    assert context.asked() == ["page"] + ["segment"] * frames


def test_lines() -> None:
    context = ten(pages=True)
    lines = context.context.lines
    assert len(lines) == 100
    assert context.asked() == []  # the root knows it
    assert lines[55] == "line 0055\n"
    assert context.asked() == ["page", "segment"]  # both ends of the line lie in its frame
    assert lines[50] == "line 0050\n"
    assert context.asked() == ["segment"]  # it begins behind the newline of the frame before
    assert lines[50:60] == LINES[500:600]
    assert context.asked() == []
    assert lines[25:75] == LINES[250:750]
    assert context.asked() == ["segment"] * 4  # frames 2, 3, 6 and 7; the others are there
    assert lines[-1] == "line 0099\n"
    assert context.asked() == ["segment"]
    assert lines[99:10] == ""
    assert context.asked() == []


def test_preload() -> None:
    context = ten(pages=True, options={"preload": True})
    assert sorted(context.opening) == ["page", "root", *["segment"] * 10]
    for read in EVERYTHING.values():
        read(context.context)
    assert [context.context.lines[i] for i in range(100)] == LINES.splitlines(keepends=True)
    assert context.asked() == []


def test_refresh() -> None:
    store = stored(LINES, frame_bytes=FRAME)
    context = Counted(store, {})
    context.context.refresh()
    assert context.asked() == ["generation"]  # asked for, not found
    append("more\n", store)
    append("and more\n", store)
    context.context.refresh()
    assert context.asked() == ["generation"] * 3
    assert str(context.context) == LINES + "more\nand more\n"


def test_opening_a_generation() -> None:
    store = stored(LINES, frame_bytes=FRAME)
    append("more\n", store)
    context = Counted(store, {"generation": 1})
    assert context.opening == ["generation"]
    assert str(context.context) == LINES


def test_statistics_agree_with_the_store() -> None:
    store = CountingStore(ten(pages=True).store)
    text = Monocontext.open(store)
    _ = text[230:240], text[0:500], text.find("0077"), len(text.lines), text[-3:]
    wait_until_idle(text)
    assert text.stats.gets == store.gets
    assert text.stats.bytes_fetched == store.bytes_read
    assert f"{store.gets} GETs, {store.bytes_read:,} bytes fetched" in str(text.stats)


def test_a_sparse_step_does_not_read_what_it_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monocontext.text.source.SPARSE_STEP", 400)
    context = ten()
    assert context.context[::500] == LINES[::500]
    assert context.asked() == ["segment"] * 2


def test_opening_a_prefix_without_a_pointer() -> None:
    """After a crash between the first commit and its copy: the newest generation is looked up."""
    store: MemoryStore = stored(LINES, frame_bytes=FRAME)
    store.delete("manifest.json")
    counting = CountingStore(store)
    assert str(Monocontext.open(counting)) == LINES
    assert [request.verb for request in counting.log[:3]] == ["get", "list", "get"]
