"""Small texts ride in their roots, larger ones with their ends: every writer keeps the copies true."""

from __future__ import annotations

import dataclasses
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monocontext import Monocontext, append, publish
from monocontext.format import inline
from monocontext.format.index import LOWER_KEEPS_LENGTH, WHOLE_TEXT_FLAGS
from monocontext.format.manifest import generation_key
from monocontext.stores import open_store
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.writing.index_in_place import index
from monocontext.writing.upkeep.compact import compact
from monocontext.writing.upkeep.verify import verify
from tests.writing.upkeep.upkept import memory
from tests.writing.upkeep.upkept import root as root_of

pytestmark = pytest.mark.usefixtures("texts_in_roots")

TEXT = "naïve café 漢字 😀\r\nsecond line\n" * 40


def noise(size: int, seed: int = 1) -> str:
    """Text that hardly compresses, of three bytes a character."""
    return "".join(random.Random(seed).choices([chr(n) for n in range(0x4E00, 0x9000)], k=size // 3)) + "\n"


def gets_of(store: MemoryStore, expected: str) -> int:
    """GETs of opening and reading all of it."""
    counting = CountingStore(store)
    with Monocontext.open(counting) as context:
        assert str(context) == expected
    return counting.gets


def test_opening_a_small_text_brings_all_of_it(store: MemoryStore) -> None:
    publish(TEXT, store, frame_bytes=100)
    assert gets_of(store, TEXT) == 1
    counting = CountingStore(store)
    with Monocontext.open(counting) as context:
        assert context.find("second") == TEXT.find("second")
        assert context.lower().count("second") == 40
        assert [hit.line for hit in context.grep("second")] == ["second line"] * 40
        assert context[-20:] == TEXT[-20:]
        assert context.stats.gets == counting.gets == 1
    assert verify(store).problems == []


def test_appends_to_a_small_text_ride_along_until_they_are_too_much() -> None:
    store, text = memory(), ""
    publish("", store)
    while len(text.encode()) < 100_000:
        piece = noise(7_000, seed=len(text))
        append(piece, store, codec="raw")
        text += piece
        root = root_of(store)
        assert bool(root.text) == (root.stored_bytes <= inline.MOST_GROWN_BYTES)
        assert bool(root.head) == bool(root.tail) == (not root.text)
        assert len(root.head) + len(root.tail) < 16 << 10
        with Monocontext.open(store) as context:
            assert str(context) == text
            assert (context[:300], context[-300:]) == (text[:300], text[-300:])
    assert verify(store).problems == []
    compact(store)
    assert root_of(store).text
    assert gets_of(store, text) == 1
    assert verify(store).problems == []


def test_batches_of_an_executor_too() -> None:
    small, large = memory(), memory()
    with ThreadPoolExecutor(2) as pool:
        publish(TEXT, small, executor=pool)
        publish(noise(5 << 20), large, executor=pool, codec="raw")
    assert root_of(small).text
    assert gets_of(small, TEXT) == 1
    assert (bool(root_of(large).text), bool(root_of(large).head)) == (False, True)
    assert verify(small).ok
    assert verify(large).ok


def test_text_elsewhere_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(TEXT)
    index(tmp_path / "log.txt", tmp_path / "context")
    append("ours\n", tmp_path / "context")
    with Monocontext.open(tmp_path / "context") as context:
        root = root_of(open_store(tmp_path / "context"))
        assert (root.text, root.head) == ("", "")
        assert str(context).endswith("second line\nours\n")
        assert context[-5:] == "ours\n"
    compact(tmp_path / "context")
    assert verify(tmp_path / "context").ok


def test_a_copy_that_does_not_fit_its_page_is_not_used(store: MemoryStore) -> None:
    publish(TEXT, store, codec="raw")
    other = inline.whole_copy(TEXT.upper().encode()[: len(TEXT.encode())])["text"]

    lying = dataclasses.replace(root_of(store), text=other).to_bytes()
    store.put("manifest.json", lying)
    store.put(generation_key(1), lying)
    assert gets_of(store, TEXT) == 2
    assert any("root" in problem for problem in verify(store).problems)


def test_roots_say_what_all_frames_have(store: MemoryStore) -> None:
    """`lower()` and its kin ask no index page then; a text that gets another character loses the flag."""
    publish("plain\n" * 2000, store, frame_bytes=1000)
    assert root_of(store).flags == WHOLE_TEXT_FLAGS
    append("né\n", store)
    assert root_of(store).flags == LOWER_KEEPS_LENGTH
    compact(store)
    assert root_of(store).flags == LOWER_KEEPS_LENGTH
    assert verify(store).problems == []
    append("\u0130\n", store)
    append("plain again\n", store)
    assert root_of(store).flags == 0
    with Monocontext.open(store) as context:
        assert str(context.lower()) == str(context).lower()
    lying = dataclasses.replace(root_of(store), flags=WHOLE_TEXT_FLAGS)
    store.put("manifest.json", lying.to_bytes())
    assert any("flags differ" in problem for problem in verify(store).problems)
