"""The worked example of docs/format.md is what is written today."""

from __future__ import annotations

import re
from pathlib import Path

from monocontext import publish
from monocontext.stores.memory import MemoryStore, forget
from monocontext.writing.segments import SALT_BYTES

PAGE = Path(__file__).parents[2] / "docs" / "format.md"


def hexadecimal(line: str) -> bytes:
    result = re.match(r"([0-9a-f]{2}( [0-9a-f]{2})*)  ", line)
    assert result, line
    return bytes.fromhex(result[1])


def test_the_worked_example() -> None:
    _, example = PAGE.read_text("utf-8").split("## A worked example\n")
    columns = b"".join(map(hexadecimal, example.split("```")[1].splitlines()[1:]))
    store = MemoryStore("worked-example")
    try:
        publish("hé\n", store, codec="raw")
        stored = {info.key.split("/")[0]: store.get(info.key).data for info in store.list()}
    finally:
        forget("worked-example")
    assert f"`{stored['segments'][:-SALT_BYTES].hex(' ')}`" in example
    assert stored["index"].endswith(columns)
    assert len(columns) == 22
