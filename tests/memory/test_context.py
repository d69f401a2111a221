"""The values of a memory as one lazy text."""

from __future__ import annotations

import pickle

import pytest

from monocontext import Monocontext
from monocontext.errors import ContextChanged, NotPicklable
from monocontext.memory import Memory
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore


def expected(values: dict[str, str]) -> str:
    parts = [f"=== KEY: {key} ===\n{value}" for key, value in sorted(values.items())]
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts)


def test_equals_its_text(any_store: Store) -> None:
    values = {
        "b": "two\nlines", "a": "ends in a line\n", "c": "", "ü/ é": "日本語 " * 100_000, "cr": "x\r", "lf": "\n\n",
        "z": "é" * 300_000 + "\n", "other prefix": "x",
    }  # fmt: skip
    memory = Memory(any_store)
    for key, value in values.items():
        memory.put(key, value, metadata={"writer": "w"})
    text, context = expected(values), Memory(any_store).context()
    assert isinstance(context, Monocontext)
    assert len(context) == len(text)
    assert str(context) == text
    assert context[5:-5:3] == text[5:-5:3]
    assert context.find("=== KEY: z") == text.find("=== KEY: z")
    assert [hit.line for hit in context.grep("two")] == ["two"]
    assert list(context.splitlines()) == text.splitlines()
    assert str(memory.context("c")) == "=== KEY: c ===\n=== KEY: cr ===\nx\r\n"


def test_reads_no_value_until_it_is_asked_for(any_store: Store) -> None:
    memory = Memory(any_store)
    for number in range(5):
        memory.put(f"key {number}", f"{number} some text\n" * 100_000)
    counted = CountingStore(any_store)
    context = Memory(counted).context()
    assert counted.counts == {"list": 1, "get_range": 5}
    head_bytes = counted.bytes_read
    assert head_bytes <= 5 * 2048
    assert len(context) == 5 * (1_200_000 + len("=== KEY: key 0 ===\n"))
    assert counted.bytes_read == head_bytes
    assert context[-12:] == "4 some text\n"[-12:]
    assert 0 < counted.bytes_read - head_bytes < 1_300_000


def test_a_snapshot(any_store: Store) -> None:
    """New keys are not seen; a value that was replaced is an error, never other text."""
    memory = Memory(any_store)
    memory.put("a", "first value\n")
    context = memory.context()
    memory.put("b", "later")
    assert str(context) == "=== KEY: a ===\nfirst value\n"
    context.refresh()
    assert str(context) == "=== KEY: a ===\nfirst value\n"
    again = memory.context("a")
    memory.put("a", "other value\n")
    with pytest.raises(ContextChanged):
        str(again)
    assert str(memory.context("a")) == "=== KEY: a ===\nother value\n"


def test_no_keys_and_expired_and_odd_ones() -> None:
    memory = Memory.open("memory://odd")
    assert str(memory.context()) == ""
    memory.put("line\nend", "v")
    memory.put("gone", "v", 0)
    assert str(memory.context()) == "=== KEY: 'line\\nend' ===\nv\n"
    with pytest.raises(NotPicklable):
        pickle.dumps(memory.context())


@pytest.mark.slow
def test_many_entries_are_several_pages() -> None:
    memory = Memory.open("memory://many")
    values = {f"{number:05}": f"value {number}" for number in range(3000)}
    for key, value in values.items():
        memory.put(key, value)
    context = memory.context()
    assert str(context) == expected(values)
    assert context.lines[5001] == "value 2500\n"
