"""Answers that arrive damaged, of another version or not at all: asked for again once, then a typed error."""

from __future__ import annotations

import re

import pytest
from format.crafted import SEGMENT, craft

from monocontext import Monocontext
from monocontext.errors import AccessDenied, DamagedData, MonocontextError, NotFound, StoreFailure
from monocontext.format.manifest import ROOT_KEY
from monocontext.stores.protocol import Blob
from monocontext.testing import CountingStore, FaultyStore, fail, flip_byte, truncate, wrong_etag

from .counted import Slim, memory, stored, wait_until_idle
from .damaged import BYTES, READINGS, RIGHT, TEXT, flip, page_key, put_changed, read_all

BAD_ANSWERS = {
    "first byte flipped": flip_byte(0),
    "last byte flipped": flip_byte(-1),
    "one byte short": truncate(1),
    "nothing arrives": truncate(10**9),
    "more than was asked for": lambda blob: Blob(blob.data + b"more", blob.etag, blob.total_bytes),
    "another range": lambda blob: Blob(blob.data[1:] + blob.data[:1], blob.etag, blob.total_bytes),
}


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("fault", BAD_ANSWERS)
def test_one_bad_answer_is_asked_for_again(fault: str, reading: str) -> None:
    plain = stored(TEXT, frame_bytes=20, frames_per_segment=2)
    for number in range(1, 8):
        store = FaultyStore(Slim(plain), [*[None] * number, BAD_ANSWERS[fault]])
        result = read_all(store, READINGS[reading])
        assert result == RIGHT.get(reading, result)
        if number < 4:  # a page and three segments are read for certain
            assert store.faults == 1


@pytest.mark.parametrize("fault", BAD_ANSWERS)
def test_bad_answers_that_go_on_are_an_error(fault: str) -> None:
    store = FaultyStore(stored(TEXT, frame_bytes=20), lambda number, request: BAD_ANSWERS[fault] if number else None)
    context = Monocontext.open(store)
    for reading in READINGS.values():
        with pytest.raises(DamagedData, match=r"segments/\w{32}\.seg.*expected.*found"):
            reading(context)
    wait_until_idle(context)


@pytest.mark.parametrize("fault", [*BAD_ANSWERS, "another version"])
def test_one_bad_answer_to_the_root_is_asked_for_again(fault: str) -> None:
    store = FaultyStore(stored(TEXT), [(BAD_ANSWERS | {"another version": wrong_etag()})[fault]])
    context = Monocontext.open(store)
    # The root's last byte is the newline behind its object, and its ETag is of no interest.
    is_seen = fault not in ("another version", "one byte short")
    assert context.stats.gets == 1 + is_seen
    assert str(context) == TEXT


@pytest.mark.parametrize("what", ["root", "generation", "page", "segment"])
def test_damage_at_rest_costs_one_get_more(what: str) -> None:
    store = memory()
    craft(store, BYTES)
    key = {
        "root": ROOT_KEY,
        "generation": "generations/00000000000000000001.json",
        "page": page_key(store),
        "segment": SEGMENT,
    }[what]
    put_changed(store, key, flip(0 if key == SEGMENT else 0.7))
    counted = CountingStore(store)
    with pytest.raises(DamagedData, match=re.escape(key)):
        Monocontext.open(counted, generation=1 if what == "generation" else None)[2:5]
    asked = [request.key for request in counted.log]
    assert asked.count(key) == 2, asked
    assert {asked.count(other) for other in asked if other != key} <= {1}, asked


@pytest.mark.parametrize("error", [StoreFailure("no answer"), AccessDenied("forbidden"), NotFound("gone")])
def test_a_failing_store_is_reported_as_it_says(error: MonocontextError) -> None:
    for number in (1, 2):
        store = FaultyStore(Slim(stored(TEXT)), [*[None] * number, fail(error)])
        context = Monocontext.open(store)
        with pytest.raises(type(error), match=str(error)):
            str(context)
        assert str(context) == TEXT
        wait_until_idle(context)
