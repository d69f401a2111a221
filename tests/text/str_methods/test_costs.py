"""What operations fetch: on 10 GB with every option at its default, and on texts whose lengths change.

The table of docs/semantics.md is gone through in test_semantics.py; here are the figures of the docstrings.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from engine.counted import counted

from monocontext.engine import reader
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
    "rsplit(sep, 1)": (lambda t: t.rsplit("\n", 1), 1, MIB // 2),
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
    "isascii": (lambda t: t.isascii(), 0, 0),
    "isalpha": (lambda t: t.isalpha(), 1, MIB // 2),
    "== of another length": (lambda t: t == "abc", 0, 0),
    "== that differs early": (lambda t: t == t[1:] + "x", 2, MIB),
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
    "replace()[:500]": (lambda t: t.replace("a", "bb")[:500], 1, MIB // 2),
    "replace()[700]": (lambda t: t.replace("a", "bb")[700], 1, MIB // 2),
    "replace().startswith": (lambda t: t.replace("a", "bb").startswith("x"), 1, MIB // 2),
    "replace().find in a range": (lambda t: t.replace("a", "bb").find("never", 3, 9000), 1, MIB // 2),
    "translate()[10**6:][:9]": (lambda t: t.translate({32: None})[10**6 : 10**6 + 9], 8, 4 * MIB),
    'f"{replace():.500}"': (lambda t: f"{t.replace('a', 'bb'):.500}", 1, MIB // 2),
    "replace().split(None, 2)": (lambda t: t.replace("a", "bb").split(None, 2)[:2], 200, 3 * (64 << 20)),
    "replace() with a count": (lambda t: t.replace("INFO", "x", 3), 1, MIB // 2),
    'replace("", ...)': (lambda t: len(t.replace("", "-")), 0, 0),
    "a rope's beginning": (lambda t: (t + t.lower())[:500], 1, FRAME_BYTES),
    "a rope's seam": (lambda t: (t[3:] + t.upper())[len(t) - 50 : len(t) + 50], 2, 2 * FRAME_BYTES),
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


@pytest.mark.parametrize("mapping", ["lower", "upper", "casefold", "swapcase", "title"])
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
    assert big.context.replace("INFO", "x", 3)[:60].count("x") == 1


@pytest.mark.slow
@pytest.mark.parametrize("operation", [str, hash, lambda t: t.encode(), lambda t: f"{t}", lambda t: t * 2])
def test_a_text_of_unknown_length_is_refused_without_a_pass(operation: Operation, big: Big) -> None:
    """It is read as far as the limit: only that tells that it is too large."""

    def attempt(text: Any) -> str:
        with pytest.raises(ContextTooLarge) as raised:
            operation(text.replace("INFO", "information"))
        return str(raised.value)

    cost = big.cost(attempt)
    assert cost.bytes_read <= 3 * (64 << 20)
    assert "would make more characters than the limit of 67,108,864 " in cost.result


def frames_of(text: str, operation: Operation, monkeypatch: pytest.MonkeyPatch) -> int:
    """Frames read, each an object of its own, without reading ahead."""
    monkeypatch.setattr(reader, "FIRST_BATCH_BYTES", 1)
    found = counted(text, frame_bytes=200, options={"materialize_limit": 50})
    operation(found.context)
    return found.asked().count("segment")


MIXED = "aß İΣ😀 " * 20 + "".join(f"né {number}\n" + "x" * 90 + " Σ. " for number in range(500))
MIXED_FRAMES = len(MIXED.encode()) // 200


@pytest.mark.parametrize(
    ("operation", "most"),
    [
        (lambda t: t.upper()[:40], 2),
        (lambda t: t.upper()[3], 2),
        (lambda t: t.title().startswith("Aß"), 2),
        (lambda t: t.casefold().find("σ"), 3),
        (lambda t: t.lower()[100:130], 3),
        (lambda t: t.isascii(), 2),
        (lambda t: t.lower().partition(" ")[0], 4),
        (lambda t: t.upper().lstrip("A"), 4),
        (lambda t: t.swapcase().split(" ")[:3], 4),
        (lambda t: next(iter(t.expandtabs())), 2),
        (lambda t: bool(t.replace("a", "")), 3),
        (lambda t: f"{t.upper():.20}", 2),
        (lambda t: t[::-1] if len(t) < 50 else t[-20:][::-1], 2),
    ],
)
def test_the_beginning_of_a_text_whose_length_changes(
    operation: Operation, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MIXED_FRAMES > 200
    assert frames_of(MIXED, operation, monkeypatch) <= most


def test_a_length_that_changes_is_found_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(text: Any) -> None:
        upper = text.upper()
        assert len(upper) == len(MIXED.upper())
        assert upper[-40:] == MIXED.upper()[-40:]

    frames = frames_of(MIXED, twice, monkeypatch)
    assert MIXED_FRAMES <= frames <= MIXED_FRAMES + 20
