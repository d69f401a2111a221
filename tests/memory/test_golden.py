"""The protocol, command by command: ours, and where they are equal the original's."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace
from typing import Any

import pytest

from monocontext.errors import InvalidParameters, UnknownTool
from monocontext.memory import Memory, MemoryTool
from monocontext.stores.protocol import Store

from .golden import INVALID, OK, SAME, VECTORS, Command, T

OURS = {"expires_at", "remaining", "etag"}
LETTERS = {letter: list(rows) for letter, rows in itertools.groupby(VECTORS, key=lambda row: row[0][0])}
WAITING = {letter for letter, rows in LETTERS.items() if any(isinstance(c, float) for _, cs, *_ in rows for c in cs)}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00")


def test_the_table_is_whole() -> None:
    assert len(VECTORS) == len({name for name, *_ in VECTORS}) == 129
    assert "".join(LETTERS) == "ABCDEFGHIJK"
    assert {"H"} == WAITING
    assert sum(ours == SAME for *_, ours in VECTORS) == 68


def plain(found: Any) -> Any:
    """A reply as the table shows it."""
    if isinstance(found, list):
        return [plain(each) for each in found]
    if not isinstance(found, dict):
        return found
    if "added_utc" in found:
        assert set(found) >= OURS
    ours = OURS | ({"total_bytes"} if {"keys_bytes", "values_bytes"} & set(found) else set())
    shown = {name: plain(value) for name, value in found.items() if name not in ours}
    if "added_utc" in shown:
        assert TIMESTAMP.fullmatch(shown["added_utc"])
        shown["added_utc"] = T
    if "specification" in shown:
        shown["specification"] = "<text>"
    return shown


def reply(tool: MemoryTool, command: Command) -> Any:
    try:
        envelope = tool.execute(command if isinstance(command, dict) else {"command": command})
    except InvalidParameters:
        return INVALID
    assert list(envelope) == ["success", "output", "error", "metadata"]
    assert envelope["metadata"] == {}
    assert envelope["success"] is (envelope["error"] is None) is (envelope["output"] is not None)
    return plain(envelope["output"]) if envelope["success"] else envelope["error"]


def play(tool: MemoryTool, letter: str, wait: Any) -> None:
    for name, commands, upstream, ours in LETTERS[letter]:
        found: Any = None
        for number, command in enumerate(commands):
            if isinstance(command, float):
                wait(command)
                continue
            found = reply(tool, command)
            if number < len(commands) - 1:
                assert found == OK, (name, command)
        assert found == (upstream if ours == SAME else ours), name


@pytest.mark.parametrize("letter", LETTERS)
def test_every_vector(letter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a store's clock that is turned by hand: waits take no time and no load ends a life early."""
    clock = SimpleNamespace(now=1_800_000_000.25)
    monkeypatch.setattr("monocontext.stores.memory.time", SimpleNamespace(time=lambda: clock.now))

    def wait(seconds: float) -> None:
        clock.now += seconds

    memory = Memory.open(f"memory://golden-{letter}")
    memory.clear()
    play(MemoryTool(memory), letter, wait)


def test_no_command_says_what_one_looks_like() -> None:
    tool = MemoryTool(Memory.open("memory://spec"))
    with pytest.raises(InvalidParameters, match=r"^Invalid parameters: Missing 'command' field. "):
        tool.execute({"cmd": "L"})
    with pytest.raises(UnknownTool, match=r"^Tool not found: calculator$"):
        tool.execute({"command": "L"}, tool="calculator")


def test_specification() -> None:
    text = MemoryTool(Memory.open("memory://spec")).execute({"command": "SPEC"})["output"]["specification"]
    for wanted in ("Memory tool quick-reference", "P <key> <value>", "G <key>", "L", "D <key>", "C", "T A"):
        assert wanted in text


def test_our_fields_follow_the_conforming_ones() -> None:
    tool = MemoryTool(Memory.open("memory://fields"))
    tool.execute({"command": "P k v 60"})
    found = tool.execute({"command": "G k META"})["output"]
    assert list(found) == ["value", "added_utc", "expires_in", "expires_at", "remaining", "etag"]
    assert 0 < found["remaining"] <= 60
    tool.execute({"command": "P k v"})
    assert tool.execute({"command": "G k META"})["output"]["expires_at"] is None


def test_each_total_carries_that_of_all(any_store: Store) -> None:
    tool = MemoryTool(Memory(any_store))
    tool.execute({"command": "P key value"})
    totals = [tool.execute({"command": command})["output"] for command in ("T K", "T V", "T A")]
    assert totals == [
        {"keys_bytes": 3, "total_bytes": 8}, {"values_bytes": 5, "total_bytes": 8}, {"total_bytes": 8},
    ]  # fmt: skip
