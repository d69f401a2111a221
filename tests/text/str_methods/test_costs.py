"""What operations fetch: on 10 GB with every option at its default, and on texts whose lengths change."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from engine.counted import counted

from monocontext.errors import ContextTooLarge

from .big import FRAME_BYTES, FRAMES, MIB, Big

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
def test_cost(name: str, big: Big) -> None:
    operation, gets, bytes_read = COSTS[name]
    cost = big.cost(operation)
    assert cost.gets <= gets
    assert cost.bytes_read <= bytes_read


@pytest.mark.parametrize("mapping", ["lower", "upper", "casefold"])
def test_a_mapped_slice_costs_what_the_slice_costs(mapping: str, big: Big) -> None:
    plain = big.cost(lambda t: t[FAR : FAR + 5000])
    mapped = big.cost(lambda t: getattr(t, mapping)()[FAR : FAR + 5000])
    assert (mapped.gets, mapped.bytes_read) == (plain.gets, plain.bytes_read)
    assert mapped.result[1:] == getattr(plain.result, mapping)()[1:]  # the first may go on a word


def test_planted_text_is_where_it_is(big: Big) -> None:
    """The costs above are those of right answers."""
    assert big.context.find("NEEDLE") == 30 * FRAME_BYTES
    assert big.context.rfind("NEEDLE") == (FRAMES - 40) * FRAME_BYTES
    assert big.context.strip()[-7:] == "the end"


@pytest.mark.parametrize("operation", [str, hash, lambda t: t.encode(), lambda t: f"{t}", lambda t: t * 2])
def test_what_is_refused_reads_nothing(operation: Operation, big: Big) -> None:
    def attempt(text: Any) -> str:
        with pytest.raises(ContextTooLarge) as raised:
            operation(text)
        return str(raised.value)

    cost = big.cost(attempt)
    assert cost.gets == 0
    assert re.match(r".+ would make [0-9,]{13,} characters, more than the limit of 67,108,864 ", cost.result)


MIXED = "x" * 20_000 + "aß İΣ" + "y" * 20_000 + "é\n" * 3


@pytest.mark.parametrize(("method", "frames"), [("lower", 3), ("upper", 4), ("casefold", 4)])
def test_a_view_of_changed_lengths_reads_the_frames_that_may_change(method: str, frames: int) -> None:
    answer = counted(MIXED, frame_bytes=400, options={"materialize_limit": 50})
    text: Any = getattr(answer.context, method)()
    assert answer.asked().count("segment") <= frames
    expected = getattr(MIXED, method)()
    assert (len(text), text[19_990:20_030], text[-9:]) == (len(expected), expected[19_990:20_030], expected[-9:])
