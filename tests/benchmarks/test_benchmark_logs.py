"""Generated logs: the same everywhere, and shaped like logs."""

from __future__ import annotations

import hashlib
import re

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
