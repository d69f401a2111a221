"""Generated logs: the same everywhere, and shaped like logs."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import pairwise

import pytest

from benchmarks.logs import BLOCK_BYTES, NEEDLE, make_incident, make_logs

SIZE = 2 * BLOCK_BYTES + 12_345
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def text() -> bytes:
    return b"".join(make_logs(SIZE, seed=4))


def test_same_on_every_machine(text: bytes) -> None:
    """A text by this name is the same text in every result, whatever the version of Python."""
    assert hashlib.sha256(text).hexdigest() == "04951f3a5ada47c8e0c42b72702dff7b354abf06e50c3d28045a1e0700c1c63e"


def test_pieces_are_whole_lines_of_the_size_asked_for(text: bytes) -> None:
    assert len(text) == SIZE
    assert all(piece.endswith(b"\n") for piece in make_logs(SIZE, seed=4))
    assert text.isascii()


def test_another_seed_is_another_text(text: bytes) -> None:
    assert next(iter(make_logs(SIZE, seed=5))) != text[:BLOCK_BYTES]


def test_lines_are_as_long_as_real_ones(text: bytes) -> None:
    lengths = sorted(map(len, text.decode().splitlines()))
    assert 97 <= lengths[len(lengths) // 2] <= 140
    assert 107 <= lengths[-len(lengths) // 100] <= 815


def test_few_templates_make_most_lines(text: bytes) -> None:
    kinds = [re.sub(r"[0-9a-f-]*\d[0-9a-f-]*", "#", line[25:])[:14] for line in text.decode().splitlines()]
    common = Counter(kinds).most_common(10)
    assert 0.16 <= common[0][1] / len(kinds) <= 0.47
    assert 0.70 <= sum(count for _, count in common) / len(kinds) < 1
    assert 0.01 <= sum(a == b for a, b in pairwise(kinds)) / len(kinds) <= 0.71


def test_timestamps_never_go_back(text: bytes) -> None:
    stamps = re.findall(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text.decode(), re.MULTILINE)
    assert stamps == sorted(stamps)
    assert len(set(stamps)) < len(stamps) / 2, "lines come in bursts"


def test_request_ids_are_shared_by_neighbouring_lines(text: bytes) -> None:
    at: dict[str, list[int]] = {}
    for number, line in enumerate(text.decode().splitlines()):
        for found in UUID.findall(line):
            at.setdefault(found, []).append(number)
    assert 2 <= sum(map(len, at.values())) / len(at) <= 8
    assert max(numbers[-1] - numbers[0] for numbers in at.values()) < 100


def test_tracebacks_span_lines(text: bytes) -> None:
    assert b"Traceback (most recent call last):\n  File " in text
    assert b"\nCaused by: " in text


def test_an_incident_is_one_line_more() -> None:
    plain, text = b"".join(make_logs(300_000, 6)), make_incident(300_000, 0.8)
    at = text.index(NEEDLE.encode())
    assert 240_000 < at < 241_000
    assert text.count(NEEDLE.encode()) == 1
    line = text[text.rindex(b"\n", 0, at) + 1 : text.index(b"\n", at) + 1]
    assert text.replace(line, b"") == plain
