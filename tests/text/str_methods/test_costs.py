"""What operations fetch: on 10 GB with every option at its default, and on texts whose lengths change."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from typing import Any

import pytest
from engine.counted import counted, wait_until_idle

from monocontext import Monocontext
from monocontext.testing import CountingStore
from tests.virtual import virtual_context

FRAMES = 40_960
FRAME_BYTES = 256 << 10
LINES = [f"2026-03-{day:02} INFO host-{day} served in {day * 7} ms\tok\n" for day in range(1, 29)]


def _frame(first: str = "", last: str = "") -> str:
    """A frame of lines, with its beginning and end as given."""
    lines = "".join(islice(cycle(LINES), FRAME_BYTES // 35))
    return first + lines[: FRAME_BYTES - len(first) - len(last)] + last


PLANTED = {
    0: _frame(first="  \n# Log of 2026\n"),
    30: _frame(first="NEEDLE one\n"),
    FRAMES - 40: _frame(first="NEEDLE two\n"),
    FRAMES - 1: _frame(last="\nthe end\n \n"),
}
MIB = 1 << 20


@pytest.fixture(scope="module")
def store() -> CountingStore:
    """A text of 10 GB that takes a few megabytes."""
    return CountingStore(virtual_context(FRAMES, _frame(), PLANTED))


def cost(store: CountingStore, operation: Callable[[Any], Any]) -> tuple[Any, int, int]:
    """What an operation gives on a text of which nothing was read, the GETs of segments, and the bytes of these."""
    with Monocontext.open(store) as context:
        store.reset()
        result = operation(context)
        wait_until_idle(context)
    requests = [request for request in store.log if request.key.startswith("segments/")]
    return result, len(requests), sum(request.length or 0 for request in requests)


FAR = 5 * 10**9
Operation = Callable[[Any], Any]

COSTS: dict[str, tuple[Operation, int, int]] = {
    "startswith": (lambda t: t.startswith("  \n#"), 1, FRAME_BYTES),
    "endswith": (lambda t: t.endswith(("x", " \n")), 1, FRAME_BYTES),
    "strip": (lambda t: t.strip(), 2, MIB),
    "lstrip": (lambda t: t.lstrip(), 1, MIB // 2),
    "removesuffix": (lambda t: t.removesuffix(" \n"), 1, FRAME_BYTES),
    "partition ends early": (lambda t: t.partition("INFO"), 1, MIB // 2),
    "rpartition": (lambda t: t.rpartition("the end"), 1, MIB // 2),
    "split(sep, 1)": (lambda t: t.split("INFO", 1), 1, MIB // 2),
    "a slice": (lambda t: t[FAR : FAR + 500], 1, 2 * FRAME_BYTES),
    "the tail": (lambda t: t[-500:], 1, FRAME_BYTES),
    "a slice of 20 MB": (lambda t: len(t[FAR : FAR + 20_000_000]), 20, 20_000_000 + 2 * FRAME_BYTES),
    "an item": (lambda t: t[FAR], 1, FRAME_BYTES),
    "a short slice backwards": (lambda t: t[FAR : FAR - 900 : -1], 1, 2 * FRAME_BYTES),
    "a wide step": (lambda t: t[:: len(t) // 4], 5, 5 * FRAME_BYTES),
    "find in a range": (lambda t: t.find("never", FAR, FAR + MIB), 4, 2 * MIB),
    "find beyond 8 MB": (lambda t: t.find("NEEDLE"), 30, 2 * 31 * FRAME_BYTES),
    "rfind before 10 MB": (lambda t: t.rfind("NEEDLE"), 40, 2 * 40 * FRAME_BYTES),
    "count of newlines": (lambda t: t.count("\n"), 0, 0),
    "count of newlines in a range": (lambda t: t.count("\n", 9, FAR), 2, 2 * FRAME_BYTES),
    "== of another length": (lambda t: t == "abc", 0, 0),
    "== that differs early": (lambda t: t == t[1:], 2, MIB),
    "== with itself": (lambda t: (t[5:] == t[5:], t.view(3) == t[3:]), 0, 0),
    "first lines": (lambda t: list(islice(t.splitlines(), 5)), 1, MIB // 2),
    "parts[:5]": (lambda t: t.split("INFO")[:5], 1, MIB // 2),
    "len(split)": (lambda t: len(t.split("\n")), 0, 0),
    "one line": (lambda t: t.split("\n")[10**8], 2, 2 * FRAME_BYTES),
    "the last line": (lambda t: t.split("\n")[-1], 2, 2 * FRAME_BYTES),
    "lines 10**8 on": (lambda t: t.split("\n")[10**8 : 10**8 + 10], 2, 2 * FRAME_BYTES),
    "lower().split()[a:b]": (lambda t: t.lower().split("\n")[1000:1010], 2, 2 * FRAME_BYTES),
    "lower().split()[a:b], far": (lambda t: t.lower().split("\n")[10**8 : 10**8 + 10], 2, 2 * FRAME_BYTES),
    "lower().find": (lambda t: t.lower().find("info"), 1, MIB // 2),
    "replace() of a character": (lambda t: t.replace("a", "b")[FAR : FAR + 500], 1, 2 * FRAME_BYTES),
    "lines from the end": (lambda t: list(islice(reversed(t.split("\n")), 20_000)), 5, 2 * MIB),
    "lines[i]": (lambda t: t.lines[10**8], 2, 2 * FRAME_BYTES),
    "repr": (repr, 0, 0),
}
"""GETs of the text at most, and bytes."""


@pytest.mark.parametrize("name", COSTS)
def test_cost(name: str, store: CountingStore) -> None:
    operation, most_gets, most_bytes = COSTS[name]
    _, gets, bytes_read = cost(store, operation)
    assert gets <= most_gets
    assert bytes_read <= most_bytes


@pytest.mark.parametrize("mapping", ["lower", "upper", "casefold"])
def test_a_mapped_slice_costs_what_the_slice_costs(mapping: str, store: CountingStore) -> None:
    plain, *expected = cost(store, lambda t: t[FAR : FAR + 5000])
    mapped, *read = cost(store, lambda t: getattr(t, mapping)()[FAR : FAR + 5000])
    assert read == expected
    assert mapped[1:] == getattr(plain, mapping)()[1:]  # the first may go on a word


def test_planted_text_is_where_it_is(store: CountingStore) -> None:
    """The costs above are those of right answers."""
    with Monocontext.open(store) as context:
        assert context.find("NEEDLE") == 30 * FRAME_BYTES
        assert context.rfind("NEEDLE") == (FRAMES - 40) * FRAME_BYTES
        assert context.strip()[-7:] == "the end"


MIXED = "x" * 20_000 + "aß İΣ" + "y" * 20_000 + "é\n" * 3
IGNORABLE = "a" + "." * 700_000 + "Σ" + "." * 50 + "İ"  # where lower() looks for the letter before the sigma


@pytest.mark.parametrize(("method", "frames"), [("lower", 3), ("upper", 4), ("casefold", 4)])
def test_a_view_of_changed_lengths_reads_the_frames_that_may_change(method: str, frames: int) -> None:
    answer = counted(MIXED, frame_bytes=400, options={"materialize_limit": 50})
    text: Any = getattr(answer.context, method)()
    assert answer.asked().count("segment") <= frames
    expected = getattr(MIXED, method)()
    assert (len(text), text[19_990:20_030], text[-9:]) == (len(expected), expected[19_990:20_030], expected[-9:])
    text = getattr(counted(IGNORABLE, options={"materialize_limit": 50}).context, method)()
    assert text[-60:-30] == getattr(IGNORABLE, method)()[-60:-30]
